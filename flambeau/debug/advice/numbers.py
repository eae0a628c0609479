"""Numbers that are read out of tensors one by one."""

from __future__ import annotations

import weakref
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.debug.advice.base import Call, Topic, kind
from flambeau.debug.advice.loops import in_loop, key_of
from flambeau.debug.places import Line

PARTS = 16
"""Parts of one tensor, read at one place."""
SINGLE = 32
"""Numbers of their own, read at one place of a loop that does little else."""
LITTLE = 2
"""Operators between two of them."""
PLACES = 64
"""Places that are followed at a time."""

ONE = ("item", "__float__", "__int__")
SPELLED = {"__float__": "float(...)", "__int__": "int(...)"}


class Reads:
    """What one instruction has read so far."""

    __slots__ = ("base", "clock", "parts", "seconds", "single")

    def __init__(self) -> None:
        self.base: Any = lambda: None
        self.parts = self.single = self.clock = 0
        self.seconds = 0.0


class NumbersInLoop(Topic):
    """`for i in range(n): x[i].item()`, and `total += x.sum().item()` in a loop of such lines.

    A number per step of training, or per batch that a model is given, is no fault.
    """

    title = "numbers read in a loop"
    operators = ("*",)

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.reads: dict[Any, Reads] = {}
        self.clock = 0

    def operator(self, call: Call) -> None:
        """Count operators, to see how much a loop does between two numbers. A view is none."""
        if call.result is not None and getattr(call.result, "_root", None) is None:
            self.clock += 1

    def enter(self, module: Any, given: Any, line: Line, outer: tuple[Any, ...]) -> None:
        """A model is work enough for a number."""
        self.clock += LITTLE + 1

    def backward(self, roots: list[Any], line: Line) -> None:
        """So is a step of training."""
        self.clock += LITTLE + 1

    def number(self, tensor: Tensor, how: str, line: Line, seconds: float) -> None:
        """Count what one instruction reads."""
        if not in_loop(line):
            return
        reads = self._reads(line)
        base = tensor._base
        same = base is not None and reads.base() is base
        if base is not None and not same:
            reads.base, reads.parts, reads.seconds = weakref.ref(base), 0, 0.0
        busy = self.clock - reads.clock > LITTLE
        reads.clock = self.clock
        reads.seconds += seconds
        if base is not None:
            reads.parts += 1
            self._tell_parts(reads, base, how, line, seconds)
        elif how in ONE:
            reads.single = 1 if busy else reads.single + 1
            self._tell_single(reads, how, line, seconds)

    def _reads(self, line: Line) -> Reads:
        if key_of(line) not in self.reads:
            if len(self.reads) >= PLACES:
                self.reads.pop(next(iter(self.reads)))
            self.reads[key_of(line)] = Reads()
        return self.reads[key_of(line)]

    def _tell_parts(self, reads: Reads, base: Tensor, how: str, line: Line,
                    seconds: float) -> None:  # fmt: skip
        if reads.parts < PARTS:
            return
        text = f"parts of one tensor, {kind(base)}, are read one by one by {spelled(how)}"
        whole = "numpy()" if how == "numpy" else "tolist()"
        better = f"values = x.{whole}  # once, before the loop; then values[i]"
        self._count(reads.parts == PARTS, PARTS, reads, line, text, better, seconds)

    def _tell_single(self, reads: Reads, how: str, line: Line, seconds: float) -> None:
        if reads.single < SINGLE:
            return
        text = f"{spelled(how)} in every turn of a loop that does little else"
        better = ("keep tensors in the loop (total += x.sum()), and read total.item() behind it,\n"
                  "or do the loop in one operator")  # fmt: skip
        self._count(reads.single == SINGLE, SINGLE, reads, line, text, better, seconds)

    def _count(self, first: bool, enough: int, reads: Reads, line: Line, text: str, better: str,
               seconds: float) -> None:  # fmt: skip
        self.add(line, text, better, enough if first else 1,
                 reads.seconds if first else seconds, unit="number")  # fmt: skip


def spelled(how: str) -> str:
    """How it stands in the program."""
    return SPELLED.get(how, f".{how}()")
