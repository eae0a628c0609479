"""What is known while one function is compiled, and the way from syntax to its meaning.

The modules `statements`, `expressions`, `conditions`, `loops`, … say what each kind of syntax
means; they put themselves into the tables below.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from flambeau._core.tables import entering
from flambeau.jit.frontend.environment import Environment
from flambeau.jit.frontend.errors import note_place
from flambeau.jit.frontend.source import Places
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.ir.source import ScriptError, Source, SourceRange
from flambeau.jit.operators.matching import Argument, emit_builtin

MAX_TRIPS = 2**63 - 1
"""The number of rounds of a loop that only its condition ends."""
NUMBERS: dict[type, T.Type] = {int: T.INT, float: T.FLOAT, complex: T.COMPLEX}
"""Types of numbers that programs write down."""


class Resolver(Protocol):
    """What the names of a program mean that are not its variables."""

    def value(self, name: str, graph: Graph, where: SourceRange) -> SugaredValue | None:
        """What a name means as a value."""

    def type(self, name: str, where: SourceRange) -> T.Type | None:
        """The type that a name, which may have dots, means in an annotation."""


StatementRule = Callable[["Compiler", Any], None]
ExpressionRule = Callable[["Compiler", Any, "T.Type | None"], "SugaredValue | Value"]
STATEMENTS: dict[type[ast.stmt], StatementRule] = {}
EXPRESSIONS: dict[type[ast.expr], ExpressionRule] = {}


statement = entering(STATEMENTS)
"""Let a function compile some kinds of statements."""


expression = entering(EXPRESSIONS)
"""Let a function say what some kinds of expressions mean."""


class Compiler:
    """The state of compiling one function into a graph."""

    def __init__(self, graph: Graph, source: Source, resolver: Resolver) -> None:
        from flambeau.jit.frontend.names import global_meaning

        self.graph = graph
        self.places = Places(source)
        self.resolver = resolver
        self.environment = Environment(
            graph, lambda name, where: global_meaning(name, graph, where, resolver)
        )
        self.loop = ""  # "", "loop" or "unrolled": what is around the statement
        self.exits: set[Block] = set()  # blocks that end in return or raise
        self.declared: T.Type | None = None  # the annotated type of results
        self.returned: T.Type | None = None  # the type that all results so far have in common
        self.constants: dict[tuple[type, Any], Value] = {}
        self.temporaries = 0

    @property
    def block(self) -> Block:
        """The block that is being compiled."""
        return self.environment.frame.block

    def place(self, node: ast.AST) -> SourceRange:
        """Where a piece of syntax stands."""
        return self.places.of(node)

    def temporary(self, prefix: str) -> str:
        """A name for a variable that no program can have."""
        self.temporaries += 1
        return f"{prefix}{self.temporaries}"

    # ---- syntax to meaning

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Compile statements, up to one that leaves the block."""
        for node in body:
            note_place(self.place(node))
            STATEMENTS[type(node)](self, node)
            if self.block in self.exits:
                return

    def sugared(self, node: ast.expr, wanted: T.Type | None = None) -> SugaredValue:
        """What an expression means. wanted: the annotated type of where it goes to."""
        from flambeau.jit.frontend.simple_value import SimpleValue

        rule = EXPRESSIONS.get(type(node))
        if rule is None:
            raise ScriptError(f"Cannot emit expr for: {ast.unparse(node)}", self.place(node))
        found = rule(self, node, wanted)
        return SimpleValue(found) if isinstance(found, Value) else found

    def value(self, node: ast.expr, wanted: T.Type | None = None) -> Value:
        """The value of an expression."""
        place = self.place(node)
        note_place(place)
        value = self.sugared(node, wanted).as_value(self.graph, place)
        if wanted == T.ANY and value.type != T.ANY:
            return self.cast(value, T.ANY)
        return value

    def values(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """The values of expressions; `*x` stands for the elements of x."""
        return [argument.value for argument in self.arguments(nodes)]

    def arguments(self, nodes: Sequence[ast.expr]) -> list[Argument]:
        """The positional arguments of a call."""
        found = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                found.append(Argument(self.value(node), self.place(node)))
                continue
            place = self.place(node)
            for part in self.sugared(node.value).as_tuple(self.graph, place):
                found.append(Argument(part.as_value(self.graph, place), place))
        return found

    def keywords(self, nodes: Sequence[ast.keyword]) -> list[Argument]:
        """The keyword arguments of a call."""
        return [Argument(self.value(k.value), self.place(k.value), k.arg) for k in nodes]

    def type_of(self, node: ast.expr) -> T.Type:
        """The type that an expression names."""
        from flambeau.jit.frontend.annotations import type_of_expression

        return type_of_expression(node, self.places, self.resolver)

    # ---- nodes

    def insert(self, kind: str, inputs: Sequence[Value], types: Sequence[T.Type],
               where: SourceRange | None, **attributes: Any) -> Node:  # fmt: skip
        """A node at the insertion point."""
        with self.graph.at(where):
            return self.graph.insert(kind, inputs, types, **attributes)

    def builtin(self, kind: str, where: SourceRange, *inputs: Any) -> Value:
        """A call of an operator."""
        return emit_builtin(self.graph, where, kind, [_as_argument(i, where) for i in inputs])

    def cast(self, value: Value, type: T.Type) -> Value:
        """The value as one of another type, without a check."""
        return self.graph.insert("prim::unchecked_cast", (value,), (type,)).output

    def tuple_of(self, values: Sequence[Value]) -> Value:
        """A tuple of values."""
        type = T.TupleType(tuple(value.type for value in values))
        return self.graph.insert("prim::TupleConstruct", values, (type,)).output

    def list_of(self, values: Sequence[Value], element: T.Type) -> Value:
        """A list of values."""
        return self.graph.insert("prim::ListConstruct", values, (T.ListType(element),)).output

    def constant(self, value: Any, where: SourceRange | None, type: T.Type | None = None) -> Value:
        """A constant at the insertion point."""
        with self.graph.at(where):
            return self.graph.constant(value, type)

    def number(self, value: complex, where: SourceRange) -> Value:
        """A number that the program names: one constant at the top of the graph for each."""
        key = (type(value), repr(value) if not isinstance(value, int) else value)
        known = self.constants.get(key)
        if known is None:
            top = self.graph.block.end.after
            assert top is not None
            node = self.graph.create("prim::Constant", (), (NUMBERS[type(value)],), value=value)
            node.source = where
            known = self.constants[key] = node.insert_before(top).output
        return known


def _as_argument(given: Any, where: SourceRange) -> Argument:
    return given if isinstance(given, Argument) else Argument(given, where)
