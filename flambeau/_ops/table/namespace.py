"""From rows to names: functions, methods and in-place forms, made when first used."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flambeau._ops.table import binder, loading, renamed, twins
from flambeau._ops.table.dispatch import make
from flambeau._ops.table.elementwise_path import make_inplace, make_inplace_operator, make_operator
from flambeau._ops.table.inplace import make_kernel_inplace
from flambeau._ops.table.op import ALIASES, BY_NAME, REGISTRY, Op
from flambeau._tensor import overriding
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, wrap

_functions: dict[str, Callable[..., Any]] = {}
_methods: dict[str, Callable[..., Any]] = {}
"""What takes sizes one by one, where the function does not."""
_as_methods: dict[str, Callable[..., Any]] = {}


def get(name: str) -> Callable[..., Any]:
    """The function of a public name ("softmax", "linalg.inv"); KeyError if there is none."""
    found = _functions.get(name)
    if found is None:
        loading.load(name)
        found = _alias(name) if name in ALIASES else _of_lists(name, _build(name, BY_NAME[name]))
        _functions[name] = found
        loading.announce(name, found)
    return found


def _takes_loose_sizes(op: Op) -> bool:
    if not (op.function and op.method) or op.name.endswith("split"):
        return False
    return _starts_with_tensor(op) and binder.takes_size_list(op)


def _of_lists(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The function beside a method that takes sizes one by one, as `x.permute(1, 0)`: it takes them
    as a list, `torch.permute(x, (1, 0))`."""
    op = BY_NAME[name][0]
    if len(BY_NAME[name]) > 1 or not _takes_loose_sizes(op):
        return method
    _methods[name] = method

    @functools.wraps(method)
    def function(*args: Any, **words: Any) -> Any:
        if len(args) > 1 and (len(args) > 2 or binder.is_integer(args[1])):  # noqa: PLR2004
            raise binder.not_a_list(op, args)
        return method(*args, **words)

    return function


def _alias(name: str) -> Callable[..., Any]:
    function = get(ALIASES[name])
    if name.startswith("nn."):  # `nn.functional.conv2d` is `torch.conv2d`
        return renamed.by_other_names(name, function)
    return renamed.by_other_names(name, known_as(function, ALIASES[name], name))


def _build(name: str, ops: list[Op]) -> Callable[..., Any]:
    if len(ops) == 1:
        return _form(make, ops[0])
    return chooser(name, sorted(ops, key=lambda op: op.order), partial(_form, make))


@functools.cache
def _form(build: Callable[[Op], Callable[..., Any]], op: Op) -> Callable[..., Any]:
    """The function of a single row, or its in-place form."""
    return build(op)


def known_as(function: Any, name: str, called: str) -> Any:
    """A function that does what `function`, that of the rows of a name, does, known as `called`."""
    build = getattr(function, "build", None)
    if build is None:
        return twins.twin(function, called)
    made = chooser(name, function.ops, lambda op: twins.twin(build(op), called), called)
    return twins.named(made, called)


