"""What an advice is made of: the calls it looks at, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.debug.advice.origins import Origin
from flambeau.debug.places import Line, Place

MANY = 1000
"""Findings that a report holds at most."""


@dataclass(slots=True)
class Call:
    """One call of an operator."""

    name: str
    """Public, `log` or `linalg.norm`."""
    values: tuple[Any, ...]
    result: Any
    seconds: float
    line: Line
    origins: list[Origin | None]
    """Of each value: where it comes from, if it is a tensor that an operator made lately."""
    origin: Origin | None
    """Of the result, if it is one tensor."""


@dataclass(slots=True)
class Finding:
    """One thing that could be better, at one line of the program."""

    topic: str
    place: Place | None
    text: str
    """What happens there, with shapes."""
    better: str
    """The better code."""
    count: int = 0
    seconds: float = 0.0
    """Time spent in the calls that were found, measured."""
    unit: str = field(default="call")

    def __str__(self) -> str:
        where = "" if self.place is None else f"\n  {self.place}"
        indented = self.better.replace("\n", "\n          ")
        return f"{self.topic}: {self.text}{where}\n  {self.cost()}\n  better: {indented}"

    def cost(self) -> str:
        """How often, and how long it took."""
        times = f"{self.count:,} {self.unit}{'s' if self.count != 1 else ''}"
        return f"{times}, {self.seconds * 1e3:.3g} ms" if self.seconds else times


class Topic:
    """One kind of advice. What it wants to see, it overrides."""

    title = ""
    operators: tuple[str, ...] = ()
    """Names of the operators whose calls `operator` gets; ("*",) for all."""

    def wants(self, name: str) -> bool:
        """Whether `operator` gets the calls of an operator."""
        return name in self.operators or "*" in self.operators

    def __init__(self, found: Callable[..., Finding | None]) -> None:
        self._found = found

    def add(self, line: Line | Place | None, text: str, better: str, count: int = 1,
            seconds: float = 0.0, unit: str = "call") -> None:  # fmt: skip
        """Report, or count once more what was reported for this line."""
        place = line.place if isinstance(line, Line) else line
        self._found(self.title, place, text, better, count, seconds, unit)

    def operator(self, call: Call) -> None:
        """An operator was called by the program, not by backward."""

    def enter(self, module: Any, given: Any, line: Line, outer: tuple[Any, ...]) -> None:
        """A module's forward begins, within those of `outer`."""

    def leave(self, module: Any, seconds: float, outer: tuple[Any, ...]) -> None:
        """It has ended."""

    def number(self, tensor: Tensor, how: str, line: Line, seconds: float) -> None:
        """`tensor.item()`, `.tolist()`, `.numpy()`, `float(tensor)`, `int(tensor)`."""

    def dropout(self, tensor: Tensor, line: Line, outer: tuple[Any, ...]) -> None:
        """Elements are dropped, within the forwards of `outer`."""

    def backward(self, roots: list[Any], line: Line) -> None:
        """Backward begins; it will add to the gradients of leaves."""

    def scaled(self, result: Tensor, scaler: Any) -> None:
        """A scaler has multiplied a loss."""

    def unscaled(self, optimizer: Any) -> None:
        """A scaler divides the gradients of an optimizer."""

    def updated(self, scaler: Any) -> None:
        """A scaler has ended an iteration."""

    def clip(self, parameters: list[Tensor], line: Line) -> None:
        """Gradients are clipped."""

    def step(self, optimizer: Any, line: Line) -> None:
        """An optimizer is about to step."""

    def duplicates(self, count: int, workers: int, line: Line) -> None:
        """Workers of a loader have given the same samples."""

    def end(self) -> None:
        """The program, or the region, has ended."""


def kind(tensor: Any) -> str:
    """`float32[64, 3]`."""
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor._data.shape)}"
