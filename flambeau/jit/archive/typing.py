"""Values of a pickle as values of the types that the archive's classes declare for them."""

from __future__ import annotations

from typing import Any

from flambeau._core.device import device
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.values import named_tuple
from flambeau.serialization.checks import brief, expect

SIMPLE: dict[T.Type, tuple[type, ...]] = {
    T.TENSOR: (Tensor,), T.INT: (int,), T.FLOAT: (float, int), T.BOOL: (bool,), T.STRING: (str,),
    T.COMPLEX: (complex,), T.DEVICE: (device,), T.NUMBER: (int, float, complex),
    T.NONE: (type(None),),
}  # fmt: skip
SMALLEST, LARGEST = -(2**63), 2**63 - 1


class Typing:
    """Checks the values of one pickle. A list that stands in two places is looked at once, and has
    one type: a program could else write through the one what the other must not hold.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, T.Type, Any]] = {}  # by identity: value, type, result

    def accurate(self, value: Any, wanted: T.Type, where: str) -> Any:
        """The value as one of a type: NamedTuples become their class.

        Raises:
            UnpicklingError: it is none of that type.
        """
        if isinstance(wanted, (T.OptionalType, T.UnionType)):
            return self.member(value, wanted, where)
        if wanted in SIMPLE:
            return simple(value, wanted, where)
        if isinstance(wanted, (T.ListType, T.DictType, T.TupleType)):
            return self.container(value, wanted, where)
        if isinstance(wanted, T.EnumType):
            expect(isinstance(value, wanted.python), f"{where} should be a {wanted}")
        elif wanted != T.ANY:
            own = getattr(value, "_type", None)
            expect(isinstance(own, T.Type) and own.is_subtype_of(wanted),
                   f"{where} should be of type {wanted}, but is {brief(value)}")  # fmt: skip
        return value

    def container(self, value: Any, wanted: Any, where: str) -> Any:
        """A list, dictionary or tuple."""
        known = self.known.get(id(value))
        if known is not None:
            expect(known[1] == wanted or isinstance(value, tuple),
                   f"{where} should be of type {wanted.annotation}, but the same value is of type "
                   f"{known[1].annotation} elsewhere")  # fmt: skip
            if known[1] == wanted:
                return known[2]
        kind = list if isinstance(wanted, T.ListType) else dict
        if isinstance(wanted, T.TupleType):
            result = self.tuple(value, wanted, where)
        else:
            expect(type(value) is kind,
                   f"{where} should be a {kind.__name__}, but is {brief(value)}")  # fmt: skip
            self.known[id(value)] = (value, wanted, value)
            result = self.list(value, wanted, where) if kind is list else self.dict(
                value, wanted, where)  # fmt: skip
        self.known[id(value)] = (value, wanted, result)
        return result

    def list(self, items: Any, wanted: T.ListType, where: str) -> Any:
        """The list with accurate elements."""
        items[:] = [self.accurate(item, wanted.element, where) for item in items]
        return items

    def dict(self, items: Any, wanted: T.DictType, where: str) -> Any:
        """The dictionary with accurate values."""
        for key, item in items.items():
            self.accurate(key, wanted.key, where)
            items[key] = self.accurate(item, wanted.value, where)
        return items

    def tuple(self, value: Any, wanted: T.TupleType, where: str) -> Any:
        """A tuple or NamedTuple with accurate elements."""
        count = len(wanted.elements)
        expect(isinstance(value, tuple) and len(value) == count,
               f"{where} should be a tuple of {count}, but is {brief(value)}")  # fmt: skip
        pairs = zip(value, wanted.elements, strict=True)
        parts = [self.accurate(item, type_, where) for item, type_ in pairs]
        return named_tuple(wanted)(*parts) if wanted.qualified_name else tuple(parts)

    def member(self, value: Any, wanted: Any, where: str) -> Any:
        """A value of one of several types: the first that it fits."""
        if value is None:
            expect(T.NONE.is_subtype_of(wanted), f"{where} should not be None")
            return None
        members = [member for member in T.alternatives(wanted) if member != T.NONE]
        fitting = [member for member in members if might_be(value, member)]
        expect(
            bool(fitting), f"{where} should be of type {wanted.annotation}, but is {brief(value)}"
        )
        if len(fitting) == 1:
            return self.accurate(value, fitting[0], where)
        from flambeau.jit.ir.values import type_of

        try:
            own = type_of(value)
        except (TypeError, RecursionError):
            own = T.ANY
        exact = [member for member in fitting if own.is_subtype_of(member)]
        return self.accurate(value, (exact or fitting)[0], where)


def simple(value: Any, wanted: T.Type, where: str) -> Any:
    """A value of a type without parts; a float may have been written as an int."""
    is_bool = isinstance(value, bool)
    fits = isinstance(value, SIMPLE[wanted]) and (wanted == T.BOOL or not is_bool)
    if not fits and wanted == T.TENSOR and value is None:
        return None  # an undefined tensor
    expect(fits, f"{where} should be of type {wanted.annotation}, but is {brief(value)}")
    if type(value) is int:
        expect(SMALLEST <= value <= LARGEST, f"{where}: {brief(value)} is out of the range of int")
    return float(value) if wanted == T.FLOAT else value


def might_be(value: Any, wanted: T.Type) -> bool:
    """Whether a value is of the right kind for a type, whatever its elements are."""
    if wanted in SIMPLE:
        return isinstance(value, SIMPLE[wanted]) and isinstance(value, bool) == (wanted == T.BOOL)
    if isinstance(wanted, T.TupleType):
        return isinstance(value, tuple) and len(value) == len(wanted.elements)
    if isinstance(wanted, T.ListType):
        return type(value) is list
    if isinstance(wanted, T.DictType):
        return type(value) is dict
    if isinstance(wanted, T.EnumType):
        return isinstance(value, wanted.python)
    own = getattr(value, "_type", None)
    return wanted == T.ANY or (isinstance(own, T.Type) and own.is_subtype_of(wanted))
