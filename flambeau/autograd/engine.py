"""The backward pass.

Every consumer of a result was recorded after the result's own node, so taking nodes by falling
sequence number sees each node after everything that sends gradients to it: no dependency count is
needed. Leaves are filled last.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Container, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.layout import contiguous_format, contiguous_strides, is_dense
from flambeau._runtime import cpu
from flambeau._tensor import overriding
from flambeau._tensor.sparse import NotStrided, SparseFirst
from flambeau._tensor.tensor import Tensor, constructors, new
from flambeau.autograd.graph import Node, OutputNode, accumulator_of, tools
from flambeau.autograd.nesting import call_back, run_within
from flambeau.autograd.notes import evaluating


def total(known: Any, grad: Any) -> Any:
    """The sum of two gradients; a dense and a sparse one in the order that `add` takes."""
    try:
        return tools.add(known, grad)
    except SparseFirst:
        return tools.add(grad, known)


class Task:
    """One call of backward or grad."""

    __slots__ = ("captured", "captures", "gaps", "heap", "keep", "leaves", "needed", "notes",
                 "parts", "pending", "roots")  # fmt: skip

    def __init__(self, roots: Sequence[Any], keep: bool, captures: dict[Any, list[int]],
                 needed: Any) -> None:  # fmt: skip
        self.roots = roots
        self.notes: dict[Any, Any] = {}  # what hooks on several tensors remember
        self.keep = keep  # keep saved values for another backward
        self.captured: dict[Any, Any] = {}  # edge -> its gradient
        self.captures = captures  # edge -> positions in the result of `grad`
        self.parts = parts_of(captures)
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

    def send_nothing(self, edge: Any) -> None:
        """Let what an edge leads to run, though it got no gradient."""
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
            watched = modes.watch.nodes or self.gaps
            grads = self._applied(node, grad) if watched else node.apply(grad)
            if node.hooks is not None:
                grads = run_post_hooks(node, self._only_wanted(node, grads), grad)
            if not self.keep:
                node.release()
            for edge, part in zip(node.edges, grads, strict=False):
                if edge is None or not (needed is None or edge in needed or edge in captures):
                    continue
                if part is None:  # what is before it runs nevertheless
                    self.send_nothing(edge)
                else:
                    self.send(edge, part)
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
        return runs, grad

    def _keep(self, node: Node, grad: Any) -> None:
        """Keep what is asked for of a node's gradients."""
        if node in self.captures:
            self.captured[node] = grad
        for edge in self.parts.get(node, ()):
            self.captured[edge] = grad[edge.index]

    def _only_wanted(self, node: Node, grads: Sequence[Any]) -> tuple[Any, ...]:
        """A node's gradients without those that nobody asked for, as hooks see them."""
        if self.needed is None or node.of_user:
            return tuple(grads)
        wanted = self.needed | self.captures.keys()
        pairs = zip(node.edges, grads, strict=False)
        return tuple([part if edge in wanted else None for edge, part in pairs])

    def _applied(self, node: Node, grad: Any) -> tuple[Any, ...]:
        """A node's gradients, while observers look on, or where it got none itself."""
        if self.gaps and is_nothing(grad) and not node.of_user:
            return (None,) * len(node.edges)
        return watched_apply(node, grad) if modes.watch.nodes else node.apply(grad)


def parts_of(captures: dict[Any, Any]) -> dict[Node, list[OutputNode]]:
    """The outputs that are asked for, by their node."""
    found: dict[Node, list[OutputNode]] = {}
    for edge in captures:
        if type(edge) is OutputNode:
            found.setdefault(edge.source, []).append(edge)
    return found


def is_nothing(grad: Any) -> bool:
    """Whether a node got no gradient for any of its outputs."""
    return all(part is None for part in grad) if isinstance(grad, list) else grad is None


class Running(threading.local):
    """The innermost backward pass of this thread."""

    task: Any = None


running = Running()


def wanted_edges(node: Node) -> tuple[Any, ...]:
    """A node's edges, None for those that the pass of this thread was not asked for: nothing has to
    be computed for them."""
    task = running.task
    if task is None or task.needed is None:
        return node.edges
    needed, captures = task.needed, task.captures
    return tuple([edge if edge in needed or edge in captures else None for edge in node.edges])


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


class Anomaly:
    """Settings of anomaly mode; `modes.watch.anomaly` switches it."""

    check_nan = True


def watched_apply(node: Node, grad: Any) -> tuple[Any, ...]:
    """A node's gradients, while observers look on, in anomaly mode, or on emulated devices."""
    observers = modes.stacks.observers
    for observer in observers:
        observer.before_node(node, grad)
    places = modes.watch.places
    try:
        grads = applied(node, grad) if places is None else places.apply(node, grad)
    except BaseException:
        for observer in observers:
            observer.failed()
        raise
    for observer in observers:
        observer.node(node, grad, grads)
    return grads


