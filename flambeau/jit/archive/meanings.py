"""What the names in an archive's code mean: its own classes and functions, operators of the table,
and the few words of the dialect that archives are written in. Whatever else is named is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau.jit.frontend.simple_value import BuiltinFunction, FunctionValue, SimpleValue
from flambeau.jit.frontend.special_forms import SpecialForm
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.ir.values import type_of
from flambeau.jit.modules.class_values import ClassValue, EnumClass, NamedTupleClass

if TYPE_CHECKING:
    from flambeau.jit.archive.importer import Importer

Older = Callable[[str], tuple[Function, ...]]
PREFIX = "__torch__"
FORMS = ("annotate", "unchecked_cast", "uninitialized", "fork", "awaitable")
STRUCTURE = frozenset(("ConstantChunk", "TupleUnpack", "TupleIndex", "Uninitialized", "tolist"))
"""Kinds of nodes that have syntax of their own, and are no operators to be called by name."""


class Names:
    """What the names in an archive's code mean: see `frontend.compiler.Resolver`."""

    mutable_defaults = True  # `padding: List[int]=[0]`

    def __init__(self, importer: Importer) -> None:
        self.importer = importer

    def value(self, name: str, graph: Graph, where: SourceRange) -> SugaredValue | None:
        """What a name means as a value."""
        if name == PREFIX:
            return Path(self.importer, PREFIX)
        if name == "torch":
            return Operators("aten", self.importer.older)
        if name == "ops":
            return Namespaces(self.importer.older)
        if name == "CONSTANTS":
            return Constants(self.importer.constants)
        if name in ("inf", "nan"):
            with graph.at(where):
                return SimpleValue(graph.constant(float(name)))
        return SpecialForm(name) if name in FORMS else None

    def type(self, name: str, where: SourceRange) -> T.Type | None:
        """The type that a name with dots means."""
        if name.startswith(f"{PREFIX}."):
            return self.importer.type(name)
        return None


class Path(SugaredValue):
    """The beginning of a qualified name."""

    kind = "module"

    def __init__(self, importer: Importer, path: str) -> None:
        self.importer = importer
        self.path = path

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        path = f"{self.path}.{name}"
        return self.importer.find(path) or Path(self.importer, path)


class Operators(SugaredValue):
    """`torch` or `ops.prim`: its attributes are operators."""

    kind = "module"

    def __init__(self, namespace: str, older: Older) -> None:
        self.namespace = namespace
        self.older = older

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        if self.namespace == "prim" and name in STRUCTURE:
            raise ScriptError(f"prim::{name} cannot be called", where)
        older = self.older(f"{self.namespace}::{name}")
        return FunctionValue(*older) if older else BuiltinFunction(f"{self.namespace}::{name}")


class Namespaces(SugaredValue):
    """`ops`: its attributes are namespaces of operators."""

    kind = "module"

    def __init__(self, older: Older) -> None:
        self.older = older

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        return Operators(name, self.older)


class Constants(SugaredValue):
    """`CONSTANTS`: its attributes `c0`, `c1`, … are values that lie beside the code."""

    kind = "constants"

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        number = name.removeprefix("c")
        if not number.isdecimal() or len(number) > 9 or int(number) >= len(self.values):
            raise ScriptError(f"the archive has no constant {name}", where)
        value = self.values[int(number)]
        try:
            type = type_of(value)
        except (TypeError, RecursionError):
            raise ScriptError(f"the constant {name} of the archive is no value", where) from None
        with graph.at(where):
            return SimpleValue(graph.constant(value, type))


def sugar_of_type(made: T.Type) -> SugaredValue:
    """A type as a program may use it."""
    if isinstance(made, T.EnumType):
        return EnumClass(made.python)
    if isinstance(made, T.TupleType):
        return NamedTupleClass(made)
    if isinstance(made, T.ClassType):
        return ClassValue(made)
    raise ScriptError(f"{made} cannot be used as a value")
