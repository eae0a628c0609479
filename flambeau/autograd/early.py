"""Leaves that are filled as soon as they can be, and not at the end of the backward pass.

Hooks on a leaf act while the rest of the pass goes on: those that are called when it is filled
(`register_post_accumulate_grad_hook`) step an optimizer and give the gradient's memory back, or
send gradients to other processes. For them the graph is walked once before the pass, to count who
sends to each of their leaves. A leaf to which somebody sends nothing after all is filled at the
end, as others are.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.engine import Task, edges_now, has_begun_anew
from flambeau.autograd.graph import Node, OutputNode

Fill = Callable[[Task, Tensor], None]


class EarlyTask(Task):
    """A backward pass that fills some leaves early.

    Args:
        uses: the leaves, and how often something is sent to each.
        fill: fills one.
    """

    __slots__ = ("fill", "full", "uses")

    def __init__(self, roots: Any, keep: bool, captures: dict[Any, list[int]], needed: Any,
                 uses: dict[Tensor, int], fill: Fill) -> None:  # fmt: skip
        super().__init__(roots, keep, captures, needed)
        self.uses, self.fill = uses, fill
        self.full: list[Tensor] = []

    def send(self, edge: Any, grad: Any) -> None:
        """Add a gradient to what an edge has received."""
        super().send(edge, grad)
        self._count(edge)

    def send_nothing(self, edge: Any, node: Node) -> None:
        """Note that a leaf gets nothing from a node."""
        super().send_nothing(edge, node)
        self._count(edge)

    def _count(self, edge: Any) -> None:
        if not isinstance(edge, Tensor) or edge not in self.uses:
            return
        self.uses[edge] -= 1
        if not self.uses[edge] and edge in self.leaves:
            self.full.append(edge)

    def run(self) -> dict[Any, Any]:
        """Visit all nodes, and fill leaves between them."""
        self._fill()
        while self.heap:
            node = heappop(self.heap)[1]
            grad = self.pending.pop(node)
            if type(node) is OutputNode:
                self.send_output(node, grad)
                continue
            self._visit(node, grad)
            del grad
            self._fill()
        return self.captured

    def _visit(self, node: Node, grad: Any) -> None:
        """What the engine does with one node. It is a function so that nothing here holds a
        gradient any more when its leaf is filled, which may then keep it without a copy."""
        needed, captures = self.needed, self.captures
        if node.hooks is not None or needed is not None:
            runs, grad = self._arrived(node, grad)
            if not runs:
                return
        watched = modes.watch.nodes or self.gaps
        grads = self._applied(node, grad) if watched else node.apply(grad)
        if watched or node.hooks is not None:
            grads = self._shown(node, grads, grad)
        if not self.keep:
            node.release()
        edges = edges_now(node, captures) if self.stale else node.edges
        for edge, part in zip(edges, grads, strict=False):
            if edge is None or not (needed is None or edge in needed or edge in captures):
                continue
            if part is not None:
                self.send(edge, part)
            else:
                self.send_nothing(edge, node)

    def _fill(self) -> None:
        while self.full:
            self.fill(self, self.full.pop(0))


def uses_of_leaves(roots: Any, captures: dict[Any, list[int]], needed: Any) -> dict[Tensor, int]:
    """How often a pass from some edges sends to each leaf that wants to be filled early.

    Where only what leads to `captures` runs, `needed` are the nodes that do.
    """
    only = needed is not None
    stale = only and modes.watch.renewed and has_begun_anew(captures)
    uses: dict[Tensor, int] = {}
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        edge = stack.pop()
        if isinstance(edge, Tensor):
            hooks: Any = edge._hooks
            wanted = not only or edge in captures
            if wanted and hooks is not None and any(hooks.values()):
                uses[edge] = uses.get(edge, 0) + 1
            continue
        node = edge.source if type(edge) is OutputNode else edge
        if node is None or node in seen or (only and node not in needed):
            continue
        seen.add(node)
        stack.extend(edges_now(node, captures) if stale else node.edges)
    return uses
