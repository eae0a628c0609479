"""Loops whose rounds need those before them: what does not is computed ahead, for all rounds.

    for t in range(x.size(0)):                       rows = x @ w
        h = tanh(x[t] @ w + h @ v)          →        for t in range(x.size(0)):
        out.append(h)                                    h = tanh(rows[t] + h @ v)

Products are what is worth it; where all the rest can be a scan (`scans/`), whatever does not need
earlier rounds is computed ahead. As in `batched_loops`, the loop itself is kept and runs where
that cannot be done for all rounds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.optimise import batched_loops, facts, faults, loops, settings, sharing
from flambeau.jit.optimise.batching import Batched, Counted, NotBatchable, Program
from flambeau.jit.optimise.batching.likeness import layout_of
from flambeau.jit.optimise.batching.saved import owner_of
from flambeau.jit.optimise.leaving import Leaving
from flambeau.jit.optimise.scans import rounds as scans
from flambeau.jit.optimise.scans.scan import NotScanned
from flambeau.jit.optimise.subgraphs import (
    CALL,
    extracted,
    replace_by_call,
    runner,
    used_outside,
    without_unused,
)

PRODUCTS = frozenset(("aten::matmul", "aten::mm", "aten::linear", "aten::addmm"))
KEPT_IN_PLACE = frozenset(("prim::ListConstruct", "prim::TupleConstruct"))


def rewrite(found: loops.CollectingLoop) -> None:
    """Take what does not depend on earlier rounds out of a loop: all of it where the rest is a
    scan, else the products.
    """
    if not any(found.body.inputs[k + 1].users for k in found.states):
        return  # only the last round settles them: what is ahead of the others is in vain
    nodes = in_order(found)
    outputs = used_outside(nodes)
    inputs = batched_loops.call_inputs(found, nodes)
    plain = extracted(nodes, inputs, outputs)
    if not scans.is_recognised(plain):
        return  # a state that nothing uses any more was all that made it a recurrence
    alone = scans.loop_of(plain)
    choices = [scans.frontier] if settings.current.scans and scans.may_be(alone) else []
    choices += [wanted_products] if wanted_products(alone) else []
    for wanted in choices:
        ahead = plain.copy()
        program = take_out(ahead, wanted)
        if program is not None:
            rest = ahead.copy()
            scanned = wanted is scans.frontier and scans.put_scan(rest, program.fresh)
            function = RecurrentLoop(plain, ahead, rest if scanned else ahead, program)
            replace_by_call(nodes, found.loop, inputs, outputs, function)
            return


def in_order(found: loops.CollectingLoop) -> list[Node]:
    """The lists, the loop and the joins, as they follow each other: the first join that raises is
    the program's first.
    """
    own = set(batched_loops.whole(found))
    return [node for node in found.loop.block if node in own]  # type: ignore[union-attr]


def wanted_products(found: loops.CollectingLoop) -> list[Value]:
    """The products that depend on the round, but not on earlier rounds."""
    return [node.output for node in Leaving(found).ahead(PRODUCTS)
            if node.kind in PRODUCTS and _depends_on(node, found.index)]  # fmt: skip


class Ahead(Program):
    """What is computed before a loop. `fresh`: which inputs of the loop's graph are such values in
    memory that nobody else holds.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value],
                 fresh: set[int]) -> None:  # fmt: skip
        super().__init__(nodes, inputs, outputs)
        self.fresh = fresh

    def rows(self, rounds: int, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, which lie as they would in the loop: so do results of its operators then. A
        round that takes a view may save it: writes to its memory count for what is taken in its
        place, which is often a copy.
        """
        values, first = self.evaluate(rounds, inputs)
        found = [values[place] for place in self.outputs]
        learning = modes.grad.enabled and any(t.requires_grad for t in sharing.tensors_in(inputs))
        for value, place, layout in zip(found, first.owners, first.layouts, strict=True):
            if not isinstance(value, Batched):
                continue
            data = value.tensor._data
            if layout_of(data.shape[1:], data.strides[1:]) != layout:
                raise NotBatchable("rows that lie in memory otherwise than in the loop")
            if learning and place is not None:
                _count_writes(value.tensor, values[place])
        return found


def _count_writes(copy: Tensor, source: Any) -> None:
    """Let writes to the memory of a tensor, or of a list of its views, be writes to a copy."""
    owners = {id(owner): owner for owner in map(owner_of, sharing.tensors_in(source))}
    if id(owner_of(copy)) in owners:
        return
    if len(owners) == 1:
        (copy._root,) = owners.values()
    else:
        raise NotBatchable("rows that are tensors of their own, which rounds may save")


def take_out(graph: Graph,
             wanted: Callable[[loops.CollectingLoop], list[Value]]) -> Ahead | None:  # fmt: skip
    """Replace values in a loop by rows of new inputs; the program that computes these from the
    graph's other inputs.
    """
    found = scans.loop_of(graph)
    results = wanted(found)
    leaving = Leaving(found)
    nodes = _needed([value.node for value in results if value.node], found.body)
    if not all(batched_loops.has_rule(node) for node in nodes):
        return None
    first = len(graph.inputs)
    new = {first + k for k, value in enumerate(results) if leaving.is_new(value)}
    program = Ahead(nodes, [found.index, *graph.inputs], results, new)
    for value in results:
        _take_row(value, graph.add_input(value.type), found, leaving.leaves(value))
    without_unused(found.body)
    _move_out(found)
    return program


def _move_out(found: loops.CollectingLoop) -> None:
    """Compute before the loop what is the same in all rounds, such as `w.t()`. There are at least
    two rounds.
    """
    changing = set(found.body.inputs)
    leaving = Leaving(found)
    for node in found.work():
        if node.blocks or any(value in changing for value in node.inputs):
            changing.update(node.outputs)
        elif node.block is found.body and _may_move(node, leaving):
            for value in node.inputs:
                if value.is_constant and value.node.block is found.body:  # type: ignore[union-attr]
                    value.node.move_before(found.loop)  # type: ignore[union-attr]
            node.move_before(found.loop)
        else:
            changing.update(node.outputs)


def _may_move(node: Node, leaving: Leaving) -> bool:
    """Whether a node may run once for all rounds: what leaves the loop is a new tensor in each, and
    a list is a new one, unless it is only joined.
    """
    if any(leaving.leaves(value) for value in node.outputs):
        return False
    users = [user for value in node.outputs for user, _ in value.users]
    joined = all(isinstance(user, Node) and user.kind in loops.JOINS for user in users)
    return node.kind not in KEPT_IN_PLACE or joined


def _depends_on(node: Node, index: Value) -> bool:
    return any(index in facts.used_values(n) for n in _needed([node], node.block))  # type: ignore[arg-type]


def _needed(wanted: Sequence[Node], body: Block) -> list[Node]:
    """The nodes of the body that some nodes are computed from, in order."""
    needed: set[Node] = set()
    waiting = list(wanted)
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            makers = [value.node for value in facts.used_values(node)]
            waiting += [maker for maker in makers if maker is not None and maker.block is body]
    return [node for node in body if node in needed and node.kind != "prim::Constant"]


def _take_row(value: Value, rows: Value, found: loops.CollectingLoop, leaves: bool) -> None:
    """In the loop, the product of a round is its row of the product of all; a copy of that, if it
    leaves the loop. The rows are taken apart once: their gradients then come together once, and
    not row by row.
    """
    node = value.node
    assert node is not None
    graph = node.graph
    with graph.inserting(found.loop):
        apart = graph.insert(CALL, (rows,), (T.ListType(T.TENSOR),), function=taken_apart)
        apart.source, parts = node.source, apart.output
    with graph.inserting(node):
        row = _inserted(graph, "aten::__getitem__", "t", (parts, found.index), node, value.type)
        if leaves:
            row = _inserted(graph, "aten::clone", "", (row, graph.constant(None)), node, value.type)
    value.replace_by(row)


def taken_apart(rows: Tensor) -> list[Tensor]:
    """The rows by one operator, each a view like any other: where one may be written to, and what
    is said where its memory was, is as if the loop had taken it by itself.
    """
    parts: list[Tensor] = list(rows.unbind())  # type: ignore[attr-defined]
    for part in parts:
        if part._creation == "multiple":
            part._creation = ""
    return parts


def _inserted(graph: Graph, kind: str, overload: str, inputs: tuple[Value, ...], like: Node,
              type_: T.Type) -> Value:  # fmt: skip
    """The result of a new operator."""
    from flambeau.jit.operators import table

    made = graph.insert(kind, inputs, (type_,))
    made.schema, made.source = table.overload(kind, overload), like.source
    return made.output


class RecurrentLoop:
    """A loop in its forms: as it stands, with products computed ahead, and (`rest`) with a scan,
    where it may be one.
    """

    def __init__(self, plain: Graph, ahead: Graph, rest: Graph, program: Ahead) -> None:
        self.plain = plain
        self.ahead = ahead
        self.rest = rest
        self.program = program
        self.compiled: dict[Graph, Callable[..., Any]] = {}
        self.fits = True
        self.error: Exception | None = None

    def __call__(self, rounds: int, *inputs: Any) -> Any:
        """What the loop and its joins give."""
        try:
            rows = self.products(rounds, inputs)
        except Exception as error:  # the loop raises it where it belongs, if it is the program's
            self.error = error
            return faults.plainly("hoisting", error, self.run, self.plain, rounds, *inputs)
        if rows is None:
            return self.run(self.plain, rounds, *inputs)
        return self.with_rows(rounds, *inputs, *rows)

    def with_rows(self, *values: Any) -> Any:
        """By the scan, if there is one and it has a form for what it is given."""
        try:
            return self.run(self.rest, *values)
        except NotScanned as answer:
            if answer.fault is not None:
                return faults.plainly("scans", answer.fault, self.run, self.ahead, *values)
        return self.run(self.ahead, *values)

    def products(self, rounds: int, inputs: tuple[Any, ...]) -> list[Any] | None:
        """The products of all rounds; None where they cannot be computed at once."""
        if not self.fits or rounds < 2:
            return None
        try:
            found = self.program.rows(rounds, (Counted(rounds), rounds, *inputs))
        except NotBatchable as error:
            self.fits, self.error = False, error
            return None
        if all(isinstance(value, Batched) for value in found):
            return [value.tensor for value in found]
        self.fits = False
        return None

    def run(self, graph: Graph, *inputs: Any) -> Any:
        """One of the forms, its body fused."""
        from flambeau.jit.optimise import fuse_body as optimise

        function = self.compiled.get(graph)
        if function is None:
            optimise(graph)
            function = self.compiled[graph] = runner(graph)
        return function(*inputs)

    def __repr__(self) -> str:
        return "<recurrent loop>"
