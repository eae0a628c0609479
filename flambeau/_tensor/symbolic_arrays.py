"""Arrays of tensors whose sizes are symbols: those without numbers, which have a layout in two
forms. NumPy sees sizes of this run; who asks for `shape` and `strides` in Python sees symbols."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flambeau._tensor.symbolic_numbers import is_symbolic
from flambeau._tensor.wrappers import Wrapped


class Layout(NamedTuple):
    """Sizes, strides and an offset in elements, each a number or a symbol."""

    sizes: tuple[Any, ...]
    steps: tuple[Any, ...]
    offset: Any = 0

    @property
    def is_symbolic(self) -> bool:
        """Whether any of it is no number."""
        return any(map(is_symbolic, (*self.sizes, *self.steps, self.offset)))


class Symbolic(Wrapped):
    """The array of a tensor whose sizes are symbols. What NumPy makes of it has numbers, and so the
    symbols become numbers then."""

    layout: Layout | None = None

    def __array_finalize__(self, source: Any) -> None:
        super().__array_finalize__(source)
        if source.__class__ is Symbolic and source.layout is not None:
            for number in filter(is_symbolic, (*source.layout.sizes, *source.layout.steps)):
                int(number)

    @property  # type: ignore[misc]
    def shape(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The sizes, as symbols."""
        return self.numbers[0] if self.layout is None else tuple(self.layout.sizes)

    @property  # type: ignore[misc]
    def strides(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The strides in bytes, as symbols."""
        if self.layout is None:
            return self.numbers[1]
        return tuple([step * self.itemsize for step in self.layout.steps])

    @property
    def size(self) -> Any:  # type: ignore[override]
        """How many elements there are, as a symbol."""
        return math.prod(self.shape)

    @property
    def numbers(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape and the strides in bytes, as they are in this run."""
        data = np.ndarray.view(self, np.ndarray)
        return data.shape, data.strides


def layout_of(data: Any) -> Layout | None:
    """The symbols of an array; None if it has none."""
    return data.layout if data.__class__ is Symbolic else None


def with_layout(data: Any, layout: Layout) -> Any:
    """An array without numbers that has sizes as symbols."""
    result: Any = np.ndarray.view(np.ndarray.view(data, Wrapped), Symbolic)
    result.place = data.place
    result.layout = layout
    return result
