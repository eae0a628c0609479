"""Members by path, checks of arguments, conversions and their refusals.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

from conformance.modules.module_attempts import names_of, tried

PATHS = ("", "0", "0.weight", "nope", "0.", ".", None, 0, 3, b"0", ["0"], "b", "x")


def _net(t):
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.BatchNorm1d(2))
    net.register_buffer("b", t.ones(1))
    net.x = 3
    return net


def paths(t):
    net = _net(t)
    lookups = (net.get_submodule, net.get_parameter, net.get_buffer)
    return [tried(lambda: lookup(path)) for lookup in lookups for path in PATHS]  # noqa: B023


def submodules_set_at_paths(t):
    found = []
    for path in (*PATHS, "0.new", "b.c"):
        for module in (t.nn.ReLU(), 3, t.nn.ReLU, None):
            net = _net(t)
            found.append((str(path), tried(lambda: net.set_submodule(path, module))))  # noqa: B023
            found.append(names_of(net))
    return found


def prefixes_of_wrong_types(t):
    net = _net(t)
    walks = (net.named_parameters, net.named_buffers, net.named_modules)
    return [
        tried(lambda: [name for name, _ in walk(prefix=prefix)])  # noqa: B023
        for walk in walks
        for prefix in ("p", 3, None)
    ]


def state_dict_arguments(t):
    net = t.nn.Linear(1, 1)
    actions = [
        lambda: list(net.state_dict({}, "k.", True, 4)),
        lambda: net.state_dict(foo=1),
        lambda: net.zero_grad(foo=1),
        lambda: net.float(3),
        lambda: net.to_empty(),
        lambda: net.register_forward_hook(),
    ]
    return [tried(action) for action in actions]


def what_to_takes(t):
    one = t.ones(1)
    arguments = [
        ((t.float64,), {}), (("cpu",), {}), (("cpu", t.float64), {}), ((t.float64, "cpu"), {}),
        ((None,), {}), ((None, True), {}), ((t.device("cpu"), True), {}), (([],), {}),
        ((), {"copy": True}), ((), {"memory_format": 3}), ((), {"foo": 1}), ((one, 3), {}),
        ((), {"other": one}), ((), {"tensor": one}), ((t.int32,), {}), ((one.int(),), {}),
        ((t.float64, 1), {}), ((t.float64, False, True), {}), ((float,), {}), ((3,), {}),
        (("cpu", t.long, True), {}), ((t.float16,), {"dtype": t.float32}), ((), {}),
    ]  # fmt: skip
    found = []
    for args, kwargs in arguments:
        found.append(tried(lambda: t.nn.Linear(1, 1).to(*args, **kwargs).weight.dtype))  # noqa: B023
        found.append(tried(lambda: t.ones(1).to(*args, **kwargs)))  # noqa: B023
    return found


def type_takes(t):
    kinds = (t.float64, t.DoubleTensor, "torch.HalfTensor", "foo", 3, None, t.int32)
    return [tried(lambda: t.nn.Linear(1, 1).type(kind).weight.dtype) for kind in kinds]  # noqa: B023


def requires_grad_takes(t):
    return [
        tried(lambda: t.nn.Linear(1, 1).requires_grad_(value).weight.requires_grad)  # noqa: B023
        for value in (True, False, None, 0, 1, "a")
    ]


def apply_functions_that_give_no_tensor(t):
    return [
        tried(lambda: t.nn.Linear(1, 1)._apply(function))  # noqa: B023
        for function in (lambda x: 3, lambda x: None, lambda x: x + 1, 3)
    ]


def apply_hands_over_parameters(t):
    kinds = []

    def note(tensor):
        kinds.append((type(tensor).__name__, tensor.requires_grad, t.is_grad_enabled()))
        return tensor

    layer = t.nn.BatchNorm1d(2)
    layer.weight.grad = t.ones(2)
    layer._apply(note)
    return kinds


def states_of_single_numbers(t):
    class Net(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.s = t.nn.Parameter(t.tensor(1.0))

    shapes = ((), (1,), (2,), (1, 1), (0,))
    return [tried(lambda: Net().load_state_dict({"s": t.ones(shape)})) for shape in shapes]  # noqa: B023


def gradients_of_what_is_no_leaf(t):
    import warnings

    y = t.ones(2, requires_grad=True) * 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = y.grad
    text = str(caught[0].message).partition(" (Triggered internally")[0]
    return found, text, caught[0].filename == __file__


def replicas(t):
    layer = t.nn.ParameterDict({"a": t.ones(1)})
    layer.register_buffer("b", t.ones(2))
    replica = layer._replicate_for_data_parallel()
    replica.a = layer.a.view_as(layer.a)
    return [replica._is_replica, list(replica._parameters), list(replica._buffers),
            replica._buffers is layer._buffers, replica["a"].requires_grad]  # fmt: skip
