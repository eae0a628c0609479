"""Calls of compiled functions and methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.jit.frontend.errors import note_place
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function, FunctionSchema
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators.matching import Argument, match_any, packed


def defined(function: Function, where: SourceRange) -> Function:
    """The function, compiled.

    Raises:
        ScriptError: it is being compiled right now, so it calls itself.
    """
    if function.defining:
        raise ScriptError(
            f" function '{function.name}' is called recursively. "
            "Recursive calls are not supported", where
        )  # fmt: skip
    note_place(where)
    function.ensure_defined()
    return function


def call_function(graph: Graph, where: SourceRange, functions: Sequence[Any],
                  args: Sequence[Argument], kwargs: Sequence[Argument]) -> Value:  # fmt: skip
    """Call the first of several functions that takes the arguments."""
    ready = [defined(function, where) for function in functions]
    with graph.at(where):
        args = [argument.in_graph(graph) for argument in args]
        kwargs = [argument.in_graph(graph) for argument in kwargs]
    index, match = match_any([f.schema for f in ready], graph, where, args, kwargs)
    function = ready[index]
    type = T.FunctionType(function)
    callee = graph.insert("prim::Constant", (), (type,), name=function.name).output
    with graph.at(where):
        node = graph.insert("prim::CallFunction", [callee, *match.inputs], match.return_types)
        return packed(graph, node.outputs)


def call_method(graph: Graph, where: SourceRange, owner: Value, names: Sequence[str],
                args: Sequence[Argument], kwargs: Sequence[Argument]) -> Value:  # fmt: skip
    """Call the first of several methods of an object that takes the arguments."""
    schemas = [method_schema(owner.type, name, where) for name in names]
    with graph.at(where):
        args = [argument.in_graph(graph) for argument in args]
        kwargs = [argument.in_graph(graph) for argument in kwargs]
    index, match = match_any(schemas, graph, where, [Argument(owner, where), *args], kwargs)
    with graph.at(where):
        node = graph.insert("prim::CallMethod", match.inputs, match.return_types, name=names[index])
        return packed(graph, node.outputs)


def method_schema(type: T.Type, name: str, where: SourceRange) -> FunctionSchema:
    """The schema of a method of a class or interface, compiled if that has not been done."""
    assert isinstance(type, (T.ClassType, T.InterfaceType))
    method = type.methods[name]
    if isinstance(method, FunctionSchema):
        return method
    return defined(method, where).schema
