"""Parts of a graph as graphs of their own, called by a `flambeau::Call` node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.jit.ir.graph import Block, Graph, Node, Value, copy_node

CALL = "flambeau::Call"


def used_outside(nodes: Sequence[Node]) -> list[Value]:
    """Results of nodes that others use, in order."""
    own = set(nodes)
    return [value for node in nodes for value in node.outputs
            if any(not _belongs(user, own) for user, _ in value.users)]  # fmt: skip


def _belongs(user: Node | Block, own: set[Node]) -> bool:
    node = user.owner if isinstance(user, Block) else user
    while node is not None and node not in own:
        node = node.block.owner if node.block is not None else None
    return node is not None


def extracted(nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
    """A graph with copies of nodes; constants that they use are copied too."""
    graph = Graph()
    mapping: dict[Value, Value] = {v: graph.add_input(v.type, v.name) for v in inputs}
    for node in nodes:
        _copy_constants(node, graph, mapping)
        graph.block.append(copy_node(node, graph, mapping))
    for value in outputs:
        graph.add_output(mapping[value])
    return graph


def _copy_constants(node: Node, graph: Graph, mapping: dict[Value, Value]) -> None:
    used = list(node.inputs)
    for block in node.blocks:
        used += block.outputs
        for inner in block:
            _copy_constants(inner, graph, mapping)
    for value in used:
        if value.is_constant and value not in mapping:
            assert value.node is not None
            graph.block.append(copy_node(value.node, graph, mapping))


def replace_by_call(nodes: Sequence[Node], point: Node, inputs: Sequence[Value],
                    outputs: Sequence[Value], function: Callable[..., Any]) -> Node:  # fmt: skip
    """Put a call before `point` in the place of nodes, which are removed."""
    graph = point.graph
    call = graph.create(CALL, inputs, [v.type for v in outputs], function=function)
    call.source = nodes[-1].source
    call.insert_before(point)
    for old, new in zip(outputs, call.outputs, strict=True):
        new.name = old.name
        old.replace_by(new)
    for node in reversed(nodes):
        node.destroy()
    return call


def runner(graph: Graph) -> Callable[..., Any]:
    """A Python function of a graph's inputs."""
    from flambeau.jit.run.program import graph_callable

    found: Callable[..., Any] = graph_callable(graph)
    return found


def without_unused(block: Block) -> None:
    """Leave out what computes nothing that is used."""
    from flambeau.jit.optimise.facts import is_pure

    for node in reversed(block):
        if is_pure(node) and not any(value.users for value in node.outputs):
            node.destroy()
