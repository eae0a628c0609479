"""A loop that takes one slice of a tensor after the other."""

from __future__ import annotations

import re
import weakref
from collections import OrderedDict
from typing import Any

from flambeau.debug.advice.base import Call, Topic, kind
from flambeau.debug.advice.loops import in_loop, key_of, writes
from flambeau.debug.places import Line

ENOUGH = 8
"""Slices in a row that make a loop."""
ENOUGH_WINDOWS = 16
"""The same for windows that overlap."""
LOOPS = 64
"""Loops that are followed at a time."""


class Run:
    """Slices of one tensor, taken by one instruction, one after the other."""

    __slots__ = ("count", "dim", "index", "length", "name", "reported", "seconds", "tensor")

    def __init__(self, name: str, tensor: Any, dim: int, index: int, length: int) -> None:
        self.name = name  # "select" leaves the dim out, "slice" keeps it
        self.tensor = weakref.ref(tensor)
        self.dim, self.index, self.length = dim, index, length
        self.count = 1  # of different indices
        self.seconds = 0.0
        self.reported = False

    def goes_on(self, tensor: Any, dim: int, index: int, length: int) -> bool:
        """Whether a slice is the next one, or the last one again."""
        if self.tensor() is not tensor or (self.dim, self.length) != (dim, length):
            return False
        return abs(index - self.index) <= 1


class SlicesInLoop(Topic):
    """`for i in range(n): x[i]`: n operators, and with autograd n gradients of x's full size."""

    title = "a loop of slices"
    operators = ("select", "slice")

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.runs: OrderedDict[Any, Run] = OrderedDict()

    def operator(self, call: Call) -> None:
        """Follow the slices that one instruction takes."""
        line, tensor = call.line, call.values[0]
        if not line.direct or not in_loop(line):
            return
        if writes(line):
            return
        dim, index, length = part(call)
        key = (*key_of(line), call.name, dim, tensor._data.ndim)
        run = self.runs.get(key)
        if run is None or not run.goes_on(tensor, dim, index, length):
            run = self.runs[key] = Run(call.name, tensor, dim, index, length)
            self.runs.move_to_end(key)
            if len(self.runs) > LOOPS:
                self.runs.popitem(last=False)
        run.count += index != run.index
        run.index = index
        run.seconds += call.seconds
        if run.count >= (ENOUGH if length == 1 else ENOUGH_WINDOWS):
            self._report(run, line, tensor, call.seconds)

    def _report(self, run: Run, line: Line, tensor: Any, seconds: float) -> None:
        first = not run.reported
        run.reported = True
        dim, name = run.dim, subject(line)
        text = (f"{tensor._data.shape[dim]} slices along dim {dim} of {name}, {kind(tensor)}, "
                "one by one")  # fmt: skip
        self.add(line, text, better(name, run), run.count if first else 1,
                 run.seconds if first else seconds, "slice")  # fmt: skip


def part(call: Call) -> tuple[int, int, int]:
    """Dim, start and length of a slice."""
    tensor = call.values[0]
    if call.name == "select":
        _, dim, index = call.values
        dim %= tensor._data.ndim
        return dim, index % tensor._data.shape[dim], 1
    dim = call.values[1] % tensor._data.ndim
    start = call.values[2] or 0
    length = call.result._data.shape[dim]
    return dim, start, length


def better(name: str, run: Run) -> str:
    """What to write instead."""
    if run.length > 1:
        return f"{name}.unfold({run.dim}, {run.length}, 1)  # a view with all windows"
    if run.name == "select":
        parts = f"{name}.unbind({run.dim or ''})"
    else:
        parts = f"{name}.split(1{f', {run.dim}' if run.dim else ''})"
    return f"for part in {parts}: ...\nor one operator on all of {name}, along dim {run.dim}"


def subject(line: Line) -> str:
    """What is sliced, as the program calls it: `x` of `x[i]`; "x" if that is not plain."""
    found = set(re.findall(r"([A-Za-z_][\w.]*)\s*\[", line.place.code))
    return found.pop() if len(found) == 1 else "x"
