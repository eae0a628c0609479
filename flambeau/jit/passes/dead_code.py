"""Removes nodes whose results nobody uses and that do nothing else.

What is alive: what has side effects, what waits for a fork (which may have some), what the graph
returns, what that needs, and what writes to something that is alive or known outside of the graph.
Results of `If` and values carried by `Loop` are alive one by one.
"""

from __future__ import annotations

from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.passes.alias import AliasInfo
from flambeau.jit.passes.effects import has_side_effects, writes_inputs


def remove_dead_code(graph: Graph) -> None:
    """Remove what is not alive, in inner blocks too."""
    for node in graph.walk():
        inner = node.attributes.get("Subgraph")
        if inner is not None:
            remove_dead_code(inner)
    _sweep(graph, _Life(graph))


class _Life:
    """Which nodes and values are alive."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: set[Node] = set()
        self.values: set[Value] = set(graph.inputs)
        self._todo: list[Node | Value] = []  # alive, and what they need has not been noted
        for value in graph.outputs:
            self.want(value)
        writers = []
        for node in graph.walk():
            if has_side_effects(node) or node.kind == "aten::wait":
                self.keep(node)
            elif writes_inputs(node):
                writers.append(node)
        self._spread()
        if not self.nodes.issuperset(writers):
            self._keep_writers(writers, AliasInfo(graph))

    def _keep_writers(self, waiting: list[Node], alias: AliasInfo) -> None:
        """Keep those that write to something alive, which may make more of it alive."""
        found = waiting
        while found:
            waiting = [node for node in waiting if node not in self.nodes]
            places = alias.places(self.values)
            found = [
                node for node in waiting
                if alias.writes_outside(node) or not places.isdisjoint(alias.written_by(node))
            ]  # fmt: skip
            for node in found:
                self.keep(node)
            self._spread()

    def keep(self, node: Node) -> None:
        """The node has to stay."""
        if node not in self.nodes:
            self.nodes.add(node)
            self._todo.append(node)

    def want(self, value: Value) -> None:
        """The value is used."""
        if value not in self.values:
            self.values.add(value)
            self._todo.append(value)

    def _spread(self) -> None:
        while self._todo:
            found = self._todo.pop()
            if isinstance(found, Node):
                self._needs_of_node(found)
            elif found.node is not None:
                self._needs_of_result(found, found.node)
            elif found.block is not None and found.block.owner is not None:
                self._needs_of_input(found, found.block, found.block.owner)

    def _needs_of_node(self, node: Node) -> None:
        """Its inputs, and the node that it lies within; of carried values only those alive."""
        needed = list(node.inputs)
        if node.kind == "prim::Loop":
            needed = [*node.inputs[:2], node.blocks[0].outputs[0]]
        elif node.kind != "prim::If":
            needed += [value for block in node.blocks for value in block.outputs]
        for value in needed:
            self.want(value)
        if node.block is not None and node.block.owner is not None:
            self.keep(node.block.owner)

    def _needs_of_result(self, value: Value, node: Node) -> None:
        self.keep(node)
        if node.kind == "prim::If":
            index = node.outputs.index(value)
            for block in node.blocks:
                self.want(block.outputs[index])
        elif node.kind == "prim::Loop":
            self._want_carried(node, node.outputs.index(value))

    def _needs_of_input(self, value: Value, block: Block, node: Node) -> None:
        self.keep(node)
        index = block.inputs.index(value)
        if node.kind == "prim::Loop" and index > 0:
            self._want_carried(node, index - 1)

    def _want_carried(self, node: Node, index: int) -> None:
        (body,) = node.blocks
        for value in (node.inputs[index + 2], body.inputs[index + 1], body.outputs[index + 1]):
            self.want(value)
        self.want(node.outputs[index])


def _sweep(graph: Graph, life: _Life) -> None:
    nodes = list(graph.walk())
    dead = {node: _dead_results(node, life) for node in nodes if node in life.nodes}
    for node, indices in dead.items():
        _release(node, indices)
    for node in reversed(nodes):
        owner = node.block.owner if node.block is not None else None
        if node not in life.nodes and (owner is None or owner in life.nodes):
            node.destroy()
    for node, indices in dead.items():
        _remove_results(node, indices)


def _dead_results(node: Node, life: _Life) -> list[int]:
    """The results of an `If` or `Loop` that are dead, last ones first."""
    if node.kind not in ("prim::If", "prim::Loop"):
        return []
    count = len(node.outputs)
    return [i for i in reversed(range(count)) if node.outputs[i] not in life.values]


def _release(node: Node, indices: list[int]) -> None:
    """Let nothing be used for dead results any more."""
    is_loop = node.kind == "prim::Loop"
    for index in indices:
        for block in node.blocks:
            block.remove_output(index + is_loop)
        if is_loop:
            node.remove_input(index + 2)


def _remove_results(node: Node, indices: list[int]) -> None:
    for index in indices:
        node.remove_output(index)
        if node.kind == "prim::Loop":
            del node.blocks[0].inputs[index + 1]
