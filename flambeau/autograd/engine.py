"""The backward pass.

Every consumer of a result was recorded after the result's own node, so taking nodes by falling
sequence number sees each node after everything that sends gradients to it: no dependency count is
needed. Leaves are filled last, but for those with hooks (`early.py`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

from flambeau._core import modes
from flambeau._tensor import overriding
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.accumulation import accumulate_grad, of_type, total, watched_accumulate
from flambeau.autograd.anomaly import check_numbers, watched_apply
from flambeau.autograd.graph import FREED, AccumulateGrad, Node, OutputNode, unpack
from flambeau.autograd.hook_calls import (
    run_accumulated_hooks,
    run_leaf_hooks,
    run_post_hooks,
    run_pre_hooks,
    run_tensor_hooks,
)
from flambeau.autograd.nesting import call_back, run_within


class Task:
    """One call of backward or grad."""

    __slots__ = ("captured", "captures", "gaps", "heap", "keep", "leaves", "needed", "notes",
                 "parts", "pending", "roots", "stale")  # fmt: skip

    def __init__(self, roots: Sequence[Any], keep: bool, captures: dict[Any, list[int]],
                 needed: Any) -> None:  # fmt: skip
        self.roots = roots
        self.notes: dict[Any, Any] = {}  # what hooks on several tensors remember
        self.keep = keep  # keep saved values for another backward
        self.captured: dict[Any, Any] = {}  # edge -> its gradient
        self.captures = captures  # edge -> positions in the result of `grad`
        self.parts = parts_of(captures)
        self.stale = modes.watch.renewed and has_begun_anew(captures)
        self.needed = needed  # nodes that lead to `inputs`; None: all
        self.pending: dict[Node, Any] = {}  # node -> its gradient so far
        self.leaves: dict[Tensor, Any] = {}
        self.heap: list[tuple[int, Node]] = []
        self.gaps = False  # whether a node has been sent no gradient, and yet is to run

    def send(self, edge: Any, grad: Any) -> None:
        """Add a gradient to what an edge has received."""
        if isinstance(edge, Tensor):
            known = self.leaves.get(edge)
            self.leaves[edge] = grad if known is None else total(known, grad)
            return
        pending = self.pending
        if edge in pending:
            known = pending[edge]
            pending[edge] = grad if known is None else total(known, grad)
            return
        pending[edge] = grad
        heappush(self.heap, (-edge.sequence_number, edge))

    def send_nothing(self, edge: Any, node: Node) -> None:
        """Let what an edge of a node leads to run, though it got no gradient."""
        if node.composed:
            return
        self.gaps = True
        if isinstance(edge, Tensor):
            self.leaves.setdefault(edge, None)
        elif edge not in self.pending:
            self.pending[edge] = None
            heappush(self.heap, (-edge.sequence_number, edge))

    def send_output(self, edge: OutputNode, grad: Any) -> None:
        """Hand the gradient of one of several outputs to the node behind it."""
        source = edge.source
        grads = self.pending.get(source)
        if grads is None:
            grads = self.pending[source] = [None] * source.outputs
            heappush(self.heap, (-source.sequence_number, source))
        known = grads[edge.index]
        if grad is not None:
            grads[edge.index] = grad if known is None else total(known, grad)

    def run(self) -> dict[Any, Any]:
        """Visit all nodes; returns the gradients of captured edges."""
        heap, pending, needed, captures = self.heap, self.pending, self.needed, self.captures
        watch, keep, stale = modes.watch, self.keep, self.stale
        while heap:
            node = heappop(heap)[1]
            grad = pending.pop(node)
            if type(node) is OutputNode:
                self.send_output(node, grad)
                continue
            if node.hooks is not None or needed is not None:
                runs, grad = self._arrived(node, grad)
                if not runs:
                    continue
            watched = watch.nodes or self.gaps
            grads = self._applied(node, grad) if watched else node.apply(grad)
            if watched or node.hooks is not None:
                grads = self._shown(node, grads, grad)
            if not keep:
                node.release()
            for edge, part in zip(
                edges_now(node, captures) if stale else node.edges, grads, strict=False
            ):
                if edge is None or not (needed is None or edge in needed or edge in captures):
                    continue
                if part is not None:
                    self.send(edge, part)
                else:
                    self.send_nothing(edge, node)
        return self.captured

    def _arrived(self, node: Node, arrived: Any) -> tuple[bool, Any]:
        """Run the hooks of a node and keep its gradient if it is asked for: where the node runs,
        too, the one from before hooks, as in torch. Whether it runs, and with which gradient."""
        hooked = node.hooks is not None
        grad = run_tensor_hooks(node, arrived) if hooked else arrived
        runs = self.needed is None or node in self.needed
        if self.captures:
            self._keep(node, arrived if runs else grad)
        if runs and hooked:
            grad = run_pre_hooks(node, grad)
            self.gaps = self.gaps or is_nothing(grad)
        return runs, grad

    def _keep(self, node: Node, grad: Any) -> None:
        """Keep what is asked for of a node's gradients."""
        if node in self.captures:
            self.captured[node] = grad
        for edge in self.parts.get(node, ()):
            self.captured[edge] = grad[edge.index]

    def _shown(self, node: Node, grads: tuple[Any, ...], grad: Any) -> tuple[Any, ...]:
        """A node's gradients after hooks and observers have seen them."""
        if node.hooks is not None:
            grads = run_post_hooks(node, self._only_wanted(node, grads), grad)
        check_numbers(node, grads)
        return grads

    def _only_wanted(self, node: Node, grads: Sequence[Any]) -> tuple[Any, ...]:
        """A node's gradients without those that nobody asked for, as hooks see them."""
        if self.needed is None or node.of_user:
            return tuple(grads)
        wanted = self.needed | self.captures.keys()
        asked = [edge in wanted for edge in node.edges]
        for part in node.lists():
            asked[part] = [any(asked[part])] * len(asked[part])
        pairs = zip(asked, grads, strict=False)
        return tuple([grad if asked_for else None for asked_for, grad in pairs])

    def _applied(self, node: Node, grad: Any) -> tuple[Any, ...]:
        """A node's gradients, while observers look on, or where it got none itself."""
        if self.gaps and is_nothing(grad) and not node.runs_on_nothing:
            look_at_saved(node)
            return (None,) * len(node.edges)
        return watched_apply(node, grad) if modes.watch.nodes else node.apply(grad)


