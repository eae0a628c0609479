"""Lazy modules, and what a parameter without a shape lets pass.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import copy
import pickle

from conformance.modules.module_attempts import names_of, tried

METHODS = (
    "double float half int long short char bool bfloat16 cpu to size is_floating_point is_complex "
    "get_device dim numel nelement detach clone sum zero_ t numpy tolist item requires_grad_ "
    "retain_grad share_memory_ type storage untyped_storage data_ptr element_size stride "
    "is_contiguous contiguous __len__ __iter__ __bool__ __float__ __int__ __neg__ __abs__ "
    "__invert__ abs exp relu backward"
).split()
PROPERTIES = (
    "shape dtype device grad grad_fn requires_grad is_leaf ndim is_sparse is_cpu itemsize nbytes "
    "layout output_nr retains_grad data"
).split()


def _text(value):
    """Tensors without a shape cannot be looked into."""
    return repr(value) if hasattr(value, "is_leaf") else value


def methods_of_what_has_no_shape(t):
    found = []
    for kind in (t.nn.UninitializedParameter, t.nn.UninitializedBuffer):
        for name in METHODS:
            found.append((name, tried(lambda: _text(getattr(kind(), name)()))))  # noqa: B023
        for name in PROPERTIES:
            made = kind()
            if (kind, name) != (t.nn.UninitializedBuffer, "data"):
                found.append((name, tried(lambda: _text(getattr(made, name)))))  # noqa: B023
    return found


def operators_on_what_has_no_shape(t):
    u = t.nn.UninitializedParameter()
    actions = [
        lambda: u + 1, lambda: 1 + u, lambda: u * u, lambda: u - 1, lambda: u / 2, lambda: u @ u,
        lambda: u < 1, lambda: u == u, lambda: u != 1, lambda: u[0], lambda: u.__setitem__(0, 1),
        lambda: u**2, lambda: 2 // u, lambda: 1 - u, lambda: u in [u], lambda: f"{u}",
        lambda: t.empty_like(u), lambda: t.ones_like(u), lambda: t.nn.Parameter(u),
    ]  # fmt: skip
    return [tried(action) for action in actions]


def making_them(t):
    actions = [
        lambda: t.nn.UninitializedParameter(dtype=t.int64),
        lambda: t.nn.UninitializedParameter("a"),
        lambda: t.nn.UninitializedParameter(False, dtype=t.int64).dtype,
        lambda: t.nn.UninitializedBuffer(True).requires_grad,
    ]
    return [tried(lambda: _text(action())) for action in actions]  # noqa: B023


def giving_them_a_shape(t):
    found = []
    for shape in ((2, 3), 5, (), [2], "a", (-1,)):
        for options in ({}, {"dtype": t.float64}):
            u = t.nn.UninitializedParameter()
            outcome = tried(lambda: u.materialize(shape, **options))  # noqa: B023
            is_made = type(u).__name__ == "Parameter"
            found.append((outcome, type(u).__name__, is_made and (u.shape, u.dtype)))
    return found


def setting_their_flags(t):
    u = t.nn.UninitializedParameter()
    u.requires_grad = False
    first = u.requires_grad
    u.requires_grad = True
    actions = [
        lambda: setattr(u, "grad", t.ones(2)),
        lambda: setattr(u, "grad", t.ones(0)),
        lambda: u.copy_(t.ones(2)),
        lambda: setattr(u, "data", t.ones(3).double()),
    ]
    return [first, u.requires_grad, [tried(action) for action in actions], u.dtype]


LAYERS = ("LazyLinear", "LazyConv1d", "LazyConvTranspose2d", "LazyBatchNorm1d",
          "LazyInstanceNorm2d")  # fmt: skip


def _lazy(t, name):
    layer = getattr(t.nn, name)
    return layer(3, 2) if "Conv" in name else layer(3) if "Linear" in name else layer()


def whole_lazy_layers(t):
    found = []
    for name in LAYERS:
        actions = [
            lambda m: m.requires_grad_(False), copy.deepcopy, lambda m: m.double().half(),
            lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.share_memory(),
            lambda m: m.to_empty(device="cpu"), lambda m: m.load_state_dict(m.state_dict()),
            lambda m: m.load_state_dict(_lazy(t, name).state_dict(), assign=True),  # noqa: B023
        ]  # fmt: skip
        for action in actions:
            layer = _lazy(t, name)
            outcome = tried(lambda: action(layer))  # noqa: B023
            found.append((name, outcome, layer.has_uninitialized_params(), names_of(layer)))
    return found


def half_lazy_layers(t):
    layer = t.nn.LazyLinear(3)
    layer.load_state_dict({"weight": t.ones(3, 4)}, strict=False)
    found = [layer.has_uninitialized_params(), tried(lambda: copy.deepcopy(layer))]
    found.append(tried(lambda: pickle.loads(pickle.dumps(layer))))
    found.append(tried(lambda: t.nn.Linear(4, 3).load_state_dict(layer.state_dict())))
    return found


def numbers_of_features_after_loading(t):
    linear = t.nn.LazyLinear(3)
    linear.load_state_dict(t.nn.Linear(4, 3).state_dict())
    norm = t.nn.LazyBatchNorm1d()
    norm.load_state_dict(t.nn.BatchNorm1d(3).state_dict())
    found = []
    for layer in (linear, norm):
        found.append(repr(layer))
        layer(t.ones(2, 4 if layer is linear else 3))
        found.append(repr(layer))
    bare = t.nn.LazyBatchNorm1d(affine=False, track_running_stats=False)
    bare(t.ones(2, 3))
    return [*found, repr(bare)]


def layers_on_inputs_without_dims(t):
    return [tried(lambda: _lazy(t, name)(t.ones(()))) for name in LAYERS]  # noqa: B023


def helpers_on_lazy_layers(t):
    utils = t.nn.utils
    actions = [
        lambda: utils.skip_init(t.nn.LazyLinear, 3),
        lambda: utils.parameters_to_vector(t.nn.LazyLinear(3).parameters()),
        lambda: utils.spectral_norm(t.nn.LazyLinear(3)),
        lambda: utils.weight_norm(t.nn.LazyLinear(3)),
        lambda: utils.parametrizations.orthogonal(t.nn.LazyLinear(3)),
    ]
    return [tried(action) for action in actions]
