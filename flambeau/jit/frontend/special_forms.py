"""Calls whose meaning is more than that of their arguments' values: `isinstance`, `range`, …"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from flambeau._core.tables import entering
from flambeau.jit.frontend.compiler import Compiler
from flambeau.jit.frontend.simple_value import BuiltinFunction, SimpleValue, shown
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators.matching import Argument, emit_builtin

FormRule = Callable[[Compiler, ast.Call, "SpecialForm", "T.Type | None"], "SugaredValue | Value"]
FORMS: dict[str, FormRule] = {}


form = entering(FORMS)
"""Let a function compile the calls of a special form."""


class SpecialForm(SugaredValue):
    """A name that means something only when it is called."""

    kind = "special_form"

    def __init__(self, form: str, value: Value | None = None) -> None:
        self.form = form
        self.value = value  # what it is a method of

    def apply(self, c: Compiler, node: ast.Call, wanted: T.Type | None) -> SugaredValue | Value:
        """Compile a call."""
        return FORMS[self.form](c, node, self, wanted)


def check_inputs(c: Compiler, node: ast.Call, least: int, most: int) -> None:
    """Refuse a call with another number of arguments, or with keywords."""
    count = len(node.args)
    if node.keywords:
        name = ast.unparse(node.func)
        raise ScriptError(f"{name} does not accept keyword arguments", c.place(node))
    if least <= count <= most:
        return
    name = ast.unparse(node.func)
    if least == most:
        raise ScriptError(
            f"{name} expected exactly {least} arguments but found {count}", c.place(node)
        )
    raise ScriptError(
        f"{name} expected to have number of arguments between {least} and {most} but found {count}",
        c.place(node),
    )


class Cast(BuiltinFunction):
    """`int`, `float`, `bool`, …: the value itself if it is of the type."""

    def __init__(self, type: T.Type, name: str) -> None:
        super().__init__(name)
        self.type = type

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        if len(args) != 1 or kwargs:
            return super().call(graph, where, args, kwargs, n_binders)
        with graph.at(where):
            value = args[0].in_graph(graph).value
        if value.type.is_subtype_of(self.type):
            return SimpleValue(value)
        countable = isinstance(value.type, (T.ListType, T.DictType)) or value.type == T.STRING
        if self.type == T.BOOL and countable:
            zero = graph.constant(0, T.INT)
            length = emit_builtin(graph, where, "aten::len", [Argument(value, where)])
            given = [Argument(length, where), Argument(zero, where)]
            return SimpleValue(emit_builtin(graph, where, "aten::gt", given))
        return super().call(graph, where, args, kwargs, n_binders)


class Magic(SugaredValue):
    """A function that objects of classes may define: `len(x)` is `x.__len__()`."""

    kind = "magic method"

    def __init__(self, method: str, otherwise: SugaredValue) -> None:
        self.method = method
        self.otherwise = otherwise

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        if args:
            with graph.at(where):
                first = args[0].in_graph(graph)
            if isinstance(first.value.type, T.ClassType):
                called = SimpleValue(first.value).attr(graph, where, self.method)
                return called.call(graph, where, args[1:], kwargs, n_binders)
            args = [first, *args[1:]]
        return self.otherwise.call(graph, where, args, kwargs, n_binders)


class Print(SugaredValue):
    """`print`."""

    kind = "print"

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        if kwargs:
            raise ScriptError("print doesn't accept any keyword arguments", where)
        with graph.at(where):
            values = [argument.in_graph(graph).value for argument in args]
            graph.insert("prim::Print", values, ())
        return NoneValue()


class NoneValue(SugaredValue):
    """What a call without a result gives."""

    kind = "None"

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        with graph.at(where):
            return graph.constant(None, T.NONE)


class ExceptionClass(SugaredValue):
    """A class of exceptions, to be raised. name: as the runtime finds it, `builtins.ValueError`."""

    kind = "exception"

    def __init__(self, name: str = "") -> None:
        self.name = name

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        values = [argument.in_graph(graph).value for argument in args]
        if not self.name:
            return RaisedException(_joined(graph, where, values), None)
        if len(values) > 1:
            type = T.TupleType(tuple(value.type for value in values))
            message = graph.insert("prim::TupleConstruct", values, (type,)).output
        with graph.at(where):
            if len(values) < 2:
                message = values[0] if values else graph.constant("")
            return RaisedException(message, graph.constant(self.name))


def _joined(graph: Graph, where: SourceRange, values: Sequence[Value]) -> Value:
    """The message of an AssertionError."""
    message = graph.constant("AssertionError: ")
    for value in values:
        text = value
        if value.type != T.STRING:
            text = emit_builtin(graph, where, "aten::str", [Argument(value, where)])
        given = [Argument(message, where), Argument(text, where)]
        message = emit_builtin(graph, where, "aten::add", given)
    return message


class RaisedException(SugaredValue):
    """An exception with its message."""

    kind = "exception message"

    def __init__(self, message: Value, name: Value | None) -> None:
        self.message = message
        self.name = name


# ---- the forms


@form("isinstance")
@form("hasattr")
def _question(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> Value:
    from flambeau.jit.frontend.conditions import condition

    return condition(c, node).value


@form("getattr")
def _getattr(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> SugaredValue:
    check_inputs(c, node, 2, 3)
    target = c.sugared(node.args[0])
    name = node.args[1]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        raise ScriptError("getattr's second argument must be a string literal", c.place(node))
    where = c.place(node)
    if len(node.args) == 2 or target.has_attr(c.graph, where, name.value):
        return target.attr(c.graph, where, name.value)
    return c.sugared(node.args[2])


@form("annotate")
def _annotate(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> Value:
    from flambeau.jit.frontend.environment import convert_at

    check_inputs(c, node, 2, 2)
    type = c.type_of(node.args[0])
    where = c.place(node)
    value = convert_at(c.graph, where, type, c.value(node.args[1], type))
    if not value.type.is_subtype_of(type):
        raise ScriptError(
            f"expected an expression of type {shown(type)} but found {shown(value.type)}\n",
            c.places.over(node.args),
        )
    if value.type == T.NONE and type != T.NONE:
        return c.cast(value, type)
    return value


@form("unchecked_cast")
def _unchecked_cast(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> Value:
    check_inputs(c, node, 2, 2)
    type = c.type_of(node.args[0])
    value = c.value(node.args[1])
    made = value.node
    if made is not None and made.kind == "prim::unchecked_cast" and value.type == type:
        return value
    return c.cast(value, type)


@form("uninitialized")
def _uninitialized(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> Value:
    check_inputs(c, node, 1, 1)
    type = c.type_of(node.args[0])
    return c.insert("prim::Uninitialized", (), (type,), c.place(node)).output


@form("tuple")
def _tuple(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> Value:
    check_inputs(c, node, 1, 1)
    where = c.place(node)
    parts = c.sugared(node.args[0]).as_tuple(c.graph, where)
    return c.tuple_of([part.as_value(c.graph, where) for part in parts])


@form("fork")
def _fork(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> Value:
    from flambeau.jit.frontend.forking import fork

    return fork(c, node)


@form("tolist")
def _tolist(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> Value:
    check_inputs(c, node, 0, 0)
    where = c.place(node)
    if wanted is None:
        raise ScriptError("Expected type hint for result of tolist()", where)
    element, depth = wanted, 0
    while isinstance(element, T.ListType):
        element, depth = element.element, depth + 1
    numbers: dict[T.Type, int] = {T.INT: 0, T.FLOAT: 1, T.BOOL: 2, T.COMPLEX: 3}
    if element not in numbers:
        raise ScriptError(
            f"{shown(element)} is not one of the supported element types for tolist: "
            "int, float, complex, bool", where
        )  # fmt: skip
    assert it.value is not None
    constants = [c.constant(depth, None), c.constant(numbers[element], None)]
    return c.insert("prim::tolist", [it.value, *constants], (wanted,), None).output


@form("__getitem__")
def _tensor_getitem(c: Compiler, node: ast.Call, it: SpecialForm,
                    wanted: T.Type | None) -> Value:  # fmt: skip
    from flambeau.jit.frontend.indexing import index_tensor

    check_inputs(c, node, 1, 1)
    assert it.value is not None
    return index_tensor(c, c.place(node), it.value, [node.args[0]])
