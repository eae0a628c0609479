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

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.optimise import batched_loops, facts, loops, settings
from flambeau.jit.optimise.batching import Batched, Counted, NotBatchable, Program
from flambeau.jit.optimise.scans import rounds as scans
from flambeau.jit.optimise.subgraphs import (
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
    nodes = batched_loops.whole(found)
    outputs = used_outside(nodes)
    inputs = batched_loops.call_inputs(found, nodes)
    choices = [scans.frontier] if settings.current.scans and scans.may_be(found) else []
    choices += [wanted_products] if wanted_products(found) else []
    for wanted in choices:
        plain, rest = extracted(nodes, inputs, outputs), extracted(nodes, inputs, outputs)
        program = take_out(rest, wanted)
        if program is not None:
            if wanted is scans.frontier:
                scans.put_scan(rest)
            function = RecurrentLoop(plain, rest, program)
            replace_by_call(nodes, found.loop, inputs, outputs, function)
            return


def wanted_products(found: loops.CollectingLoop) -> list[Value]:
    """The products that depend on the round, but not on earlier rounds."""
    return [node.output for node in loops.independent(found)
            if node.kind in PRODUCTS and _depends_on(node, found.index)]  # fmt: skip


def take_out(graph: Graph,
             wanted: Callable[[loops.CollectingLoop], list[Value]]) -> Program | None:  # fmt: skip
    """Replace values in a loop by rows of new inputs; the program that computes these from the
    graph's other inputs.
    """
    (loop,) = [node for node in graph if node.kind == "prim::Loop"]
    found = loops.recognised(loop)
    assert found is not None
    results = wanted(found)
    nodes = _needed([value.node for value in results if value.node], found.body)
    if not all(batched_loops.has_rule(node) for node in nodes):
        return None
    program = Program(nodes, [found.index, *graph.inputs], results)
    for value in results:
        _take_row(value, graph.add_input(value.type), found)
    without_unused(found.body)
    _move_out(found)
    return program


def _move_out(found: loops.CollectingLoop) -> None:
    """Compute before the loop what is the same in all rounds, such as `w.t()`. There are at least
    two rounds.
    """
    changing = set(found.body.inputs)
    for node in found.work():
        if node.blocks or any(value in changing for value in node.inputs):
            changing.update(node.outputs)
        elif node.block is found.body and _may_move(node):
            for value in node.inputs:
                if value.is_constant and value.node.block is found.body:  # type: ignore[union-attr]
                    value.node.move_before(found.loop)  # type: ignore[union-attr]
            node.move_before(found.loop)
        else:
            changing.update(node.outputs)


def _may_move(node: Node) -> bool:
    """Whether a node may run once for all rounds: a list is a new one in each, unless it is only
    joined.
    """
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


def _take_row(value: Value, rows: Value, found: loops.CollectingLoop) -> None:
    """In the loop, the product of a round is its row of the product of all. The rows are taken
    apart once: their gradients then come together once, and not row by row.
    """
    from flambeau.jit.operators import table

    node = value.node
    assert node is not None
    graph = node.graph
    with graph.inserting(found.loop):
        parts = graph.insert("aten::unbind", (rows, graph.constant(0)), (T.ListType(T.TENSOR),))
    with graph.inserting(node):
        row = graph.insert("aten::__getitem__", (parts.output, found.index), (value.type,))
    parts.schema = table.overload("aten::unbind", "int")
    row.schema = table.overload("aten::__getitem__", "t")
    parts.source = row.source = node.source
    value.replace_by(row.output)


class RecurrentLoop:
    """A loop in both forms: as it stands, and with products computed ahead."""

    def __init__(self, plain: Graph, rest: Graph, program: Program) -> None:
        self.plain = plain
        self.rest = rest
        self.program = program
        self.compiled: dict[Graph, Callable[..., Any]] = {}
        self.fits = True
        self.error: Exception | None = None

    def __call__(self, rounds: int, *inputs: Any) -> Any:
        """What the loop and its joins give."""
        rows = self.products(rounds, inputs)
        if rows is None:
            return self.run(self.plain, rounds, *inputs)
        return self.run(self.rest, rounds, *inputs, *rows)

    def products(self, rounds: int, inputs: tuple[Any, ...]) -> list[Any] | None:
        """The products of all rounds; None where they cannot be computed at once."""
        if not self.fits or rounds < 2:
            return None
        try:
            found = self.program.run(rounds, (Counted(rounds), rounds, *inputs))
            if all(isinstance(value, Batched) for value in found):
                return [value.tensor for value in found]
            self.fits = False
        except NotBatchable as error:
            self.fits, self.error = False, error
        except Exception as error:  # the loop will raise it where it belongs
            self.error = error
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
