"""Loops that a scan can run: what a round consists of, and the round as a graph of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Node, Value, captured
from flambeau.jit.optimise import facts, loops
from flambeau.jit.optimise.fusion.groups import COMPUTING, PASSIVE, ROWS
from flambeau.jit.optimise.leaving import Leaving
from flambeau.jit.optimise.subgraphs import extracted, replace_by_call, runner

PRODUCTS = frozenset(("aten::matmul", "aten::mm", "aten::mv", "aten::linear", "aten::addmm"))
PARTS = frozenset(("aten::split", "aten::split_with_sizes", "aten::slice", "aten::narrow",
                   "aten::cat", "aten::__getitem__"))  # fmt: skip
KINDS = (COMPUTING - ROWS) | PASSIVE | PRODUCTS | PARTS
"""What a round may consist of."""


def may_be(found: loops.CollectingLoop) -> bool:
    """Whether a loop looks like a scan; the first call tells."""
    states = [found.body.inputs[k + 1] for k in found.states]
    if not states or any(value.type != T.TENSOR for value in states):
        return False
    elements = [collected.element for collected in found.lists]
    ends = (*found.loop.inputs[2:], *found.body.outputs[1:], *elements)
    if any(value.is_constant for value in ends):
        return False
    ahead = set(Leaving(found).ahead(PRODUCTS))
    dependent = [node for node in found.work() if node not in ahead]
    if not all(node.kind in KINDS and not node.blocks for node in dependent):
        return False
    changing = {value for node in dependent for value in node.outputs} | set(states)
    edge = set(frontier(found))
    if any(node.kind in PRODUCTS and not _multiplies(node, changing, edge) for node in dependent):
        return False
    return all(value.type == T.TENSOR for value in edge)


def _multiplies(node: Node, changing: set[Value], rows: set[Value]) -> bool:
    """Whether a product is one by a matrix that is the same in all rounds."""
    left, right, rest = _operands(node, changing)
    if left not in changing or right in changing or right in rows:
        return False
    if node.kind == "aten::addmm" and any(v.constant != 1 for v in node.inputs[3:]):
        return False
    return rest is None or rest.type == T.TENSOR or (rest.is_constant and rest.constant is None)


def _operands(node: Node, changing: set[Value]) -> tuple[Value, Value, Value | None]:
    """Rows, matrix, and what is added. The matrix may come first, if the other is a vector."""
    if node.kind == "aten::addmm":
        return node.inputs[1], node.inputs[2], node.inputs[0]
    if node.kind == "aten::linear":
        return node.inputs[0], node.inputs[1], node.inputs[2]
    left, right = node.inputs
    return (left, right, None) if left in changing else (right, left, None)


def is_recognised(graph: Graph) -> bool:
    """Whether the loop of a graph that was made for one still is what it was in the program."""
    (loop,) = [node for node in graph if node.kind == "prim::Loop"]
    return loops.recognised(loop) is not None


def loop_of(graph: Graph) -> loops.CollectingLoop:
    """The loop of a graph that was made for one."""
    (loop,) = [node for node in graph if node.kind == "prim::Loop"]
    found = loops.recognised(loop)
    assert found is not None
    return found


def frontier(found: loops.CollectingLoop) -> list[Value]:
    """Values that depend on the round but on nothing that has to stay in the loop, where they meet
    what does.
    """
    ahead = Leaving(found).ahead(PRODUCTS)
    changing: dict[Value, None] = {found.index: None}
    for node in ahead:
        if any(value in changing for value in facts.used_values(node)):
            changing.update(dict.fromkeys(node.outputs))
    used: set[Value] = {collected.element for collected in found.lists}
    used.update(found.body.outputs[place + 1] for place in found.states)
    kept = set(found.work()) - set(ahead)
    for node in kept:
        used.update(node.inputs)
    return [value for value in changing if value in used]


@dataclass(slots=True)
class Round:
    """One round of a loop as a graph: of states, rows and constants, to states and elements.

    The places are those among the inputs of the loop's graph.
    """

    graph: Graph
    states: list[int]
    """Where the first states come from."""
    rows: list[int]
    """Tensors of which each round takes a row."""
    constants: list[int]
    elements: list[int]
    """Places of collected elements among the round's results."""
    results: list[tuple[str, int]] = field(default_factory=list)
    """For each result of the loop: ("stack", which element) or ("state", which state)."""
    products: list[Product] = field(default_factory=list)
    fresh: set[int] = field(default_factory=set)
    """Places of arguments that nobody else holds."""
    compiled: Callable[..., Any] | None = None
    plain: Graph | None = None
    """The same with its products as they stand."""
    operators: Callable[..., Any] | None = None

    def run_plain(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """One round, operator by operator."""
        if self.operators is None:
            assert self.plain is not None
            self.operators = runner(self.plain)
        results = self.operators(*values)
        return results if isinstance(results, tuple) else (results,)

    def run(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """One round of states, rows and constants; its products need someone who traces them."""
        if self.compiled is None:
            self.compiled = runner(self.graph)
        results = self.compiled(*values)
        return results if isinstance(results, tuple) else (results,)


class Product:
    """A product of a round, as a callable of the operand and the matrix.

    turned: whether the matrix is multiplied transposed, as in `linear`. vector: whether it is the
    left one, and the other must be a vector. While a round is traced, `traced` takes its place.
    """

    def __init__(self, number: int, turned: bool, vector: bool) -> None:
        self.number = number
        self.turned = turned or vector
        self.vector = vector
        self.traced: Callable[..., Any] | None = None

    def __call__(self, rows: Any, matrix: Any) -> Any:
        """What the tracer makes of it."""
        assert self.traced is not None
        return self.traced(self, rows, matrix)

    def __repr__(self) -> str:
        return f"<product {self.number} of a round>"


def put_scan(graph: Graph, fresh: set[int]) -> bool:
    """Put a scan in the place of the loop in a graph whose rows have been computed ahead; whether
    it is one. The graph is not to be used if it is none. `fresh`: those of the graph's inputs that
    nobody else holds.
    """
    from flambeau.jit.optimise.scans.scan import Scan

    found = loop_of(graph)
    stacks = _stack_first(found)
    unbinds = list(dict.fromkeys(parts for parts, _ in _row_parts(found)))
    nodes = [*[c.made for c in found.lists], *unbinds, found.loop, *stacks]
    states = [found.loop.outputs[k] for k in found.states]
    outputs = [stack.output for stack in stacks] + [value for value in states if value.users]
    trips = found.loop.inputs[0]
    inputs = [trips, *[value for value in captured(nodes) if value is not trips]]
    whole = extracted(nodes, inputs, outputs)
    made = round_of(whole)
    fits = all(matrix_of(made, product) is not None for product in made.products)
    if fits:
        own = {graph.inputs[k] for k in fresh}
        made.fresh = {k for k, value in enumerate(inputs) if value in own}
        replace_by_call(nodes, found.loop, inputs, outputs, Scan(whole, made))
    return fits


def _stack_first(found: loops.CollectingLoop) -> list[Node]:
    """Let each list be stacked along dim 0, and other joins take its tensors from that."""
    from flambeau.jit.operators import table

    graph, made = found.loop.graph, []
    for collected in found.lists:
        after = found.loop.after
        assert after is not None
        with graph.inserting(after):
            zero = graph.constant(0)
            items = collected.joins[0].inputs[0]
            stack = graph.insert("aten::stack", (items, zero))
            stack.schema, stack.source = table.overload("aten::stack"), collected.joins[0].source
            parts = graph.insert("aten::unbind", (stack.output, zero), (T.ListType(T.TENSOR),))
            parts.schema, parts.source = table.overload("aten::unbind", "int"), stack.source
        for k, join in enumerate(collected.joins):
            if not k and join.kind == "aten::stack" and join.inputs[1].constant == 0:
                join.output.replace_by(stack.output)
                join.destroy()
            else:
                join.set_input(0, parts.output)
        if not parts.output.users:
            parts.destroy()
        made.append(stack)
    return made


def _row_parts(found: loops.CollectingLoop) -> list[tuple[Node, Node]]:
    """The `unbind` and the `__getitem__` of each row that rounds take."""
    pairs = []
    for node in found.body:
        if node.kind == "aten::__getitem__" and node.inputs[1] is found.index:
            parts = node.inputs[0].node
            assert parts is not None
            pairs.append((parts, node))
    return pairs


def round_of(graph: Graph) -> Round:
    """The round of a graph that consists of one loop."""
    found = loop_of(graph)
    place = graph.inputs.index
    rows = _row_parts(found)
    taken = [item for _, item in rows]
    work = [node for node in found.work() if node not in taken]
    states = [found.body.inputs[k + 1] for k in found.states]
    outputs = [found.body.outputs[k + 1] for k in found.states]
    outputs += [c.element for c in found.lists]
    own = [*states, *[item.output for item in taken]]
    inside = {value for node in work for value in node.outputs} | set(own)
    others = [value for value in (*captured(work), *outputs) if value not in inside]
    others = list(dict.fromkeys(value for value in others if not value.is_constant))
    elements = list(range(len(states), len(outputs)))
    made = Round(extracted(work, [*own, *others], outputs),
                 [place(found.loop.inputs[k + 2]) for k in found.states],
                 [place(parts.inputs[0]) for parts, _ in rows],
                 [place(value) for value in others], elements)  # fmt: skip
    made.plain = extracted(work, [*own, *others], outputs)
    made.results = _results(graph, found)
    _mark_products(made)
    return made


def matrix_of(made: Round, product: Product) -> int | None:
    """The place of a product's matrix; None where rounds compute it."""
    (node,) = [node for node in made.graph if node.attributes.get("function") is product]
    inputs = made.graph.inputs
    number = inputs.index(node.inputs[1]) if node.inputs[1] in inputs else -1
    start = len(made.states) + len(made.rows)
    return made.constants[number - start] if number >= start else None


def _results(graph: Graph, found: loops.CollectingLoop) -> list[tuple[str, int]]:
    known = {c.joins[0].output: ("stack", k) for k, c in enumerate(found.lists)}
    known.update({found.loop.outputs[place]: ("state", k) for k, place in enumerate(found.states)})
    return [known[value] for value in graph.outputs]


def _mark_products(made: Round) -> None:
    """Let products be calls that a tracer can take over; what they add is added behind them."""
    from flambeau.jit.operators import table

    graph = made.graph
    free = set(graph.inputs[len(made.states) :])
    for node in list(graph):
        if node.kind not in PRODUCTS:
            continue
        left, right, rest = _operands(node, {v for v in node.inputs if v not in free})
        vector = right is node.inputs[0] and node.kind != "aten::addmm"
        product = Product(len(made.products), node.kind == "aten::linear", vector)
        made.products.append(product)
        with graph.inserting(node):
            call = graph.insert("flambeau::Call", (left, right), function=product)
            result = call.output
            if rest is not None and not (rest.is_constant and rest.constant is None):
                add = graph.insert("aten::add", (result, rest, graph.constant(1)))
                add.schema = table.overload("aten::add", "Tensor")
                result = add.output
        node.output.replace_by(result)
        node.destroy()
