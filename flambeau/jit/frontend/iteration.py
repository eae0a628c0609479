"""What loops go through: ranges, tuples, `zip` and `enumerate`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from flambeau.jit.frontend.compiler import MAX_TRIPS, Compiler
from flambeau.jit.frontend.indexing import constant_index
from flambeau.jit.frontend.simple_value import SimpleValue, shown
from flambeau.jit.frontend.special_forms import SpecialForm, form
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators.matching import Argument, emit_builtin


class Range(SugaredValue):
    """`range(start, end, step)`."""

    kind = "range"

    def __init__(self, graph: Graph, where: SourceRange, bounds: Sequence[Value],
                 static_length: int | None = None) -> None:  # fmt: skip
        for index, bound in enumerate(bounds):
            if bound.type != T.INT:
                raise ScriptError(
                    f"all inputs of range must be ints, found {shown(bound.type)} in argument "
                    f"{index}", where
                )  # fmt: skip
        if not bounds:
            raise ScriptError("range expected at least 1 arguments, got 0", where)
        if len(bounds) > 3:
            raise ScriptError(f"range expected at most 3 arguments, got {len(bounds)}", where)
        self.only_end = len(bounds) == 1
        self.known = static_length
        with graph.at(where):
            if self.only_end:
                self.end = bounds[0]
                self.start = graph.constant(0)
                self.step = graph.constant(1)
            else:
                self.start, self.end = bounds[:2]
                self.step = bounds[2] if len(bounds) == 3 else graph.constant(1)

    @property
    def unrolled(self) -> bool:  # type: ignore[override]
        """Whether it counts the elements of something that is unrolled."""
        return self.known is not None

    def iterate(self, graph: Graph, where: SourceRange) -> SugaredValue:
        return self

    def static_length(self) -> int | None:
        return self.known

    def length(self, graph: Graph, where: SourceRange) -> Value:
        if self.only_end:
            return self.end
        bounds = [Argument(value, where) for value in (self.start, self.end, self.step)]
        return emit_builtin(graph, where, "aten::__range_length", bounds)

    def getitem(self, graph: Graph, where: SourceRange, index: Value, wanted: T.Type | None = None
                ) -> SugaredValue:  # fmt: skip
        if self.only_end:
            return SimpleValue(index)
        given = [Argument(value, where) for value in (index, self.start, self.step)]
        return SimpleValue(emit_builtin(graph, where, "aten::__derive_index", given))


class SugaredTuple(SugaredValue):
    """A tuple of anything; loops over it are unrolled."""

    kind = "Tuple"
    unrolled = True

    def __init__(self, elements: Sequence[SugaredValue]) -> None:
        self.elements = list(elements)

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        values = [element.as_value(graph, where) for element in self.elements]
        type = T.TupleType(tuple(value.type for value in values))
        return graph.insert("prim::TupleConstruct", values, (type,)).output

    def as_tuple(self, graph: Graph, where: SourceRange, size: int | None = None
                 ) -> list[SugaredValue]:  # fmt: skip
        return self.elements

    def as_tuple_value(self, graph: Graph, where: SourceRange) -> SugaredValue:
        return self

    def iterate(self, graph: Graph, where: SourceRange) -> SugaredValue:
        return self

    def static_length(self) -> int | None:
        return len(self.elements)

    def length(self, graph: Graph, where: SourceRange) -> Value:
        with graph.at(where):
            return graph.constant(len(self.elements))

    def getitem(self, graph: Graph, where: SourceRange, index: Value, wanted: T.Type | None = None
                ) -> SugaredValue:  # fmt: skip
        number = constant_index(index)
        if number is None:
            raise ScriptError(
                "Expected integer literal for index. ModuleList/Sequential indexing is only "
                "supported with integer literals. For example, 'i = 4; self.layers[i](x)' will "
                "fail because i is not a literal. Enumeration is supported, e.g. "
                "'for index, v in enumerate(self): out = v(inp)'", where
            )  # fmt: skip
        count = len(self.elements)
        if not -count <= number < count:
            raise ScriptError(f"Tuple index out of range. Tuple is length {count} and index is "
                              f"{number}", where)  # fmt: skip
        return self.elements[number]


class Together(SugaredValue):
    """Several things that a loop goes through at once: `zip` and `enumerate`."""

    kind = "iterabletree"

    def __init__(self, graph: Graph, where: SourceRange, parts: Sequence[SugaredValue]) -> None:
        self.parts = list(parts)
        self.unrolled = any(part.unrolled for part in parts)
        lengths = [part.static_length() for part in self.parts]
        self.known: int | None = None
        if not self.unrolled:
            return
        if None in lengths:
            raise ScriptError(
                "Can not iterate over a module list or tuple with a value that does not have a "
                "statically determinable length\n", where
            )  # fmt: skip
        self.known = min(length for length in lengths if length is not None)

    def iterate(self, graph: Graph, where: SourceRange) -> SugaredValue:
        return self

    def static_length(self) -> int | None:
        return self.known

    def bases(self) -> list[SugaredValue]:
        """What the parts go through in the end."""
        found: list[SugaredValue] = []
        for part in self.parts:
            found += part.bases() if isinstance(part, Together) else [part]
        return found

    def length(self, graph: Graph, where: SourceRange) -> Value:
        lengths = [base.length(graph, where) for base in self.bases()]
        listed = graph.insert("prim::ListConstruct", lengths, (T.ListType(T.INT),)).output
        return emit_builtin(graph, where, "prim::min", [Argument(listed, where)])

    def getitem(self, graph: Graph, where: SourceRange, index: Value, wanted: T.Type | None = None
                ) -> SugaredValue:  # fmt: skip
        return SugaredTuple([part.getitem(graph, where, index) for part in self.parts])


@form("range")
def _range(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> SugaredValue:
    return Range(c.graph, c.place(node), c.values(node.args))


@form("zip")
def _zip(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> SugaredValue:
    where = c.place(node)
    if not node.args:
        raise ScriptError("zip expected at least 1 arguments, got 0", where)
    parts = [c.sugared(argument).iterate(c.graph, where) for argument in node.args]
    return Together(c.graph, where, parts)


@form("enumerate")
def _enumerate(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None
               ) -> SugaredValue:  # fmt: skip
    where = c.place(node)
    args = [*node.args, *(k.value for k in node.keywords if k.arg == "start")]
    if not args:
        raise ScriptError("enumerate expected at least 1 arguments, got 0", where)
    if len(args) > 2:
        raise ScriptError(f"enumerate expected at most 2 arguments, got {len(args)}", where)
    bounds = [c.value(argument) for argument in args[1:]]
    bounds.append(c.number(MAX_TRIPS, where))
    iterated = c.sugared(args[0]).iterate(c.graph, where)
    counter = Range(c.graph, where, bounds, iterated.static_length())
    return Together(c.graph, where, [counter, iterated])
