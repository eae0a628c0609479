"""Objects that are no tensors, and modes.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import operator

from conformance.overriding.classes import (
    AlsoDeclines,
    Asked,
    AskedFirst,
    Declines,
    Diagonal,
    logged,
    name_of,
)
from conformance.side_by_side import attempt


def _diagonal(t):
    def mean(value):
        return value.value / value.count

    def add(value, other):
        if isinstance(other, Diagonal):
            return Diagonal(value.count, value.value + other.value)
        return t.add(t.eye(value.count) * value.value, other)

    return type("Diagonal", (Diagonal,), {"handlers": {t.mean: mean, t.add: add}})


def diagonal_matrices(t):
    kind = _diagonal(t)
    d = kind(5, 2.0)
    return (
        t.mean(d), repr(t.add(d, d)), t.add(d, t.ones(5, 5)), attempt(t.tanh, d),
        attempt(t.sum, d, dim=0), attempt(t.add, t.ones(1), kind(1, 2.0)).text[:40],
    )  # fmt: skip


def asked_by_functions(t):
    Asked.log.clear()
    a = Asked()
    answers = [
        t.add(a, 1), t.add(t.ones(2), a), t.exp(a), t.sum(a), t.mean(a, 0), t.cat([a, t.ones(1)]),
        t.stack((a, a)), t.max(a, 0), t.where(t.ones(2) > 0, a, t.ones(2)), t.softmax(a, 0),
        t.zeros_like(a), t.transpose(a, 0, 1), t.reshape(a, (2, 3)), t.matmul(a, a), t.split(a, 1),
        t.clamp(a, 0, 1), t.linalg.inv(a), t.fft.fft(a), t.relu_(a), t.add(a, 1, alpha=2),
    ]  # fmt: skip
    return answers, [entry[:3] for entry in Asked.log]


def asked_by_functional(t):
    Asked.log.clear()
    a, functional = Asked(), t.nn.functional
    answers = [
        functional.relu(a), functional.linear(a, t.ones(2, 2)), functional.dropout(a),
        functional.softmax(a, dim=0), functional.mse_loss(a, t.ones(2)), functional.gelu(a),
        functional.layer_norm(a, (3,)), functional.conv2d(a, t.ones(1, 1, 2, 2)),
        functional.embedding(a, t.ones(2, 2)), functional.cross_entropy(a, a),
    ]  # fmt: skip
    return answers, [entry[:2] for entry in Asked.log]


def asked_by_methods(t):
    a, x = Asked(), t.ones(2)
    return x.add(a), x.mul(a), x + a, x.matmul(a), x.eq(a), x.pow(a), x.add_(a), x.dot(a)


def who_is_asked_first(t):
    Asked.log.clear()
    answers = [
        t.add(Asked(), AskedFirst()),
        t.add(AskedFirst(), Asked()),
        t.add(Declines(), Asked()),
    ]
    t.cat([Declines(), t.ones(1), Declines(), AskedFirst()])
    return answers, [entry[:3] for entry in Asked.log]


def subclass_and_object(t):
    log = []
    Asked.log.clear()
    x = t.ones(2).as_subclass(logged(t, log))
    return attempt(t.add, x, Asked()), attempt(t.add, Asked(), x), log, Asked.log[:]


def nobody_takes_over(t):
    d = Declines()
    calls = [
        lambda: t.add(d, 1), lambda: t.add(t.ones(1), d), lambda: t.nn.functional.relu(d),
        lambda: t.cat([d, t.ones(1)]), lambda: t.max(d, AlsoDeclines()), lambda: t.softmax(d, 0),
        lambda: t.sum(d, dim=0), lambda: t.ones(1) + d, lambda: t.zeros_like(d),
    ]  # fmt: skip
    return [attempt(call) for call in calls]


def errors_of_handlers_are_kept(t):
    class Fails:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise ValueError("not today")

    return attempt(t.add, Fails(), 1), attempt(t.nn.functional.relu, Fails())


def functions_of_the_user(t):
    overrides = t.overrides

    def double(x):
        if overrides.has_torch_function_unary(x):
            return overrides.handle_torch_function(double, (x,), x)
        return x * 2

    Asked.log.clear()
    return double(t.ones(2)), double(Asked()), Asked.log[:]


def wrapped_functions(t):
    def relevant(a, b=None):
        return a, b

    @t.overrides.wrap_torch_function(relevant)
    def total(a, b=None):
        return a + b

    Asked.log.clear()
    return total(t.ones(1), 2), total(t.ones(1), b=Asked()), Asked.log[:], total.__name__


def questions(t):
    overrides = t.overrides
    kind = type("Plain", (t.Tensor,), {})
    x, p, s = t.ones(1), t.nn.Parameter(t.ones(1)), t.ones(1).as_subclass(kind)
    values = [x, p, s, Asked(), 3, None, [s]]
    return (
        [overrides.has_torch_function((value,)) for value in values[:-1]],
        [overrides.has_torch_function_unary(value) for value in values[:-1]],
        overrides.has_torch_function_variadic(x, 3, s), overrides.has_torch_function_variadic(x, p),
        [overrides.is_tensor_like(value) for value in values],
        overrides.is_tensor_method_or_property(t.Tensor.add_),
        overrides.is_tensor_method_or_property(t.Tensor.shape.__get__),
        overrides.is_tensor_method_or_property(t.nn.functional.linear),
        t.add in overrides.get_ignored_functions(), t.zeros in overrides.get_ignored_functions(),
        t.Tensor.as_subclass in overrides.get_ignored_functions(),
        t.Tensor.grad.__get__ in overrides.get_default_nowrap_functions(),
    )  # fmt: skip


def names_of_functions(t):
    functions = [t.add, t.nn.functional.relu, t.linalg.inv, t.Tensor.add_, t.Tensor.__getitem__,
                 t.Tensor.shape.__get__, t.matmul, t.einsum, t.fft.fft, len]  # fmt: skip
    return [t.overrides.resolve_name(function) for function in functions]


# ---- Python's operators

OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le gt ge eq ne"
).split()


class _Answering:
    """No tensor, and asked for all that is done to it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return [type(value).__name__ for value in args]


