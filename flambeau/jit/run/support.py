"""What generated functions call beside operators."""

from __future__ import annotations

from typing import Any, NoReturn

from flambeau._tensor.tensor import Tensor
from flambeau.jit.errors import Error
from flambeau.jit.ir import types as T
from flambeau.jit.ir.values import ScriptObject, type_of
from flambeau.jit.operators.tensors import tolist
from flambeau.nn import Module


class Raised(Error):
    """What a program raises by itself, before it is told where: see `failures`."""

    def __init__(self, message: str, class_name: str | None) -> None:
        super().__init__(message)
        self.class_name = class_name


def raise_exception(message: str, class_name: str | None = None) -> NoReturn:
    """`raise` of a program."""
    raise Raised(message, class_name)


def wrong_length(items: list[Any], wanted: int) -> NoReturn:
    """A list that cannot be unpacked."""
    raise RuntimeError(f"Expected {wanted} elements in a list but found {len(items)}")


def matches(value: Any, types: tuple[T.Type, ...]) -> bool:
    """`isinstance` of a program."""
    seen: Answers = {}
    return any(_matches(value, wanted, seen) for wanted in types)


Answers = dict[tuple[int, int], bool]
"""What is known of containers, by their identity and their type's: lists may hold one list many
times, on every level, and are looked at once."""


SIMPLE: dict[T.Type, type] = {
    T.TENSOR: Tensor, T.STRING: str, T.FLOAT: float, T.COMPLEX: complex, T.BOOL: bool,
}  # fmt: skip


def _matches(value: Any, wanted: T.Type, seen: Answers) -> bool:
    if wanted in SIMPLE:
        return isinstance(value, SIMPLE[wanted])
    if wanted == T.INT:
        return type(value) is int
    if wanted in (T.NONE, T.ANY):
        return value is None or wanted == T.ANY
    if wanted == T.ANY_LIST:
        return isinstance(value, list)
    if wanted == T.ANY_TUPLE:
        return isinstance(value, tuple)
    if isinstance(wanted, (T.OptionalType, T.UnionType)):
        return any(_matches(value, part, seen) for part in T.alternatives(wanted))
    if not isinstance(value, (list, dict, tuple)):
        return _has_type(value, wanted)
    key = (id(value), id(wanted))
    if key not in seen:
        seen[key] = _holds(value, wanted, seen)
    return seen[key]


def _holds(value: Any, wanted: T.Type, seen: Answers) -> bool:
    """Whether a container is of a type, with all that it holds."""
    if isinstance(wanted, T.ListType):
        return isinstance(value, list) and all(_matches(v, wanted.element, seen) for v in value)
    if isinstance(wanted, T.DictType):
        return isinstance(value, dict) and all(
            _matches(k, wanted.key, seen) and _matches(v, wanted.value, seen)
            for k, v in value.items()
        )
    if not isinstance(wanted, T.TupleType) or not isinstance(value, tuple):
        return False
    return len(value) == len(wanted.elements) and all(
        _matches(v, element, seen) for v, element in zip(value, wanted.elements, strict=True)
    )


def _has_type(value: Any, wanted: T.Type) -> bool:
    if isinstance(wanted, T.EnumType):
        return isinstance(value, wanted.python)
    try:
        return type_of(value).is_subtype_of(wanted)
    except TypeError:
        return False


KINDS = ("int", "float", "complex", "bool")


def as_list(tensor: Any, dim: int, kind: int) -> Any:
    """`tensor.tolist()` of an annotated type."""
    return tolist(tensor, dim, KINDS[kind])


def method_of(value: Any, name: str) -> Any:
    """The compiled method of an object of which only the interface is known."""
    from flambeau.jit.run.program import callable_of

    if not isinstance(value, (ScriptObject, Module)):
        raise RuntimeError(f"an object without methods was called: {type(value).__name__}")
    function = value._type.methods[name]  # type: ignore[union-attr]
    return callable_of(function, getattr(function.unit, "meter", None))


def wrong_class(value: Any, wanted: T.ClassType) -> None:
    """An object that is not of the class that a program takes it for, unless it is a copy of it."""
    found = getattr(value, "_type", None)
    if not (isinstance(found, T.ClassType) and found.is_subtype_of(wanted)):
        raise RuntimeError(f"an object of {wanted} was expected, but found {type(value).__name__}")