def applied(node: Node, grad: Any) -> tuple[Any, ...]:
    """A node's gradients; in anomaly mode they are checked."""
    return checked_apply(node, grad) if modes.watch.anomaly else node.apply(grad)


def checked_apply(node: Node, grad: Any) -> tuple[Any, ...]:
    """In anomaly mode: errors and NaNs show where the operator was called."""
    outer, evaluating.node = evaluating.node, node
    try:
        grads = node.apply(grad)
    except Exception:
        _print_forward_lines(node)
        raise
    finally:
        evaluating.node = outer
    if not Anomaly.check_nan:
        return grads
    for position, part in enumerate(grads):
        if part is None:
            continue
        data = getattr(part, "_entries", part)._data
        if data.dtype.kind in "fc" and np.isnan(data).any():
            _print_forward_lines(node)
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {position}th output."
            )
    return grads


def _print_forward_lines(node: Node) -> None:
    """Where the operator was called, and the one whose backward called it, and so on."""
    lines = node.metadata.get("traceback_")
    if lines is None:
        _warn(f"Error detected in {node.name()}. No forward pass information available. Enable "
              "detect anomaly during forward pass for more information.")  # fmt: skip
    else:
        _warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
              f"{''.join(lines)}")  # fmt: skip
    parent = node.metadata.get("parent_")
    while parent is not None:
        _print_parent(parent)
        parent = parent.metadata.get("parent_")


def _print_parent(parent: Node) -> None:
    lines = parent.metadata.get("traceback_")
    if lines is None:
        _warn("\n\nPrevious calculation was induced by "
              f"{parent.name()}. No forward pass information available. Enable detect anomaly "
              "during forward pass for more information.")  # fmt: skip
        return
    _warn("\n\nPrevious calculation was induced by "
          f"{parent.name()}. Traceback of forward call that induced the previous calculation:\n"
          f"{''.join(lines)}")  # fmt: skip


def _warn(text: str) -> None:
    """Warn; a warning that is to be an error is printed, so as not to hide the error itself."""
    try:
        warnings.warn(text, UserWarning, stacklevel=7)
    except UserWarning as warning:
        sys.stderr.write(f"{type(warning).__name__}: {warning}\n")


def run_tensor_hooks(node: Node, grad: Any) -> Any:
    """Tensor hooks and retain_grad, once a gradient is known."""
    if isinstance(grad, list):
        return _run_output_hooks(node, list(grad))
    for kind in ("tensor", "retain"):
        for hook in list(node.hooks.get(kind, {}).values()):
            replaced = hook(grad)
            if replaced is not None:
                grad = _check_replacement(replaced, grad, hook)
    return grad


def _run_output_hooks(node: Node, grads: list[Any]) -> list[Any]:
    """The same for a node with several outputs."""
    for kind in ("tensor", "retain"):
        for of in list(node.hooks.get(kind, {}).values()):
            grad = grads[of.index]
            replaced = of.hook(grad)
            if replaced is not None:
                grads[of.index] = _check_replacement(replaced, grad, of.hook)
    return grads


def run_pre_hooks(node: Node, grad: Any) -> Any:
    """Node pre-hooks, before a node runs."""
    for hook in list(node.hooks.get("pre", {}).values()):
        replaced = hook(outputs_of(node, grad))
        if replaced is not None:
            grad = _replaced(node, grad, replaced)
    return grad


def outputs_of(node: Node, grad: Any) -> tuple[Any, ...]:
    """The gradients of a node's outputs as hooks see them: of those that have one."""
    if not isinstance(grad, list):
        return (grad,)
    return tuple(grad) if node.shown is None else tuple([grad[index] for index in node.shown])


def _replaced(node: Node, grad: Any, replaced: Sequence[Any]) -> Any:
    if not isinstance(grad, list):
        return replaced[0]
    if node.shown is None:
        return list(replaced)
    grads = list(grad)
    for index, part in zip(node.shown, replaced, strict=True):
        grads[index] = part
    return grads


def _check_replacement(replaced: Any, grad: Tensor | None, hook: Any) -> Tensor:
    if not isinstance(replaced, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(replaced).__name__}'")
    if grad is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if replaced.shape != grad.shape:
        name = getattr(hook, "__name__", "<unknown>")
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return replaced


def run_post_hooks(node: Node, grads: tuple[Any, ...], grad: Any) -> tuple[Any, ...]:
    """Node hooks, after a node has run: they may replace the gradients it sends."""
    outputs = outputs_of(node, grad)
    for hook in list(node.hooks.get("post", {}).values()):
        replaced = hook(tuple(grads), outputs)
        if replaced is not None:
            grads = replaced if isinstance(replaced, tuple) else (replaced,)
    return grads


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
    task = Task(roots, keep_graph, captures, needed)
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
    put = watched_accumulate if modes.watch.nodes else accumulate_grad
    for leaf in list(task.leaves):
        grad = task.leaves.pop(leaf)
        wanted = task.needed is None or leaf in task.captures
        if leaf._hooks is not None:
            grad = run_leaf_hooks(leaf, grad, wanted and accumulate)
        if not wanted:
            continue
        if not accumulate:
            captured[leaf] = grad
        elif leaf._requires_grad and grad is not None:  # it may have been frozen since
            others = sys.getrefcount(grad) - 2  # the variable and the argument here are ours
            put(leaf, grad, create_graph, others)
        elif leaf._requires_grad and leaf._hooks is not None:
            _after_accumulation(leaf, None)
    results: list[Any] = [None] * count
    for edge, positions in task.captures.items():
        for position in positions:
            results[position] = captured.get(edge)
    return results


