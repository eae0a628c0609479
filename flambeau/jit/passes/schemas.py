"""Gives nodes the schemas that fit their inputs: for graphs that were read from text."""

from __future__ import annotations

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.ir.graph import Graph, Node
from flambeau.jit.operators import table
from flambeau.jit.operators.type_variables import Bound, Mismatch, bind, evaluate


def attach_schemas(graph: Graph) -> None:
    """Note on each node the overload that its inputs fit; nodes that have one keep it."""
    for node in graph.walk():
        if node.schema is None:
            node.schema = fitting_schema(node)
        inner = node.attributes.get("Subgraph")
        if inner is not None:
            attach_schemas(inner)


def fitting_schema(node: Node) -> FunctionSchema | None:
    """The first overload of the node's name that takes its inputs as they are."""
    for schema in table.overloads(node.kind):
        if takes(schema, node):
            return schema
    return None


def takes(schema: FunctionSchema, node: Node) -> bool:
    """Whether the node's inputs are what a schema asks for, one for each parameter."""
    if schema.vararg:
        return True
    if len(schema.arguments) != len(node.inputs):
        return False
    bound: Bound = {}
    for parameter, value in zip(schema.arguments, node.inputs, strict=True):
        try:
            bind(parameter.type, value.type, bound)
        except Mismatch:
            return False
        wanted = evaluate(parameter.type, bound) or T.ANY
        if not value.type.is_subtype_of(wanted):
            return False
    return True
