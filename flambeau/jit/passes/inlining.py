"""Puts the graphs of called functions and methods in place of the calls."""

from __future__ import annotations

from itertools import islice

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.ir.graph import Graph, Node
from flambeau.jit.ir.source import Call
from flambeau.jit.passes.constants import pool_constants, propagate_immutable_constants
from flambeau.jit.passes.peepholes import simplify

INLINED = "passes.inlined"


def inline(graph: Graph, largest: int | None = None) -> None:
    """Inline all calls, and those in what they call. Calls of an interface's methods stay, and so
    do calls of a function within itself, and of one with more than `largest` nodes.
    """
    _inline(graph, (), largest)


def inlined_graph(function: Function, callers: tuple[Function, ...] = (),
                  largest: int | None = None) -> Graph:  # fmt: skip
    """A function's graph without calls, a little simplified; it is shared, so copy it."""
    found: Graph | None = function.compiled.get((INLINED, largest))
    if found is not None:
        return found
    graph = function.graph.copy()
    _inline(graph, (*callers, function), largest)
    simplify(graph)
    propagate_immutable_constants(graph)
    pool_constants(graph)
    if not any(callee in callers for callee in _callees(graph)):
        function.compiled[INLINED, largest] = graph
    return graph


def called_function(node: Node) -> Function | None:
    """What a call calls, if that is known before the program runs."""
    if node.kind == "prim::CallFunction":
        type = node.inputs[0].type
        return type.function if isinstance(type, T.FunctionType) else None
    if node.kind == "prim::CallMethod":
        owner = node.inputs[0].type
        if isinstance(owner, T.ClassType):
            return owner.method(node.attributes["name"])
    return None


def _inline(graph: Graph, callers: tuple[Function, ...], largest: int | None) -> None:
    for node in list(graph.walk()):
        callee = called_function(node)
        if callee is not None and callee not in callers:
            body = inlined_graph(callee, callers, largest)
            if largest is None or not _is_larger(body, largest):
                _replace(node, callee.name, body)
        inner = node.attributes.get("Subgraph")
        if inner is not None:
            node.attributes["Subgraph"] = inner.copy()
            _inline(node.attributes["Subgraph"], callers, largest)


def _is_larger(graph: Graph, largest: int) -> bool:
    return next(islice(graph.walk(), largest, None), None) is not None


def _replace(node: Node, name: str, callee: Graph) -> None:
    inputs = node.inputs[1:] if node.kind == "prim::CallFunction" else node.inputs
    before = node.before
    with node.graph.inserting(node):
        results = node.graph.inline(callee, inputs)
    _note_call((*node.calls, Call(name, node.source)), before, node)
    for value, result in zip(node.outputs, results, strict=True):
        if value.name and not result.name:
            result.name = value.name
        value.replace_by(result)
    node.destroy()


def _note_call(calls: tuple[Call, ...], before: Node | None, after: Node) -> None:
    """Let the nodes between two others know through which calls they came there."""
    longer: dict[tuple[Call, ...], tuple[Call, ...]] = {(): calls}
    assert before is not None
    one = before.after
    while one is not after:
        assert one is not None
        for node in (one, *(inner for block in one.blocks for inner in block.walk())):
            if node.calls not in longer:
                longer[node.calls] = (*calls, *node.calls)
            node.calls = longer[node.calls]
        one = one.after


def _callees(graph: Graph) -> list[Function]:
    found = (called_function(node) for node in graph.walk())
    return [callee for callee in found if callee is not None]