def run_leaf_hooks(leaf: Tensor, grad: Any, accumulates: bool) -> Any:
    """Hooks of a leaf, before its gradient is accumulated; or only captured."""
    for hook in list(leaf._hooks.get("tensor", {}).values()):
        replaced = hook(grad)
        if replaced is not None:
            grad = _check_replacement(replaced, grad, hook)
    if not accumulates:
        return grad
    for hook in list(leaf._hooks.get("node_pre", {}).values()):
        replaced = hook((grad,))
        if replaced is not None:
            grad = replaced[0]
    return grad


def accumulate_grad(leaf: Tensor, grad: Tensor, create_graph: bool, sharers: int = 1) -> None:
    """Add a gradient to `leaf.grad`; a fresh dense gradient that nobody else holds is taken over.

    `sharers`: how many others hold the gradient tensor.
    """
    current = leaf._grad
    try:
        if current is None:
            leaf._grad = (_copied if create_graph else _own)(leaf, grad, sharers)
        elif create_graph:
            leaf._grad = total(current, grad)
        else:
            current.add_(grad)
    except NotStrided:  # from `_own`
        leaf._grad = constructors["own_sparse"](grad)
    except SparseFirst:  # a sparse gradient so far, and now a dense one
        leaf._grad = tools.add(grad, current)
    if leaf._hooks is not None:
        _after_accumulation(leaf, grad)


def watched_accumulate(leaf: Tensor, grad: Tensor, create_graph: bool, sharers: int) -> None:
    """The same, while observers look on."""
    with modes.labelled("torch::autograd::AccumulateGrad"):
        accumulate_grad(leaf, grad, create_graph, sharers)


def _copied(leaf: Tensor, grad: Tensor, sharers: int) -> Tensor:
    """A recorded copy with the leaf's memory layout, or row-major if the leaf is not dense."""
    shape, strides = grad._data.shape, cpu.element_strides(leaf._data)
    if not is_dense(shape, strides):
        return tools.clone(grad, memory_format=contiguous_format)  # type: ignore[no-any-return]
    return tools.new_empty_strided(grad, shape, strides).copy_(grad)  # type: ignore[no-any-return]


def _own(leaf: Tensor, grad: Tensor, sharers: int) -> Tensor:
    """A gradient with the leaf's memory layout that shares memory with nobody.

    A gradient that nobody else holds keeps its strides if they are the leaf's, but for dims of
    size 1; any other is laid out as the leaf, or row-major if the leaf is not dense.
    """
    data = grad._data
    if sharers <= 0 and data.base is None and data.flags.c_contiguous and (
        leaf._data.flags.c_contiguous
    ):  # fmt: skip
        result = new(Tensor)
        result._data = data
        return result  # type: ignore[no-any-return]
    strides = cpu.element_strides(leaf._data)
    kept = cpu.element_strides(data)
    wanted = strides if is_dense(data.shape, strides) else contiguous_strides(data.shape)
    sizes = data.shape
    fits = all(n == 1 or w == k for n, w, k in zip(sizes, wanted, kept, strict=True))
    if sharers > 0 or not fits:
        kept = wanted
    if sharers > 0 or not fits or data.base is not None or not data.flags.writeable:
        fresh = cpu.empty_strided(sizes, kept, data.dtype)
        fresh[...] = data
        data = fresh
    result = new(Tensor)
    result._data = data
    return result  # type: ignore[no-any-return]


def _after_accumulation(leaf: Tensor, grad: Tensor | None) -> None:
    """Hooks of a leaf that has received a gradient, or was sent none."""
    for hook in list(leaf._hooks.get("accumulated", {}).values()):
        if hook(leaf) is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    if leaf._hooks.get("node_post"):
        accumulator_of(leaf)
        for hook in list(leaf._hooks["node_post"].values()):
            hook((), (grad,))


def nodes_leading_to(roots: Sequence[Any], targets: Container[Any]) -> set[Any]:
    """The nodes through which gradients reach one of the target edges."""
    order, seen = [], set()
    stack = [edge for edge in roots if isinstance(edge, Node)]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        for edge in node.edges:
            if isinstance(edge, Node) and edge not in seen:
                stack.append(edge)
    needed: set[Any] = set()
    for node in sorted(order, key=lambda n: n.sequence_number):
        for edge in node.edges:
            if edge is not None and (edge in needed or edge in targets):
                needed.add(node)
                break
    return needed
