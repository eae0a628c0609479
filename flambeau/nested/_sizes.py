"""The size of a ragged dim: a symbol, equal to those of tensors with the very same offsets."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, NoReturn

LEAST = 2
"""What a ragged size is at least taken for."""
_numbers = itertools.count(1)
_known: dict[int, tuple[Any, int]] = {}


def number_of(offsets: Any) -> int:
    """The number of the symbol of an offsets tensor, the same as long as that tensor lives."""
    key = id(offsets)
    held = _known.get(key)
    if held is not None and held[0]() is offsets:
        return held[1]
    number = next(_numbers)
    _known[key] = (weakref.ref(offsets, lambda _: _known.pop(key, None)), number)
    return number


class NestedInt:
    """A ragged size, times a whole number: `j1`, `3*j1`."""

    __slots__ = ("factor", "number")

    def __init__(self, number: int, factor: int = 1) -> None:
        self.number = number
        self.factor = factor

    def __repr__(self) -> str:
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NestedInt):
            return (self.number, self.factor) == (other.number, other.factor)
        return False

    def __hash__(self) -> int:
        return hash((NestedInt, self.number, self.factor))

    def __mul__(self, other: Any) -> NestedInt:
        if isinstance(other, NestedInt) or not isinstance(other, int):
            return NotImplemented
        return NestedInt(self.number, self.factor * other)

    __rmul__ = __mul__

    def __ge__(self, other: Any) -> bool:
        if self == other or (isinstance(other, int) and other <= LEAST):
            return True
        raise ValueError("ge: relation is indeterminate")

    def __gt__(self, other: Any) -> bool:
        return self >= other + 1 if isinstance(other, int) else self != other and self >= other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other

    def _no_number(self) -> NoReturn:
        raise RuntimeError(f"the ragged size {self} is not one number: it differs from row to row")

    def __int__(self) -> NoReturn:
        self._no_number()

    __index__ = __int__
