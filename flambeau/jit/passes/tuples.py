"""Takes apart tuples that are made only to be taken apart again."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.passes.dead_code import remove_dead_code


def lower_simple_tuples(graph: Graph) -> None:
    """Replace elements of tuples that the graph itself makes by what they were made of."""
    for node in graph.walk():
        _lower(node)
    remove_dead_code(graph)


def _lower(node: Node) -> None:
    if node.kind not in ("prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice"):
        return
    made = node.inputs[0].node
    if made is None or made.kind != "prim::TupleConstruct":
        return
    if node.kind == "prim::TupleUnpack":
        for result, value in zip(node.outputs, made.inputs, strict=True):
            result.replace_by(value)
    elif node.kind == "prim::TupleIndex":
        index = node.inputs[1]
        if index.is_constant:
            node.output.replace_by(made.inputs[index.constant])
    else:
        _slice(node, made.inputs)


def _slice(node: Node, values: Sequence[Value]) -> None:
    part = values[node.attributes["beg"] : node.attributes["end"]]
    graph = node.graph
    type = T.TupleType(tuple(value.type for value in part))
    with graph.inserting(node):
        made = graph.insert("prim::TupleConstruct", part, (type,))
    node.output.replace_by(made.output)


def lower_carried_tuples(graph: Graph) -> None:
    """As `lower_simple_tuples`, and loops carry the elements of tuples."""
    for node in graph.walk():
        if node.kind == "prim::Loop":
            _expand_carried(node)
            _expand_outputs(node.blocks[0])
    lower_simple_tuples(graph)


# ---- all tuples


def lower_all_tuples(graph: Graph) -> None:
    """Let tuples be passed as their elements: into and out of the graph, its loops and branches.

    Raises:
        RuntimeError: a tuple is used by an operator, which needs it as a whole.
    """
    for index in reversed(range(len(graph.inputs))):
        _expand_input(graph.block, index)
    _lower_block(graph.block)
    remove_dead_code(graph)


def _lower_block(block: Block) -> None:
    for node in block:
        if node.kind == "prim::If":
            _expand_results(node)
        elif node.kind == "prim::Loop":
            _expand_carried(node)
        for inner in node.blocks:
            _lower_block(inner)
        _split_constant(node)
        _lower(node)
    _expand_outputs(block)


def _expand_input(block: Block, index: int) -> None:
    """Give a block an input for each element, and make the tuple of them at its beginning."""
    value = block.inputs[index]
    if not isinstance(value.type, T.TupleType):
        return
    parts = [Value(type, None, block) for type in value.type.elements]
    block.inputs[index : index + 1] = parts
    first = block.end.after
    assert first is not None
    _made_of(block.graph, first, value, parts)
    for offset in reversed(range(len(parts))):
        _expand_input(block, index + offset)


def _made_of(graph: Graph, point: Node, value: Value, parts: Sequence[Value]) -> None:
    with graph.inserting(point):
        made = graph.insert("prim::TupleConstruct", parts, (value.type,))
    value.replace_by(made.output)


def _elements(graph: Graph, point: Node, value: Value) -> list[Value]:
    """The elements of a tuple, those of inner tuples too."""
    if not isinstance(value.type, T.TupleType):
        return [value]
    made = value.node
    if made is not None and made.kind == "prim::TupleConstruct":
        parts = list(made.inputs)
    else:
        with graph.inserting(point):
            parts = graph.insert("prim::TupleUnpack", (value,), value.type.elements).outputs
    return [leaf for part in parts for leaf in _elements(graph, point, part)]


def _expand_outputs(block: Block) -> None:
    if not any(isinstance(value.type, T.TupleType) for value in block.outputs):
        return
    leaves = [v for value in block.outputs for v in _elements(block.graph, block.end, value)]
    block.remove_all_outputs()
    for value in leaves:
        block.add_output(value)


def _leaf_types(type: T.Type) -> list[T.Type]:
    if not isinstance(type, T.TupleType):
        return [type]
    return [leaf for element in type.elements for leaf in _leaf_types(element)]


def _rebuild(graph: Graph, type: T.Type, leaves: list[Value]) -> Value:
    """The value of a type that its leaves, taken from the front, make up."""
    if not isinstance(type, T.TupleType):
        return leaves.pop(0)
    parts = [_rebuild(graph, element, leaves) for element in type.elements]
    return graph.insert("prim::TupleConstruct", parts, (type,)).output


def _expand_results(node: Node) -> None:
    """Results of a node that are tuples: their elements instead, and the tuples made behind it.
    Its blocks' results are expanded when the blocks are done.
    """
    results = node.outputs
    if not any(isinstance(value.type, T.TupleType) for value in results):
        return
    node.outputs = []
    graph = node.graph
    assert node.after is not None
    for value in results:
        leaves = [node.add_output(type) for type in _leaf_types(value.type)]
        with graph.inserting(node.after):
            value.replace_by(_rebuild(graph, value.type, leaves))


def _expand_carried(node: Node) -> None:
    values = node.inputs[2:]
    if not any(isinstance(value.type, T.TupleType) for value in values):
        return
    leaves = [v for value in values for v in _elements(node.graph, node, value)]
    inputs = [*node.inputs[:2], *leaves]
    node.remove_all_inputs()
    for value in inputs:
        node.add_input(value)
    (body,) = node.blocks
    for index in reversed(range(1, len(body.inputs))):
        _expand_input(body, index)
    _expand_results(node)


def _split_constant(node: Node) -> None:
    """A constant tuple is made of constants."""
    if node.kind != "prim::Constant" or not isinstance(node.output.type, T.TupleType):
        return
    graph, type = node.graph, node.output.type
    values = node.attributes["value"]
    with graph.inserting(node):
        parts = [graph.constant(v, t) for v, t in zip(values, type.elements, strict=True)]
        made = graph.insert("prim::TupleConstruct", parts, (type,))
    node.output.replace_by(made.output)
    for part in parts:
        _split_constant(part.node)  # type: ignore[arg-type]
