"""What grows in a loop: a tensor that is copied each time, and a graph that is never freed."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.debug.advice.base import Call, Topic, kind
from flambeau.debug.advice.loops import in_loop, key_of
from flambeau.debug.places import Line

PARTS = 16
"""Times that a result is copied into the next."""
COPIED = 1 << 20
"""Bytes that were copied beyond the result."""
PLACES = 64
"""Places that are followed at a time."""


class Growth:
    """Results of one instruction, each with the last one in it."""

    def __init__(self) -> None:
        self.last: Any = lambda: None
        self.count = self.bytes = 0
        self.seconds = 0.0
        self.told = False


class Growing(Topic):
    """Follows the last result of each instruction."""

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.places: OrderedDict[Any, Growth] = OrderedDict()

    def growth(self, line: Line) -> Growth:
        """Of an instruction; those longest unused are forgotten."""
        growth = self.places.pop(key_of(line), None) or Growth()
        self.places[key_of(line)] = growth
        if len(self.places) > PLACES:
            self.places.popitem(last=False)
        return growth

    def count(self, growth: Growth, goes_on: bool, call: Call) -> None:
        """One more result."""
        if not goes_on:
            growth.count, growth.bytes, growth.seconds, growth.told = 0, 0, 0.0, False
        growth.last = weakref.ref(call.result)
        growth.count += 1
        growth.bytes += call.result._data.nbytes
        growth.seconds += call.seconds

    def tell(self, growth: Growth, line: Line, text: str, better: str, seconds: float) -> None:
        """All that came before at first, then one at a time."""
        first = not growth.told
        growth.told = True
        self.add(line, text, better, growth.count if first else 1,
                 growth.seconds if first else seconds)  # fmt: skip


class GrowingCat(Growing):
    """`out = torch.cat([out, part])` in a loop: every part is copied in every later turn."""

    title = "a tensor that grows by cat"
    operators = ("cat",)

    def operator(self, call: Call) -> None:
        """Whether the last result is among the parts."""
        line, parts = call.line, call.values[0]
        if not line.direct or not in_loop(line):
            return
        growth = self.growth(line)
        last = growth.last()
        self.count(growth, last is not None and any(part is last for part in parts), call)
        copied = growth.bytes - call.result._data.nbytes
        if growth.count >= PARTS and copied >= COPIED:
            text = (f"{kind(call.result)} has grown part by part, and {copied / 1e6:.3g} MB were "
                    "copied on the way")  # fmt: skip
            better = "parts.append(part)  # in the loop\nout = torch.cat(parts)  # behind it"
            self.tell(growth, line, text, better, call.seconds)


ENOUGH = 4
"""Losses that were added up with their graphs."""
ROOTS = 64
"""Last losses that are remembered."""


class KeptGraph(Growing):
    """`total += loss` after `loss.backward()`: the graphs of all steps are kept."""

    title = "a total that keeps graphs"
    operators = ("add",)

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.roots: OrderedDict[int, Any] = OrderedDict()

    def backward(self, roots: list[Any], line: Line) -> None:
        """Remember what backward was called on."""
        for root in roots:
            if root is None or isinstance(root, Tensor):
                continue
            self.roots[id(root)] = weakref.ref(root)
            if len(self.roots) > ROOTS:
                self.roots.popitem(last=False)

    def operator(self, call: Call) -> None:
        """Whether such a loss is added to the last total."""
        total, loss = call.values[:2]
        result = call.result
        if not isinstance(loss, Tensor) or not result.requires_grad or result._data.size != 1:
            return
        if not in_loop(call.line) or not self._was_root(loss):
            return
        growth = self.growth(call.line)
        self.count(growth, growth.count == 0 or growth.last() is total, call)
        if growth.count >= ENOUGH:
            text = f"{growth.count} losses are added up with the graphs that made them"
            better = "total += loss.item(), or total += loss.detach()"
            self.tell(growth, call.line, text, better, call.seconds)

    def _was_root(self, loss: Tensor) -> bool:
        """Whether backward was called on a loss, or on what it is a multiple of."""
        node = loss._node
        nodes = [node, *(getattr(node, "edges", None) or ())]
        return any(n is not None and id(n) in self.roots and self.roots[id(n)]() is n
                   for n in nodes)  # fmt: skip
