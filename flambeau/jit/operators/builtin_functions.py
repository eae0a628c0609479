"""Calls that are other calls: `2 - x` is `neg(x) + 2`, `x.T` is `x.numpy_T()`.

They stand behind the overloads of a name, and their few nodes are put in place of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import Source, SourceRange

Body = Callable[["_Emit", Sequence[Value]], Value]


@dataclass(frozen=True)
class BuiltinFunction:
    """A schema, what it becomes, and its text, which the graph names as the place of the nodes."""

    schema: FunctionSchema
    body: Body
    place: SourceRange

    def insert(self, graph: Graph, inputs: Sequence[Value]) -> Value:
        """Put the nodes at the insertion point; their result."""
        return self.body(_Emit(graph, self.place), inputs)


class _Emit:
    """Calls by name: `emit.neg(x)` puts `aten::neg` into the graph."""

    def __init__(self, graph: Graph, place: SourceRange) -> None:
        self._graph = graph
        self._place = place

    def __getattr__(self, name: str) -> Callable[..., Value]:
        from flambeau.jit.operators.matching import emit_builtin

        return lambda *inputs: emit_builtin(self._graph, self._place, f"aten::{name}", inputs)


NUMBER_FIRST: dict[str, tuple[str, Body]] = {
    "mul": ("return b * a", lambda emit, v: emit.mul(v[1], v[0])),
    "add": ("return b + a", lambda emit, v: emit.add(v[1], v[0])),
    "ne": ("return b != a", lambda emit, v: emit.ne(v[1], v[0])),
    "eq": ("return b == a", lambda emit, v: emit.eq(v[1], v[0])),
    "sub": ("return torch.neg(b) + a", lambda emit, v: emit.add(emit.neg(v[1]), v[0])),
    "div": ("return torch.reciprocal(b) * a",
            lambda emit, v: emit.mul(emit.reciprocal(v[1]), v[0])),
    "lt": ("return b > a", lambda emit, v: emit.gt(v[1], v[0])),
    "le": ("return b >= a", lambda emit, v: emit.ge(v[1], v[0])),
    "gt": ("return b < a", lambda emit, v: emit.lt(v[1], v[0])),
    "ge": ("return b <= a", lambda emit, v: emit.le(v[1], v[0])),
}  # fmt: skip
"""`f(a: number, b: Tensor) -> Tensor`: the text of its body, and its nodes."""
NUMBER_FIRST_LINES = {"mul": 3, "add": 5, "ne": 7, "eq": 9, "sub": 11, "div": 13, "lt": 3, "le": 5,
                      "gt": 7, "ge": 9}  # fmt: skip
"""The line of each in torch's text."""
NOT_COMPLEX = frozenset(("lt", "le", "gt", "ge"))

PROPERTIES: dict[str, tuple[str, T.Type, Body]] = {
    "ndim": ("return a.dim()", T.INT, lambda emit, v: emit.dim(v[0])),
    "T": ("return a.numpy_T()", T.TENSOR, lambda emit, v: emit.numpy_T(v[0])),
    "H": ("return a.matrix_H()", T.TENSOR, lambda emit, v: emit.matrix_H(v[0])),
    "mT": ("return a.mT", T.TENSOR, lambda emit, v: emit.mT(v[0])),
    "mH": ("return a.mH", T.TENSOR, lambda emit, v: emit.mH(v[0])),
    "shape": ("return a.size()", T.ListType(T.INT), lambda emit, v: emit.size(v[0])),
}
"""Properties of tensors that are methods in truth."""


@cache
def builtin_functions(name: str) -> tuple[BuiltinFunction, ...]:
    """What a name means beside its overloads."""
    short = name.removeprefix("aten::")
    if short in NUMBER_FIRST:
        types = (T.FLOAT, T.INT) if short in NOT_COMPLEX else (T.FLOAT, T.INT, T.COMPLEX)
        text, body = NUMBER_FIRST[short]
        line = NUMBER_FIRST_LINES[short]
        return tuple(_number_first(short, type, _place(text, line), body) for type in types)
    if short == "floordiv":
        return tuple(_floor_division(type) for type in (T.NUMBER, T.TENSOR))
    if short == "__contains__":
        return (_text_contains(),)
    if short == "_assert":
        return tuple(_assertion(type) for type in (T.TENSOR, T.BOOL))
    if short in PROPERTIES:
        text, type, body = PROPERTIES[short]
        schema = FunctionSchema(short, "", (Parameter("a", T.TENSOR),), (Parameter("", type),))
        line = 3 + 2 * list(PROPERTIES).index(short)  # they stand in one text, as in torch
        return (BuiltinFunction(schema, body, _place(text, line)),)
    return ()


def _floor_division(other: T.Type) -> BuiltinFunction:
    """`x // y` of a tensor."""
    arguments = (Parameter("self", T.TENSOR), Parameter("other", other))
    schema = FunctionSchema("floordiv", "", arguments, (Parameter("", T.TENSOR),))
    place = _place("return torch.floor_divide(self, other)", 3)
    return BuiltinFunction(schema, lambda emit, v: emit.floor_divide(*v), place)


def _assertion(condition: T.Type) -> BuiltinFunction:
    """`torch._assert(condition, message)`."""
    arguments = (Parameter("condition", condition), Parameter("message", T.STRING))
    schema = FunctionSchema("_assert", "", arguments, (Parameter("", T.NONE),))
    return BuiltinFunction(schema, _raise_unless, _place("assert condition, message", 3))


def _raise_unless(emit: _Emit, inputs: Sequence[Value]) -> Value:
    condition, message = inputs
    from flambeau.jit.operators import table

    graph = emit._graph
    if condition.type != T.BOOL:
        condition = emit.Bool(condition)
    with graph.at(emit._place):
        branch = graph.insert("prim::If", (condition,), ())
        _, otherwise = branch.add_block(), branch.add_block()
        nothing = graph.constant(None, T.NONE)
        with graph.inserting(otherwise):
            text = emit.add(graph.constant("AssertionError: "), message)
            raised = graph.insert("prim::RaiseException", (text, nothing), ())
            raised.schema = table.schema("prim::RaiseException(str msg, str? cls=None) -> ()")
        return nothing


def _text_contains() -> BuiltinFunction:
    """`part in text`."""
    arguments = (Parameter("self", T.STRING), Parameter("key", T.STRING))
    schema = FunctionSchema("__contains__", "", arguments, (Parameter("", T.BOOL),))
    place = _place("return self.find(key, 0, len(self)) != -1", 3)
    return BuiltinFunction(schema, _find_in_text, place)


def _find_in_text(emit: _Emit, inputs: Sequence[Value]) -> Value:
    text, part = inputs
    with emit._graph.at(emit._place):
        start, nowhere = emit._graph.constant(0), emit._graph.constant(-1)
    return emit.ne(emit.find(text, part, start, emit.len(text)), nowhere)


def _number_first(name: str, type: T.Type, place: SourceRange, body: Body) -> BuiltinFunction:
    arguments = (Parameter("a", type), Parameter("b", T.TENSOR))
    schema = FunctionSchema(name, "", arguments, (Parameter("", T.TENSOR),))
    return BuiltinFunction(schema, body, place)


def _place(text: str, line: int = 1) -> SourceRange:
    source = Source(f"  {text}\n", "<string>", line)
    return SourceRange(source, 2 + len("return "), 2 + len(text))