class _Declining:
    """Asked, declines, and has operators of its own."""

    __array_ufunc__ = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented

    def __getattr__(self, name):
        raise AttributeError(name)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "lshift"):
    setattr(_Declining, f"__r{_name}__", lambda self, other, _name=_name: f"reflected {_name}")


def operators_with_objects(t):
    x = t.ones(2)
    return [attempt(getattr(operator, name), x, _Answering()) for name in OPERATORS]


def operators_of_objects_that_decline(t):
    x = t.ones(2)
    found = [attempt(getattr(operator, name), x, _Declining()) for name in OPERATORS]
    return [value if isinstance(value, str) else type(value).__name__ for value in found]


# ---- modes


def _noting(t, log, title="Noting"):
    def note(self, func, types, args=(), kwargs=None):
        log.append((title, name_of(func)))
        return func(*args, **(kwargs or {}))

    return type(title, (t.overrides.TorchFunctionMode,), {"__torch_function__": note})


def mode_sees_functions(t):
    log = []
    with _noting(t, log)():
        x = t.zeros(2)
        y = t.exp(x) + 1
        t.nn.functional.relu(y)
        t.matmul(y, y)
        y.sum()
        y[0]
        t.cat([y, y], dim=0)
        t.tensor([1.0])
    t.ones(2)
    return log


def mode_replaces_results(t):
    class Zeros(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is t.ones:
                return t.zeros(*args, **(kwargs or {}))
            return func(*args, **(kwargs or {}))

    with Zeros():
        inside = t.ones(2)
    return inside, t.ones(2)


def modes_in_modes(t):
    log = []
    outer, inner = _noting(t, log, "Outer")(), _noting(t, log, "Inner")()
    with outer, inner:
        t.exp(t.zeros(2))
    return log


def mode_and_subclass(t):
    log, calls = [], []
    x = t.ones(2).as_subclass(logged(t, calls))
    with _noting(t, log)():
        y = t.tanh(x)
    return log, calls, type(y).__name__


def mode_that_declines(t):
    class Declining(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Declining():
        found = attempt(t.exp, t.Tensor())
    return type(found).__name__, getattr(found, "kind", None)


def base_mode_changes_nothing(t):
    with t.overrides.BaseTorchFunctionMode():
        x = t.ones(2) * 3
    return x, type(x).__name__


def mode_survives_an_error(t):
    log = []
    mode = _noting(t, log)

    def broken():
        with mode():
            t.exp(t.zeros(1))
            raise ValueError("out")

    found = attempt(broken)
    t.exp(t.zeros(1))
    return found, log


def modes_and_classes_that_decline(t):
    """A subclass that a mode declines is asked; then the mode is asked as of plain tensors."""
    log = []

    class Mode(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((name_of(func), len(types)))
            return NotImplemented if types else func(*args, **(kwargs or {}))

    kind = type("Plain", (t.Tensor,), {})
    x = t.ones(2).as_subclass(kind)

    def own(value):
        if t.overrides.has_torch_function((value,)):
            return t.overrides.handle_torch_function(own, (value,), value)
        return value

    with Mode():
        results = [t.neg(x), x.sum(), own(x)]
    return [type(result).__name__ for result in results], log


def modes_by_class_methods(t):
    class Mode(t.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def run():
        with Mode():
            return t.ones(2).exp()

    return attempt(run)


def what_is_no_sequence(t):
    return [attempt(t.overrides.has_torch_function, value) for value in (3, object(), {1, 2}, ())]