def chooser(name: str, ops: list[Op], build: Callable[[Op], Callable[..., Any]],
            called: str = "") -> Any:  # fmt: skip
    """A function that calls the first overload that the arguments fit.

    The choice is remembered by the arguments' types, so that a repeated call costs one look-up.
    """
    chosen: dict[Any, Callable[..., Any]] = {}
    built: dict[str, Callable[..., Any]] = {}
    quick: dict[Any, Callable[..., Any]] = {}  # by class alone, where that settles the choice
    tensor_first = min(_starts_with_tensor(op) for op in ops)

    def overloaded(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            function = quick.get(tuple(map(type, args)))
            if function is None:
                function = chosen.get(tuple(map(_type_key, args)))
            if function is not None:
                return function(*args)
        out = kwargs.pop("out", None) if "out" in kwargs else None
        key = (*map(_type_key, args), *((k, _type_key(v)) for k, v in kwargs.items()))
        function = chosen.get(key)
        if function is None:
            function = chosen[key] = choose(args, kwargs)
        if tensor_first and not kwargs and PLAIN_CLASSES.issuperset(map(type, args[1:])):
            quick[tuple(map(type, args))] = function
        return function(*args, **kwargs) if out is None else function(*args, **kwargs, out=out)

    def choose(args: Any, kwargs: Any) -> Callable[..., Any]:
        for op in ops:
            if binder.bind(op, args, kwargs) is not None:
                if op.full_name not in built:
                    built[op.full_name] = build(op)
                return built[op.full_name]
        if any(isinstance(value, np.ndarray) for value in args):
            return with_tensors
        if overriding.overloaded((*args, *kwargs.values())):
            return ask
        raise binder.no_overload_error(name.rpartition(".")[2], ops, args, kwargs, called)

    def with_tensors(*args: Any, **kwargs: Any) -> Any:
        """Arrays of NumPy's among the arguments are tensors, as for rows of a single form."""
        listed = [wrap(value) if isinstance(value, np.ndarray) else value for value in args]
        if all(binder.bind(op, tuple(listed), kwargs) is None for op in ops):
            raise binder.no_overload_error(name.rpartition(".")[2], ops, args, kwargs, called)
        return overloaded(*listed, **kwargs)

    def ask(*args: Any, **kwargs: Any) -> Any:
        """Let a class among the arguments take over a call that fits no overload."""
        taken, result = overriding.asked(overloaded, args, kwargs)
        if not taken:
            raise binder.no_overload_error(name.rpartition(".")[2], ops, args, kwargs, called)
        return result

    overloaded.__name__ = overloaded.__qualname__ = name.rpartition(".")[2]
    overloaded.__module__ = "torch"
    overloaded.__doc__ = "\n\n".join(op.doc for op in ops)
    overloaded.ops = ops  # type: ignore[attr-defined]
    overloaded.build = build  # type: ignore[attr-defined]
    return overloaded


PLAIN_CLASSES = frozenset((int, float, bool, str, type(None)))
"""Arguments of these classes choose an overload by their class alone."""


def _starts_with_tensor(op: Op) -> bool:
    first = op.schema.arguments[0] if op.schema.arguments else None
    return first is not None and first.is_tensor and not first.is_list


def _type_key(value: Any) -> Any:
    if value.__class__ in PLAIN_CLASSES:
        return value.__class__
    if value.__class__ is not Tensor and isinstance(value, (tuple, list)):
        return (value.__class__, value[0].__class__ if value else None)
    if isinstance(value, Tensor):
        try:
            return (Tensor, value._data.ndim == 0, value._data.dtype.kind, value._requires_grad)
        except NotStrided:
            return value.__class__
    return value.__class__


class Namespace:
    """Rows as attributes: `ops.softmax`, `ops.linalg.inv`; what formulas and composites call."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        path = f"{self._prefix}{name}"
        if path in BY_NAME:
            public = get(path)
            function: Any = _methods.get(path, public)
        elif path.endswith("_") and any(op.inplace for op in BY_NAME.get(path[:-1], ())):
            function = _inplace_method(path[:-1])
        elif any(known.startswith(f"{path}.") for known in list(BY_NAME)):  # others import rows
            function = Namespace(f"{path}.")
        else:
            raise AttributeError(f"no operator {path!r}")
        setattr(self, name, function)
        return function


ops = Namespace()


class LazyMethod:
    """Stands in the class until a method is first used, then puts the real function there."""

    def __init__(self, name: str, build: Callable[[], Callable[..., Any]]) -> None:
        self.name = name
        self.build = build

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        function = self.build()
        setattr(Tensor, self.name, function)
        return function if instance is None else function.__get__(instance, owner)


def method_of(name: str) -> Callable[..., Any]:
    """The method of Tensor that rows give a name: a twin of the function, or of the in-place
    form."""
    if not (dict.__contains__(BY_NAME, name) or loading.is_indexed(name)):
        return _inplace_method(name.removesuffix("_"))
    row = ALIASES.get(name, name)
    function = get(row)
    made = known_as(_methods.get(row, function), row, f"Tensor.{name}")
    return _as_method(name, renamed.by_other_names(name, made))


def _inplace_method(name: str) -> Callable[..., Any]:
    row, own = ALIASES.get(name, name), f"{name}_"
    if own in _as_methods:
        return _as_methods[own]
    made = known_as(get_inplace(row), f"{row}_", f"Tensor.{own}")
    return _as_method(own, renamed.by_other_names(name, made))


def _as_method(name: str, made: Callable[..., Any]) -> Callable[..., Any]:
    """A method under its own name; threads that ask at once get the same."""
    return _as_methods.setdefault(name, twins.named(made, f"Tensor.{name}"))


def attach_operators() -> None:
    """Give Tensor those operators of Python that are rows."""
    for dunder, name in OPERATORS.items():
        build = partial(_operator, name, dunder)
        setattr(Tensor, dunder, LazyMethod(dunder, build))
    for dunder, name in INPLACE_OPERATORS.items():
        setattr(Tensor, dunder, LazyMethod(dunder, partial(_inplace_operator, name, dunder)))


_inplace: dict[str, Callable[..., Any]] = {}


def get_inplace(name: str) -> Callable[..., Any]:
    """The in-place form of a public name: get_inplace("add") is `add_`."""
    found = _inplace.get(name)
    if found is None:
        loading.load(name)
    if found is None and name in ALIASES:
        function = known_as(get_inplace(ALIASES[name]), f"{ALIASES[name]}_", f"{name}_")
        found = _inplace[name] = renamed.by_other_names(name, function)
    if found is None:
        ops_ = sorted((op for op in BY_NAME[name] if op.inplace), key=lambda op: op.order)
        if len(ops_) == 1:
            found = _form(_make_inplace, ops_[0])
        else:
            found = chooser(f"{name}_", ops_, partial(_form, _make_inplace))
        _inplace[name] = found
        loading.announce(f"{name}_", found)
    return found


def _make_inplace(op: Op) -> Callable[..., Any]:
    return make_inplace(op) if op.kind == "pointwise" else make_kernel_inplace(op)


def _operator(name: str, dunder: str) -> Callable[..., Any]:
    loading.load(name.partition(".")[0])
    function = make_operator(REGISTRY[name], f"Tensor.{overriding.CALLED.get(dunder, dunder)}")
    if dunder not in overriding.CALLED:  # there it goes by the method's name
        function.__name__ = dunder
    return function


def _inplace_operator(name: str, dunder: str) -> Callable[..., Any]:
    loading.load(name.partition(".")[0])
    called = f"Tensor.{overriding.CALLED.get(dunder, dunder)}"
    return make_inplace_operator(REGISTRY[name], called)


OPERATORS = {
    "__add__": "add.Tensor", "__radd__": "add.Tensor", "__sub__": "sub.Tensor",
    "__rsub__": "rsub.Tensor", "__mul__": "mul.Tensor", "__rmul__": "mul.Tensor",
    "__truediv__": "div.Tensor", "__div__": "div.Tensor",
    "__lt__": "lt.Tensor", "__le__": "le.Tensor", "__gt__": "gt.Tensor", "__ge__": "ge.Tensor",
    "__eq__": "eq.Tensor", "__ne__": "ne.Tensor",
    "__and__": "bitwise_and.Tensor", "__or__": "bitwise_or.Tensor",
    "__xor__": "bitwise_xor.Tensor", "__rand__": "bitwise_and.Tensor",
    "__ror__": "bitwise_or.Tensor", "__rxor__": "bitwise_xor.Tensor",
    "__lshift__": "bitwise_left_shift.Tensor", "__rshift__": "bitwise_right_shift.Tensor",
}  # fmt: skip
"""Python's operators that are one pointwise row each; the others are in `operators.py`."""

INPLACE_OPERATORS = {
    "__iadd__": "add.Tensor", "__isub__": "sub.Tensor", "__imul__": "mul.Tensor",
    "__itruediv__": "div.Tensor", "__idiv__": "div.Tensor", "__iand__": "bitwise_and.Tensor",
    "__ior__": "bitwise_or.Tensor", "__ixor__": "bitwise_xor.Tensor",
    "__ifloordiv__": "floor_divide", "__imod__": "remainder.Tensor",
    "__ilshift__": "bitwise_left_shift.Tensor", "__irshift__": "bitwise_right_shift.Tensor",
}  # fmt: skip
