"""Annotations of classes, and the types that Python's type objects stand for."""

from __future__ import annotations

import collections.abc
import enum
import inspect
import sys
import types
import typing
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.class_homes import own_module
from flambeau._core.device import device
from flambeau._core.generator import Generator
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T

SIMPLE: dict[Any, T.Type] = {
    int: T.INT, float: T.FLOAT, complex: T.COMPLEX, bool: T.BOOL, str: T.STRING,
    None: T.NONE, type(None): T.NONE, Any: T.ANY, device: T.DEVICE, Generator: T.GENERATOR,
    dt.dtype: T.INT, inspect.Parameter.empty: T.TENSOR,
}  # fmt: skip
BARE = {getattr(typing, name): name for name in ("List", "Dict", "Tuple", "Optional", "Union")}
"""Types that lack the types of their elements."""
_NO_DEFAULT: Any = object()


def annotations_of(owner: type) -> dict[str, Any]:
    """The annotations of a class, or of the first base that has any; texts are evaluated where
    they can be.
    """
    for base in owner.__mro__:
        notes = inspect.get_annotations(base)
        if notes:
            home = own_module(base)
            scope = vars(sys.modules[home]) if home in sys.modules else {}
            return {name: _evaluated(note, scope) for name, note in notes.items()}
    return {}


def _evaluated(note: Any, scope: dict[str, Any]) -> Any:
    if not isinstance(note, str):
        return note
    try:
        return eval(note, dict(scope))  # noqa: S307 - the text of a class that has been imported
    except Exception:  # noqa: BLE001 - it names what is known to type checkers only
        return note


def is_final(note: Any) -> bool:
    """Whether an annotation is `Final` or `Final[T]`."""
    return note is typing.Final or typing.get_origin(note) is typing.Final


def type_of_annotation(note: Any, default: Any = _NO_DEFAULT) -> Any:
    """The type that an annotation stands for.

    Raises:
        ValueError: none; where `default` is given, that is returned.
        RuntimeError: a container without the type of its elements.
    """
    found = _type(note)
    if found is not None:
        return found
    if default is not _NO_DEFAULT:
        return default
    raise ValueError(f"Unknown type annotation: '{note}' at ")


def _type(note: Any) -> T.Type | None:
    if note in BARE if isinstance(note, collections.abc.Hashable) else False:
        name = BARE[note]
        example = {"Dict": "Dict[int, int]", "Tuple": "Tuple[int, int]"}.get(name, f"{name}[int]")
        raise RuntimeError(
            f"Attempted to use {name} without a contained type. Please add a contained type, "
            f"e.g. {example}"
        )
    if isinstance(note, collections.abc.Hashable) and note in SIMPLE:
        return SIMPLE[note]
    origin, arguments = typing.get_origin(note), typing.get_args(note)
    if origin is typing.Final:
        return _type(arguments[0])
    if origin is not None:
        return _of_parts(origin, arguments)
    return _of_class(note) if inspect.isclass(note) else None


def _of_parts(origin: Any, arguments: tuple[Any, ...]) -> T.Type | None:
    arguments = () if arguments == ((),) else arguments
    parts = [_type(part) for part in arguments]
    if any(part is None for part in parts):
        return None
    known: list[Any] = parts
    if origin is list:
        return T.ListType(known[0])
    if origin is dict:
        return T.DictType(*known)
    if origin is tuple:
        return T.TupleType(tuple(known))
    if origin in (typing.Union, types.UnionType):
        if set(arguments) == {int, float, complex}:
            return T.NUMBER
        return T.union(known)
    return T.FutureType(known[0]) if getattr(origin, "__name__", "") == "Future" else None


def _of_class(note: Any) -> T.Type | None:
    if issubclass(note, Tensor):
        return T.TENSOR
    if issubclass(note, enum.Enum):
        from flambeau.jit.modules.enums import enum_type

        return enum_type(note)
    if issubclass(note, tuple) and hasattr(note, "_fields"):
        from flambeau.jit.modules.named_tuples import named_tuple_type

        return named_tuple_type(note)
    from flambeau.jit.modules.classes import can_be_compiled, class_type_of, known_class
    from flambeau.jit.modules.interfaces import interface_type

    known = interface_type(note) or known_class(note)
    if known is None and can_be_compiled(note):
        known = class_type_of(note)
    return known