def look_at_saved(node: Node) -> None:
    """Raise if what a node saved is gone or was changed, also where it has nothing to do with it,
    as formulas begin with that."""
    if node.saved is None:
        raise RuntimeError(FREED)
    for position, kept in enumerate(node.saved):
        if not isinstance(kept, list):
            unpack(node, position)


def parts_of(captures: dict[Any, Any]) -> dict[Node, list[OutputNode]]:
    """The outputs that are asked for, by their node."""
    found: dict[Node, list[OutputNode]] = {}
    for edge in captures:
        if type(edge) is OutputNode:
            found.setdefault(edge.source, []).append(edge)
    return found


def has_begun_anew(targets: Iterable[Any]) -> bool:
    """Whether one of some edges is a leaf that was given other memory while it was known, or what
    such a leaf was before."""
    for edge in targets:
        if type(edge) is AccumulateGrad or (isinstance(edge, Tensor) and edge._began):  # type: ignore[attr-defined]
            return True
    return False


def leads_to_before(node: Node, edge: Any) -> bool:
    """Whether an edge of a node leads to a leaf as it was before it was given other memory: what
    asks for its gradient asks for that of later nodes."""
    return isinstance(edge, Tensor) and edge._began > node.sequence_number


def edges_now(node: Node, targets: Iterable[Any]) -> list[Any]:
    """A node's edges; for those that lead to a leaf as it was, the one of `targets` that stands for
    that, or None."""
    return [_edge_before(node, edge, targets) if leads_to_before(node, edge) else edge
            for edge in node.edges]  # fmt: skip


def _edge_before(node: Node, leaf: Tensor, targets: Iterable[Any]) -> AccumulateGrad | None:
    for edge in targets:
        if type(edge) is AccumulateGrad and edge.leads_here(node, leaf):
            return edge
    return None


def is_nothing(grad: Any) -> bool:
    """Whether a node got no gradient for any of its outputs."""
    return all(part is None for part in grad) if isinstance(grad, list) else grad is None


class Running(threading.local):
    """The innermost backward pass of this thread."""

    task: Any = None


running = Running()


@contextmanager
def asked_for_all() -> Iterator[None]:
    """Let nodes make the gradients of all their edges meanwhile."""
    task, running.task = running.task, None
    try:
        yield
    finally:
        running.task = task


def wanted_edges(node: Node) -> tuple[Any, ...]:
    """A node's edges, None for those that the pass of this thread was not asked for: nothing has to
    be computed for them."""
    task = running.task
    if task is None or task.needed is None:
        return node.edges
    needed, captures = task.needed, task.captures
    return tuple([
        edge if edge in needed or edge in captures else None
        for edge in (edges_now(node, captures) if task.stale else node.edges)
    ])  # fmt: skip


def edges_reached(task: Task) -> set[Any]:
    """The nodes and leaves that a backward pass sends gradients to."""
    roots = [getattr(edge, "source", edge) for edge in task.roots if edge is not None]
    only = set(roots) if len(roots) == 1 else set()  # torch does not wait for an only root
    reached: set[Any] = set()
    stack = list(roots)
    while stack:
        edge = stack.pop()
        if edge in reached:
            continue
        reached.add(edge)
        if isinstance(edge, Node):
            stack.extend(e for e in edge.edges if e is not None and e not in reached)
    if task.needed is not None:
        reached &= task.needed.union(getattr(edge, "source", edge) for edge in task.captures)
    return reached - only


