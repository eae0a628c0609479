"""Chains of `select` and `slice` as the one subscript that they came from.

    rows = slice(boxes, 0)                 →        left = boxes[:, 2]
    left = select(rows, 1, 2)

A program's `boxes[:, 2]` is two operators, each a tensor of its own; a subscript of ints and slices
is one view, in less time than one of them takes (benchmarks/jit_overhead.py, "x[:, 2]").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Node, Value
from flambeau.jit.optimise import facts, faults
from flambeau.jit.optimise.subgraphs import extracted, replace_by_call, runner

TAKEN_WHOLE = ":"
"""The text of a slice that leaves a dim as it is."""


def rewrite(block: Block) -> None:
    """Join the chains in a block and in those within it; the last of each is met first."""
    for node in reversed(list(block)):
        for inner in node.blocks:
            rewrite(inner)
        if node.block is block and _is_view(node):
            _join(node)


def _is_view(node: Node) -> bool:
    return node.kind in ("aten::select", "aten::slice") and node.inputs[0].type == T.TENSOR


def _join(last: Node) -> None:
    """Put one call in the place of a chain that ends with a node."""
    nodes = _chain(last)
    while nodes:
        subscript = Text(nodes[0].inputs[0])
        if all(subscript.takes(node) for node in nodes):
            break
        del nodes[0]
    if not nodes:
        return
    inputs = [subscript.source, *subscript.numbers]
    function = _template(subscript.text(), len(subscript.numbers))
    plain = runner(extracted(nodes, inputs, [last.output]))
    replace_by_call([last], last, inputs, [last.output], function(plain))
    for node in reversed(nodes[:-1]):
        if not node.output.users:
            node.destroy()


def _chain(last: Node) -> list[Node]:
    """The views that lead to a node, in order; nothing between them writes."""
    nodes = [last]
    while True:
        maker = nodes[0].inputs[0].node
        if maker is None or maker.block is not last.block or not _is_view(maker):
            return nodes
        between = maker.after
        while between is not nodes[0]:
            assert between is not None
            if not facts.is_pure(between):
                return nodes
            between = between.after
        nodes.insert(0, maker)


class Text:
    """A subscript of a tensor, as it grows by one view after the other."""

    def __init__(self, source: Value) -> None:
        self.source = source
        self.items: list[str] = []
        self.dims: list[int] = []  # the items that are dims of the result
        self.numbers: list[Value] = []

    def takes(self, node: Node) -> bool:
        """Take a view over, if a subscript can say it."""
        dim, *places = [self._constant(value) for value in node.inputs[1:]]
        if dim.__class__ is not int or dim < 0:  # from behind: the number of dims is not known
            return False
        while len(self.dims) <= dim:
            self.dims.append(len(self.items))
            self.items.append(TAKEN_WHOLE)
        item = self.dims[dim]
        if node.kind == "aten::slice" and places[2] != 1:
            return False
        if self.items[item] != TAKEN_WHOLE:
            return node.kind == "aten::slice" and places[:2] == [None, None]
        if node.kind == "aten::select":
            self.items[item] = self._number(node.inputs[2])
            del self.dims[dim]
        else:
            begin, end = (self._number(value) for value in node.inputs[2:4])
            self.items[item] = f"{begin}:{end}"
        return True

    def _constant(self, value: Value) -> Any:
        return value.constant if value.is_constant else value

    def _number(self, value: Value) -> str:
        """A number as it stands in the subscript: nothing for None."""
        if value.is_constant:
            return "" if value.constant is None else str(int(value.constant))
        if value not in self.numbers:
            self.numbers.append(value)
        return f"n{self.numbers.index(value)}"

    def text(self) -> str:
        """The subscript; dims behind it are taken whole."""
        return ", ".join(self.items)


@cache
def _template(text: str, numbers: int) -> Callable[..., Any]:
    """Makes functions of a tensor and the numbers in a subscript. What cannot be taken that way
    raises, and then the operators say why."""
    names = ", ".join(["x", *[f"n{k}" for k in range(numbers)]])
    lines = (f"def make(plain):\n"
             f"    def subscript({names}):\n"
             f"        try:\n"
             f"            return x[{text},]\n"
             f"        except Exception as error:\n"
             f"            return plainly('subscripts', error, plain, {names})\n"
             f"    return subscript\n")  # fmt: skip
    scope: dict[str, Any] = {"plainly": faults.plainly}
    exec(compile(lines, f"<subscript {text}>", "exec"), scope)
    return scope["make"]  # type: ignore[no-any-return]
