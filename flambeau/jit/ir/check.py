"""Whether a graph is sound: what passes must leave as they found it."""

from __future__ import annotations

from collections import Counter

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value

RESULTS_PER_BLOCK = {"prim::If": 0, "prim::Loop": 1}
"""How many more results a block has than its node: the loop's condition."""


class UnsoundGraph(AssertionError):
    """What is wrong with a graph."""


def check(graph: Graph) -> None:
    """Raise UnsoundGraph unless each value is defined once, before its uses and where they can see
    it, knows its users, and nodes have the inputs and blocks that their kind and schema ask for.
    """
    _Check(graph).block(graph.block, set())


class _Check:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.defined: set[Value] = set()
        self.uses: dict[Value, Counter[tuple[Node | Block, int]]] = {}
        self._count(graph.block)

    def _count(self, block: Block) -> None:
        for index, value in enumerate(block.outputs):
            self.uses.setdefault(value, Counter())[block, index] += 1
        for node in block:
            for index, value in enumerate(node.inputs):
                self.uses.setdefault(value, Counter())[node, index] += 1
            for inner in node.blocks:
                self._count(inner)

    def block(self, block: Block, outer: set[Value]) -> None:
        """`outer`: the values that are defined around the block, before it."""
        visible = set(outer)
        for value in block.inputs:
            self._define(value, visible)
            self._expect(value.block is block and value.node is None, f"input {value} is astray")
        for node in block:
            self._expect(node.block is block and node.graph is self.graph, f"{node} is astray")
            self._node(node, visible)
        for value in block.outputs:
            self._expect(value in visible, f"a block returns {value}, which it cannot see")

    def _node(self, node: Node, visible: set[Value]) -> None:
        for value in node.inputs:
            self._expect(value in visible, f"{node} uses {value}, which it cannot see")
        for inner in node.blocks:
            self.block(inner, visible)
        for value in node.outputs:
            self._define(value, visible)
            self._expect(value.node is node, f"result {value} does not know {node}")
        self._shape(node)
        self._schema(node)
        subgraph = node.attributes.get("Subgraph")
        if subgraph is not None:
            check(subgraph)

    def _define(self, value: Value, visible: set[Value]) -> None:
        self._expect(value not in self.defined, f"{value} is defined twice")
        known, counted = Counter(list(value.users)), self.uses.get(value, Counter())
        self._expect(known == counted, f"{value} does not know its users")
        self.defined.add(value)
        visible.add(value)

    def _shape(self, node: Node) -> None:
        more = RESULTS_PER_BLOCK.get(node.kind)
        if more is None:
            return
        results = len(node.outputs)
        for block in node.blocks:
            self._expect(len(block.outputs) == results + more, f"{node}: results of a block")
        if node.kind == "prim::If":
            self._expect(len(node.blocks) == 2 and len(node.inputs) == 1, f"{node}: two blocks")
        else:
            self._expect(len(node.inputs) == results + 2, f"{node}: what it carries")
            self._expect(len(node.blocks[0].inputs) == results + 1, f"{node}: inputs of its body")
            self._expect(node.inputs[0].type == T.INT, f"{node}: the number of trips")

    def _schema(self, node: Node) -> None:
        schema = node.schema
        if schema is None or schema.vararg:
            return
        self._expect(len(schema.arguments) == len(node.inputs), f"{node}: number of arguments")
        if not schema.varret:
            self._expect(len(schema.returns) == len(node.outputs), f"{node}: number of results")

    def _expect(self, condition: bool, message: str) -> None:
        if not condition:
            raise UnsoundGraph(message)
