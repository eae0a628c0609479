"""`torch.__future__` and `torch.utils.swap_tensors`: who stays the same object.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import contextlib
import importlib
import weakref

from conformance.modules.module_attempts import tried


@contextlib.contextmanager
def _way(t, name):
    future = importlib.import_module(f"{t.__name__}.__future__")
    setter = getattr(future, f"set_{name}_module_params_on_conversion")
    setter(True)
    try:
        yield getattr(future, f"get_{name}_module_params_on_conversion")()
    finally:
        setter(False)


def _trained(t):
    layer = t.nn.Linear(2, 2)
    layer(t.ones(2)).sum().backward()
    return layer


def _who_stays(t, change):
    layer = _trained(t)
    weight, grad = layer.weight, layer.weight.grad
    outcome = tried(lambda: change(layer))
    now = layer.weight
    return [outcome if isinstance(outcome, tuple) else "done", now is weight, now.grad is grad,
            weight.dtype, now.dtype, grad.dtype, now.grad.dtype, type(now).__name__]  # fmt: skip


CHANGES = (
    lambda t, layer: layer.double(),
    lambda t, layer: layer._apply(lambda x: x),
    lambda t, layer: layer._apply(lambda x: x[:1].clone()),
    lambda t, layer: layer.load_state_dict(t.nn.Linear(2, 2).double().state_dict()),
    lambda t, layer: layer.load_state_dict(t.nn.Linear(2, 2).double().state_dict(), assign=True),
)


def swapping(t):
    with _way(t, "swap") as is_set:
        return is_set, [_who_stays(t, lambda m: change(t, m)) for change in CHANGES]  # noqa: B023


def overwriting(t):
    with _way(t, "overwrite") as is_set:
        return is_set, [_who_stays(t, lambda m: change(t, m)) for change in CHANGES]  # noqa: B023


def keeping(t):
    return [_who_stays(t, lambda m: change(t, m)) for change in CHANGES]  # noqa: B023


def swapped_buffers(t):
    with _way(t, "swap"):
        norm = t.nn.BatchNorm1d(2)
        mean = norm.running_mean
        norm.double()
        replaced = norm.running_mean is mean
        mean = norm.running_mean
        norm.load_state_dict(t.nn.BatchNorm1d(2).state_dict())
        return replaced, norm.running_mean is mean, norm.running_mean.dtype


def what_module_load_may_return(t):
    layer = t.nn.Linear(1, 1, bias=False)
    layer.weight.module_load = lambda other, assign=False: other
    with _way(t, "swap"):
        return tried(lambda: layer.load_state_dict({"weight": t.zeros(1, 1)}))


def to_another_layout(t):
    layer = t.nn.Linear(2, 2)
    weight = layer.weight
    layer._apply(lambda x: x.to_sparse() if x.dim() == 2 else x)
    return layer.weight is weight, layer.weight.is_sparse, layer.weight.requires_grad


def swapped_tensors(t):
    swap = t.utils.swap_tensors
    a, b = t.ones(2), t.nn.Parameter(t.zeros(3))
    b.grad = t.ones(3)
    a.tag = 1
    swap(a, b)
    found = [a, b, type(a).__name__, type(b).__name__, a.grad, b.grad, b.tag, hasattr(a, "tag")]
    reference = weakref.ref(a)
    found.append(tried(lambda: swap(a, b)))
    found.append(tried(lambda: swap(b, a)))
    return found, reference() is a


def swapped_history(t):
    x = t.ones(2, requires_grad=True)
    y, z = x * 2, t.zeros(2)
    t.utils.swap_tensors(y, z)
    z.sum().backward()
    return x.grad, y.requires_grad, z.requires_grad
