"""`torch.jit.fork`: a call that runs while the caller goes on."""

from __future__ import annotations

import ast

from flambeau.jit.frontend.closures import Closure, closure_graph
from flambeau.jit.frontend.compiler import Compiler
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Value, copy_nodes
from flambeau.jit.ir.source import ScriptError


def fork(c: Compiler, node: ast.Call) -> Value:
    """A node with a graph of its own, which calls the function; its result is a Future."""
    where = c.place(node)
    if not node.args:
        raise ScriptError("Expected at least one argument to fork()", where)
    callee = c.sugared(node.args[0])
    if isinstance(callee, Closure):
        inner, captured = closure_graph(c, callee)
        forked = c.insert("prim::fork", captured, (), where, Subgraph=inner)
        return forked.add_output(T.FutureType(inner.outputs[0].type))
    args, kwargs = c.arguments(node.args[1:]), c.keywords(node.keywords)
    node_ = c.insert("prim::fork", (), (), where)
    block = node_.add_block()
    with c.graph.inserting(block):
        result = callee.call(c.graph, where, args, kwargs, 1).as_value(c.graph, where)
    block.add_output(result)
    inner = Graph()
    mapping: dict[Value, Value] = {}
    for value in _captured(node_):
        mapping[value] = inner.add_input(value.type, value.name)
        node_.add_input(value)
    copy_nodes(block, inner.block, mapping)
    block.clear()
    node_.blocks.clear()
    node_.attributes["Subgraph"] = inner
    return node_.add_output(T.FutureType(result.type))


def _captured(node: object) -> list[Value]:
    """The values from outside that the nodes of a block use."""
    (block,) = node.blocks  # type: ignore[attr-defined]
    inside = {value for inner in block.walk() for value in inner.outputs}
    found: dict[Value, None] = {}
    for inner in block.walk():
        for value in inner.inputs:
            if value not in inside:
                found[value] = None
    return list(found)
