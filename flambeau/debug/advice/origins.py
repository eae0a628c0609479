"""Where tensors come from: the operator that made each of the last few, and its operands'."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.debug.places import Line

LATELY = 512
"""Tensors that are remembered."""
DEPTH = 5
"""Operators back from a result that are remembered."""


class Origin:
    """The operator that made a tensor."""

    __slots__ = ("first", "line", "name", "number", "seconds", "shape", "spread")

    def __init__(self, name: str, values: tuple[Any, ...], result: Tensor, line: Line,
                 seconds: float, first: Origin | None) -> None:  # fmt: skip
        self.number = number_of(values[1]) if len(values) > 1 else None
        """The second operand, if that is one number."""
        self.name = "square" if is_square(name, values, self.number) else name
        self.line, self.seconds, self.shape = line, seconds, result._data.shape
        self.first = first
        """The origin of the first operand."""
        self.spread: Any = None
        """Of a result that both operands were broadcast to: see broadcasts.py."""

    def forget(self) -> None:
        """Cut the path, so that no memory is held by what lies too far back."""
        origin: Origin | None = self
        for _ in range(DEPTH):
            origin = origin.first if origin is not None else None
        if origin is not None:
            origin.first = None


def number_of(value: Any) -> float | None:
    """The value of a number or a tensor without dims."""
    if isinstance(value, Tensor):
        data = value._data
        return float(data) if data.ndim == 0 and data.dtype.kind in "fiu" else None
    return float(value) if isinstance(value, (float, int)) else None


def is_square(name: str, values: tuple[Any, ...], number: float | None) -> bool:
    """Whether a call is `x.square()`, `x ** 2` or `x * x`."""
    if name == "mul":
        return values[0] is values[1]
    return name == "square" or (name == "pow" and number == 2)  # noqa: PLR2004


class Origins:
    """By tensor, of the last ones. Holds no tensor."""

    def __init__(self) -> None:
        self.known: OrderedDict[int, tuple[Any, Origin]] = OrderedDict()

    def of(self, value: Any) -> Origin | None:
        """Where a value comes from."""
        found = self.known.get(id(value))
        if found is None or found[0]() is not value:
            return None
        return found[1]

    def note(self, tensor: Tensor, origin: Origin) -> None:
        """Remember a new tensor, or what was done to one in place."""
        origin.forget()
        self.known.pop(id(tensor), None)
        self.known[id(tensor)] = (weakref.ref(tensor), origin)
        if len(self.known) > LATELY:
            self.known.popitem(last=False)
