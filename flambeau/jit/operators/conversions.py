"""Conversions that a call makes by itself: a value of one type where another one is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Node, Value

FROM_TENSOR: dict[T.Type, str] = {
    T.FLOAT: "aten::FloatImplicit", T.COMPLEX: "aten::ComplexImplicit",
    T.INT: "aten::IntImplicit", T.NUMBER: "aten::ScalarImplicit",
}  # fmt: skip
FROM_NUMBER: dict[T.Type, str] = {
    T.FLOAT: "aten::Float",
    T.COMPLEX: "aten::Complex",
    T.INT: "aten::Int",
}
FROM_BOOL: dict[T.Type, str] = {T.FLOAT: "aten::Float", T.INT: "aten::Int", T.NUMBER: "aten::Int"}


def without_none(type: T.Type) -> T.Type:
    """T of Optional[T]."""
    return type.inner if isinstance(type, T.OptionalType) else type


def convert(graph: Graph, wanted: T.Type, value: Value, implicit: bool) -> Value:
    """The value as one of type `wanted`, if there is a conversion, else the value itself.

    Tuples become lists and empty literals lists of any type; with `implicit`, tensors become
    numbers, numbers those of another type, and texts devices.
    """
    if isinstance(wanted, T.OptionalType):
        if isinstance(value.type, T.OptionalType) or value.type.is_subtype_of(T.NONE):
            return value
        return convert(graph, wanted.inner, value, implicit)
    if isinstance(wanted, T.ListType) and _is_empty_literal(value):
        return list_of(graph, wanted.element, ())
    if isinstance(value.type, T.TupleType):
        return _convert_tuple(graph, wanted, value, implicit)
    return _convert_implicitly(graph, wanted, value) if implicit else value


def _is_empty_literal(value: Value) -> bool:
    return value.node is not None and value.node.kind == "prim::EmptyListLiteral"


def _convert_implicitly(graph: Graph, wanted: T.Type, value: Value) -> Value:
    kind = None
    if value.type.is_subtype_of(T.TENSOR):
        kind = FROM_TENSOR.get(wanted)
    elif value.type == T.NUMBER:
        kind = FROM_NUMBER.get(wanted)
    elif value.type == T.BOOL:
        kind = FROM_BOOL.get(wanted)
    elif value.type == T.STRING and wanted == T.DEVICE:
        kind = "aten::device"
    if kind is None:
        return value
    from flambeau.jit.operators.matching import emit_builtin

    return emit_builtin(graph, graph.place, kind, [value])


def _convert_tuple(graph: Graph, wanted: T.Type, value: Value, implicit: bool) -> Value:
    if isinstance(wanted, T.ListType):
        if not convertible_to_list(value.type, wanted):
            return value
        return list_of(graph, wanted.element, unpack(graph, value))
    if not isinstance(wanted, T.TupleType) or value.type.is_subtype_of(wanted):
        return value
    if len(wanted.elements) != len(value.type.parts):
        return value
    pairs = zip(wanted.elements, unpack(graph, value), strict=True)
    return pack(graph, [convert(graph, type, part, implicit) for type, part in pairs])


def convertible_to_list(type: T.Type, wanted: T.Type) -> bool:
    """Whether a value of a type is a list of the wanted type, or a tuple that can become one."""
    if not isinstance(wanted, T.ListType):
        return False
    if type.is_subtype_of(wanted):
        return True
    return isinstance(type, T.TupleType) and all(
        element.is_subtype_of(wanted.element) for element in type.elements
    )


def repeated(graph: Graph, value: Value, wanted: T.Type, length: int | None) -> Value:
    """One number where `int[2]` is wanted: a list of that many; else the value itself."""
    inner = without_none(wanted)
    if length is None or value.type not in (T.INT, T.FLOAT) or not isinstance(inner, T.ListType):
        return value
    if inner.element != value.type:
        return value
    return list_of(graph, value.type, [value] * length)


def list_of(graph: Graph, element: T.Type, values: Sequence[Value]) -> Value:
    """A list of values."""
    return _unplaced(graph.insert("prim::ListConstruct", values, (T.ListType(element),))).output


def _unplaced(node: Node) -> Node:
    """A node that conversions make: no piece of the program stands for it."""
    node.source = None
    return node


def unpack(graph: Graph, value: Value) -> list[Value]:
    """The elements of a tuple; those that it was just made of, if that is known."""
    if value.node is not None and value.node.kind == "prim::TupleConstruct":
        return list(value.node.inputs)
    return _unplaced(graph.insert("prim::TupleUnpack", (value,), value.type.parts)).outputs


def pack(graph: Graph, values: Sequence[Value], fields: Sequence[str] = ()) -> Value:
    """A tuple of values; with `fields`, one whose elements have names."""
    type = T.TupleType(tuple(v.type for v in values), "", tuple(fields))
    return _unplaced(graph.insert("prim::TupleConstruct", values, (type,))).output


def constant(graph: Graph, value: Any, type: T.Type) -> Value:
    """A default of a schema as a constant of the graph."""
    if value is None:
        return graph.constant(None, T.NONE)
    if isinstance(value, (tuple, list)) and isinstance(without_none(type), T.ListType):
        return graph.constant(list(value), without_none(type))
    if without_none(type) == T.DEVICE and isinstance(value, str):
        from flambeau._core.device import device

        return graph.constant(device(value), T.DEVICE)
    return graph.constant(value)
