"""Python values as constants of programs: globals, attributes, defaults of parameters."""

from __future__ import annotations

from typing import Any

from flambeau._core.device import device
from flambeau.jit.frontend.simple_value import SimpleValue, shown
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.ir.values import enumeration_number, type_of


class ConstantValue(SugaredValue):
    """A value that is known; it becomes a constant where it is used."""

    kind = "constant"

    def __init__(self, value: Any, type: T.Type | None = None) -> None:
        self.value = value
        self.type = type or type_of(value)

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        with graph.at(where):
            return constant_node(graph, self.value, self.type)

    def simple(self, graph: Graph, where: SourceRange) -> SimpleValue:
        """The constant as a value of the graph."""
        return SimpleValue(self.as_value(graph, where))

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        return self.simple(graph, where).attr(graph, where, name)

    def has_attr(self, graph: Graph, where: SourceRange, name: str) -> bool:
        return self.simple(graph, where).has_attr(graph, where, name)

    def as_tuple(self, graph: Graph, where: SourceRange, size: int | None = None
                 ) -> list[SugaredValue]:  # fmt: skip
        return self.simple(graph, where).as_tuple(graph, where, size)

    def as_tuple_value(self, graph: Graph, where: SourceRange) -> SugaredValue:
        return self.simple(graph, where)

    def iterate(self, graph: Graph, where: SourceRange) -> SugaredValue:
        return self.simple(graph, where).iterate(graph, where)

    def length(self, graph: Graph, where: SourceRange) -> Value:
        return self.simple(graph, where).length(graph, where)

    def getitem(self, graph: Graph, where: SourceRange, index: Value, wanted: T.Type | None = None
                ) -> SugaredValue:  # fmt: skip
        value = self.as_value(graph, where)
        if isinstance(value.type, T.TupleType):
            from flambeau.jit.frontend.iteration import SugaredTuple

            parts = SimpleValue(value).as_tuple(graph, where)
            return SugaredTuple(parts).getitem(graph, where, index)
        return SimpleValue(value).getitem(graph, where, index, wanted)


def constant_node(graph: Graph, value: Any, type: T.Type) -> Value:
    """A constant; lists, tuples and dictionaries are made of constants."""
    if isinstance(type, T.TupleType):
        pairs = zip(value, type.elements, strict=True)
        parts = [constant_node(graph, part, inner) for part, inner in pairs]
        return graph.insert("prim::TupleConstruct", parts, (type,)).output
    if isinstance(type, T.ListType):
        parts = [constant_node(graph, part, type.element) for part in value]
        return graph.insert("prim::ListConstruct", parts, (type,)).output
    if isinstance(type, T.DictType):
        parts = []
        for key, part in value.items():
            parts.append(constant_node(graph, key, type.key))
            parts.append(constant_node(graph, part, type.value))
        return graph.insert("prim::DictConstruct", parts, (type,)).output
    return graph.constant(value, T.NONE if value is None else type)


def plain(value: Any) -> Any:
    """A Python value as programs hold it: dtypes and the like are numbers."""
    number = enumeration_number(value)
    if number is not None:
        return number
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(plain(part) for part in value)
    return value


def constant_sugar(value: Any, type: T.Type | None = None) -> SugaredValue:
    """What a constant of a class or module means.

    Raises:
        TypeError: it is of no type that programs have.
    """
    if isinstance(value, SugaredValue):
        return value
    return ConstantValue(plain(value), type)


SCALARS = (bool, int, float, complex, str, type(None), device)


def constant_of(value: Any) -> SugaredValue | None:
    """What a Python object means as a constant; None if it is none."""
    found = plain(value)
    if isinstance(found, SCALARS) and type(found) in SCALARS:
        return ConstantValue(found)
    if type(found) is tuple and all(constant_of(part) is not None for part in found):
        return ConstantValue(found)
    return None


def default_value(value: Any, type: T.Type, name: str, where: SourceRange) -> Any:
    """The default of a parameter as a value of its type.

    Raises:
        ScriptError: it has another type.
    """
    found = plain(value)
    converted = _converted(found, type)
    if converted is not None or _fits(found, type):
        return converted[0] if converted is not None else found
    hint = ""
    if getattr(type, "inferred", False):
        hint = (
            f'Because "{name}" was not annotated with an explicit type it is assumed to be type '
            "'Tensor'."
        )
    raise ScriptError(
        f'Expected a default value of type {shown(type)} on parameter "{name}".{hint}', where
    )


def _fits(value: Any, type: T.Type) -> bool:
    try:
        return type_of(value).is_subtype_of(type)
    except TypeError:
        return False


def _is_list_of(value: Any, element: T.Type) -> bool:
    """Whether a tuple can be a list of a type."""
    return isinstance(value, tuple) and all(_fits(part, element) for part in value)


def _converted(value: Any, type: T.Type) -> tuple[Any] | None:
    """The value in a wider type of numbers, or as a list where it is a tuple."""
    for wanted in T.alternatives(type):
        if wanted == T.FLOAT and isinstance(value, int) and not isinstance(value, bool):
            return (float(value),)
        if isinstance(wanted, T.ListType) and _is_list_of(value, wanted.element):
            return (list(value),)
        if wanted == T.DEVICE and isinstance(value, str):
            return (device(value),)
        if isinstance(wanted, T.EnumType) and isinstance(value, wanted.python):
            return (value,)
    return None


def folded(value: Value, where: SourceRange) -> Any:
    """The Python value that constants make."""
    node = value.node
    assert node is not None
    if node.kind == "prim::Constant":
        return node.attributes.get("value")
    parts = [folded(part, where) for part in node.inputs]
    if node.kind == "prim::TupleConstruct":
        return tuple(parts)
    if node.kind == "prim::ListConstruct":
        return parts
    if node.kind == "prim::DictConstruct":
        return dict(zip(parts[::2], parts[1::2], strict=True))
    raise ScriptError("default values have to be constants", where)
