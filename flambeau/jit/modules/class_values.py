"""Classes, enumerations and NamedTuples as programs see them."""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence

from flambeau.jit.frontend.compiler import Compiler
from flambeau.jit.frontend.simple_value import FunctionValue, MethodValue, SimpleValue
from flambeau.jit.frontend.special_forms import SpecialForm, check_inputs
from flambeau.jit.frontend.sugar import SugaredValue, sugar_of
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators.matching import Argument, match_one


class ClassValue(SugaredValue):
    """A class, to be called for an object, or asked for a static method."""

    kind = "Python type"

    def __init__(self, type: T.ClassType) -> None:
        self.type = type

    def as_type(self, where: SourceRange) -> T.Type:
        return self.type

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        with graph.at(where):
            made = graph.insert("prim::CreateObject", (), (self.type,)).output
        if "__init__" not in self.type.methods:
            raise ScriptError(f"Class {self.type.name} does not have an __init__ function defined",
                              where)  # fmt: skip
        MethodValue(made, "__init__").call(graph, where, args, kwargs, 0)
        return SimpleValue(made)

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        static = getattr(self.type.python, "__dict__", {}).get(name)
        if isinstance(static, staticmethod):
            return sugar_of(static.__func__, where)
        if name == "__new__":
            return _New(self.type)
        if name in self.type.methods:  # a hook, in the code of an archive: called as a function
            return FunctionValue(self.type.methods[name])
        raise ScriptError("Tried to lookup unknown attribute on class", where)


class UnderConstruction(SugaredValue):
    """`self` in `__init__`: assignments declare the attributes of the class."""

    kind = "object"

    def __init__(self, value: Value | None = None) -> None:
        self.value = value

    def bound_to(self, value: Value) -> UnderConstruction:
        """The object, once the graph has a value for it."""
        return UnderConstruction(value)

    @property
    def _simple(self) -> SimpleValue:
        assert self.value is not None
        return SimpleValue(self.value)

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        return self._simple.value

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        return self._simple.attr(graph, where, name)

    def has_attr(self, graph: Graph, where: SourceRange, name: str) -> bool:
        return self._simple.has_attr(graph, where, name)

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        return self._simple.call(graph, where, args, kwargs, n_binders)

    def set_attr(self, graph: Graph, where: SourceRange, name: str, value: Value) -> None:
        type = self._simple.type
        assert isinstance(type, T.ClassType)
        if name not in type.attributes:
            if graph.point.block is not graph.block:
                raise ScriptError(
                    "First assignment cannot be in a control-flow block. Initialize the field at "
                    "the top level first", where
                )  # fmt: skip
            type.add(name, value.type)
        self._simple.set_attr(graph, where, name, value)


class _New(SpecialForm):
    """`Class.__new__`: called with the class, it gives an object without its attributes."""

    kind = "method"

    def __init__(self, type: T.ClassType) -> None:
        super().__init__("__new__")
        self.type = type

    def apply(self, c: Compiler, node: ast.Call, wanted: T.Type | None) -> SugaredValue:
        check_inputs(c, node, 1, 1)
        with c.graph.at(c.place(node)):
            return SimpleValue(c.graph.insert("prim::CreateObject", (), (self.type,)).output)


class EnumMember(SugaredValue):
    """A member of an enumeration: a constant, whose value is known."""

    kind = "enum value"

    def __init__(self, member: enum.Enum) -> None:
        self.member = member

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        from flambeau.jit.modules.enums import enum_type

        with graph.at(where):
            return graph.constant(self.member, enum_type(type(self.member)))

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        if name not in ("name", "value"):
            raise ScriptError(f"enum member has no attribute '{name}'", where)
        with graph.at(where):
            return SimpleValue(graph.constant(getattr(self.member, name)))


class EnumClass(SugaredValue):
    """An enumeration: its members are attributes, and a loop goes through them."""

    kind = "enum class"

    def __init__(self, owner: type[enum.Enum]) -> None:
        self.owner = owner

    def as_type(self, where: SourceRange) -> T.Type:
        from flambeau.jit.modules.enums import enum_type

        return enum_type(self.owner)

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        member = self.owner.__members__.get(name)
        if member is None:
            raise ScriptError(
                f"Enum '{self.as_type(where).annotation}' has no attribute '{name}'", where
            )
        return EnumMember(member)

    def _members(self, graph: Graph, where: SourceRange) -> SimpleValue:
        type = T.ListType(self.as_type(where))
        with graph.at(where):
            return SimpleValue(graph.constant(list(self.owner), type))

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        return self._members(graph, where).value

    def iterate(self, graph: Graph, where: SourceRange) -> SugaredValue:
        return self._members(graph, where)


class NamedTupleClass(SugaredValue):
    """A NamedTuple class, to be called."""

    kind = "named tuple"

    def __init__(self, type: T.TupleType) -> None:
        self.type = type

    def as_type(self, where: SourceRange) -> T.Type:
        return self.type

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        with graph.at(where):
            args = [argument.in_graph(graph) for argument in args]
            kwargs = [argument.in_graph(graph) for argument in kwargs]
        match = match_one(schema_of(self.type), graph, where, args, kwargs)
        with graph.at(where):
            made = graph.insert("prim::TupleConstruct", match.inputs, (self.type,))
        return SimpleValue(made.output)


def schema_of(type: T.TupleType) -> FunctionSchema:
    """The parameters that make a NamedTuple."""
    required = len(type.fields) - len(type.defaults)
    defaults = (REQUIRED,) * required + type.defaults
    parameters = tuple(map(Parameter, type.fields, type.elements, defaults))
    return FunctionSchema(type.qualified_name, "", parameters, (Parameter("", type),))