def backward(
    roots: Sequence[Any],
    grads: Sequence[Any],
    *,
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None = None,
    accumulate: bool = True,
) -> list[Any]:
    """Send `grads` from the edges `roots` through the graph.

    With `inputs` (edges), only what leads to them runs; returns their gradients (None where
    unreached). With `accumulate`, leaves collect theirs in `.grad`.
    """
    captures: dict[Any, list[int]] = {}
    for position, edge in enumerate(inputs or ()):
        captures.setdefault(edge, []).append(position)
    needed = None if inputs is None else nodes_to_run(roots, captures, accumulate)
    task = _task(roots, keep_graph, captures, needed, accumulate, create_graph)
    state = modes.grad
    before, outer = state.enabled, running.task
    state.enabled, running.task = create_graph and not state.inference, task
    taking_part = modes.watch.overriding  # formulas take what was saved for plain tensors
    if taking_part:
        was_off, overriding.state.off = overriding.state.off, True
    modes.watch.partial += needed is not None
    try:
        for edge, grad in zip(roots, grads, strict=True):
            # The hooks of an only root run even where it leads to no input.
            if needed is None or len(roots) == 1 or edge in needed or edge in captures:
                task.send(edge, grad)
        captured = task.run() if outer is None else run_within(task, outer)
        results = _finish(task, captured, len(inputs or ()), accumulate, create_graph)
        if task.notes:
            call_back(task.notes)
        return results
    finally:
        modes.watch.partial -= needed is not None
        state.enabled, running.task = before, outer
        if taking_part:
            overriding.state.off = was_off


def _task(roots: Sequence[Any], keep: bool, captures: dict[Any, list[int]], needed: Any,
          accumulate: bool, create_graph: bool) -> Task:  # fmt: skip
    """A pass, which fills leaves early if one of them has hooks."""
    if modes.watch.filled:
        from flambeau.autograd.early import EarlyTask, uses_of_leaves

        uses = uses_of_leaves(roots, captures, needed)
        if uses:

            def fill(task: Task, leaf: Tensor) -> None:
                _fill(task, leaf, None if accumulate else task.captured, create_graph)

            return EarlyTask(roots, keep, captures, needed, uses, fill)
    return Task(roots, keep, captures, needed)


def nodes_to_run(roots: Sequence[Any], captures: dict[Any, Any], accumulate: bool) -> set[Any]:
    """The nodes that lead to the inputs; for `backward`, also those of the inputs themselves,
    though nothing behind them."""
    targets = {getattr(edge, "source", edge) for edge in captures}
    needed = nodes_leading_to(roots, targets)
    if accumulate:
        needed.update(edge for edge in targets if isinstance(edge, Node))
    return needed


def _finish(task: Task, captured: dict[Any, Any], count: int, accumulate: bool,
            create_graph: bool) -> list[Any]:  # fmt: skip
    """Fill leaves, or collect what `grad` asked for."""
    for leaf in list(task.leaves):
        _fill(task, leaf, None if accumulate else captured, create_graph)
    results: list[Any] = [None] * count
    for edge, positions in task.captures.items():
        for position in positions:
            results[position] = captured.get(edge)
    return results


def _fill(task: Task, leaf: Tensor, captured: dict[Any, Any] | None, create_graph: bool) -> None:
    """Fill a leaf with what it was sent, or note it in `captured` for `grad`."""
    grad = task.leaves.pop(leaf)
    wanted = task.needed is None or leaf in task.captures
    if leaf._grad_dtype is not False:
        grad = of_type(grad, leaf._grad_dtype)
    if leaf._hooks is not None:  # type: ignore[attr-defined]
        grad = run_leaf_hooks(leaf, grad, wanted and captured is None)
    if not wanted:
        return
    if captured is not None:
        captured[leaf] = grad
    elif leaf._requires_grad and grad is not None:  # it may have been frozen since
        put = watched_accumulate if modes.watch.nodes else accumulate_grad
        others = sys.getrefcount(grad) - 2  # the variable and the argument here are ours
        put(leaf, grad, create_graph, others)
    elif leaf._hooks is not None:  # type: ignore[attr-defined]
        run_accumulated_hooks(leaf, grad)


def nodes_leading_to(roots: Sequence[Any], targets: Collection[Any]) -> set[Any]:
    """The nodes through which gradients reach one of the target edges."""
    stale = modes.watch.renewed and has_begun_anew(targets)
    order = [edge for edge in dict.fromkeys(roots) if isinstance(edge, Node)]
    seen = set(order)
    for node in order:  # which grows meanwhile
        for edge in node.edges:
            if edge not in seen and isinstance(edge, Node):
                seen.add(edge)
                order.append(edge)
    needed: set[Any] = set()
    for node in sorted(order, key=attrgetter("sequence_number")):
        for edge in edges_now(node, targets) if stale else node.edges:
            if (edge in needed or edge in targets) and edge is not None:
                needed.add(node)
                break
    return needed
