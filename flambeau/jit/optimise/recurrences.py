"""Loops whose rounds need those before them: what does not is computed ahead, for all rounds.

    for t in range(x.size(0)):                       rows = x @ w
        h = tanh(x[t] @ w + h @ v)          →        for t in range(x.size(0)):
        out.append(h)                                    h = tanh(rows[t] + h @ v)

Products are what is worth it. As in `batched_loops`, the loop itself is kept and runs where the
products of all rounds cannot be computed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.optimise import batched_loops, cells, facts, loops, settings
from flambeau.jit.optimise.batching import Batched, Counted, NotBatchable, Program
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
    """Take the products that do not depend on earlier rounds out of a loop."""
    if not wanted_products(found):
        return
    nodes = batched_loops.whole(found)
    outputs = used_outside(nodes)
    inputs = batched_loops.call_inputs(found, nodes)
    plain, rest = extracted(nodes, inputs, outputs), extracted(nodes, inputs, outputs)
    program = take_out(rest)
    if program is not None:
        function = RecurrentLoop(plain, rest, program)
        replace_by_call(nodes, found.loop, inputs, outputs, function)


def wanted_products(found: loops.CollectingLoop) -> list[Node]:
    """The products that depend on the round, but not on earlier rounds."""
    return [node for node in loops.independent(found)
            if node.kind in PRODUCTS and _depends_on(node, found.index)]  # fmt: skip


def take_out(graph: Graph) -> Program | None:
    """Replace the products in a loop by rows of new inputs; the program that computes these from
    the graph's other inputs.
    """
    (loop,) = [node for node in graph if node.kind == "prim::Loop"]
    found = loops.recognised(loop)
    assert found is not None
    wanted = wanted_products(found)
    nodes = _needed(wanted, found.body)
    if not all(batched_loops.has_rule(node) for node in nodes):
        return None
    results = [node.output for node in wanted]
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
        elif node.block is found.body and node.kind not in KEPT_IN_PLACE:
            for value in node.inputs:
                if value.is_constant and value.node.block is found.body:  # type: ignore[union-attr]
                    value.node.move_before(found.loop)  # type: ignore[union-attr]
            node.move_before(found.loop)
        else:
            changing.update(node.outputs)


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
        cell = cells.matched(rest) if settings.current.scans else None
        self.cell = None if cell is None else cells.CellLoop(rest, cell)

    def __call__(self, rounds: int, *inputs: Any) -> Any:
        """What the loop and its joins give."""
        rows = self.products(rounds, inputs)
        if rows is None:
            return self.run(self.plain, rounds, *inputs)
        if self.cell is not None:
            results = self.cell(rounds, *inputs, *rows)
            if results is not None:
                return results
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
