"""Expressions: literals, operators, calls, attributes."""

from __future__ import annotations

import ast

from flambeau.jit.frontend.compiler import NUMBERS, Compiler, expression
from flambeau.jit.frontend.conditions import condition
from flambeau.jit.frontend.simple_value import BuiltinFunction, shown
from flambeau.jit.frontend.special_forms import Magic, SpecialForm
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators.conversions import unpack
from flambeau.jit.operators.matching import Argument

BINARY: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("add", "__add__"), ast.Sub: ("sub", "__sub__"), ast.Mult: ("mul", "__mul__"),
    ast.Div: ("div", "__truediv__"), ast.FloorDiv: ("floordiv", "__floordiv__"),
    ast.Mod: ("remainder", "__mod__"), ast.Pow: ("pow", "__pow__"),
    ast.MatMult: ("matmul", "__matmul__"), ast.BitAnd: ("__and__", "__and__"),
    ast.BitOr: ("__or__", "__or__"), ast.BitXor: ("__xor__", "__xor__"),
    ast.LShift: ("__lshift__", "__lshift__"), ast.RShift: ("__rshift__", "__rshift__"),
    ast.Eq: ("eq", "__eq__"), ast.NotEq: ("ne", "__ne__"), ast.Lt: ("lt", "__lt__"),
    ast.LtE: ("le", "__le__"), ast.Gt: ("gt", "__gt__"), ast.GtE: ("ge", "__ge__"),
    ast.In: ("__contains__", "__contains__"),
}  # fmt: skip
"""Operators: the name in `aten::`, and the method of classes."""
UNARY: dict[type[ast.AST], tuple[str, str]] = {
    ast.USub: ("neg", "__neg__"), ast.Invert: ("bitwise_not", "__invert__"),
}  # fmt: skip


@expression(ast.Name)
def _name(c: Compiler, node: ast.Name, wanted: T.Type | None) -> SugaredValue:
    return c.environment.get(node.id, c.place(node))


@expression(ast.Attribute)
def _attribute(c: Compiler, node: ast.Attribute, wanted: T.Type | None) -> SugaredValue:
    return c.sugared(node.value).attr(c.graph, c.place(node), node.attr)


@expression(ast.Call)
def _call(c: Compiler, node: ast.Call, wanted: T.Type | None) -> SugaredValue | Value:
    callee = c.sugared(node.func)
    if isinstance(callee, SpecialForm):
        return callee.apply(c, node, wanted)
    args, kwargs = c.arguments(node.args), c.keywords(node.keywords)
    return callee.call(c.graph, c.place(node.func), args, kwargs, 1)


# ---- literals


@expression(ast.Constant)
def _constant(c: Compiler, node: ast.Constant, wanted: T.Type | None) -> Value:
    where, value = c.place(node), node.value
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return c.constant(value, where)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ScriptError(
            "Integral constant out of range (must fit in a signed 64 bit integer)", where
        )
    if isinstance(value, (int, float, complex)):
        return c.number(value, where)
    raise ScriptError(f"Cannot emit expr for: {value!r}", where)


@expression(ast.Tuple)
def _tuple(c: Compiler, node: ast.Tuple, wanted: T.Type | None) -> Value:
    starred = any(isinstance(element, ast.Starred) for element in node.elts)
    types = wanted.elements if isinstance(wanted, T.TupleType) else ()
    if starred or len(types) != len(node.elts):
        return c.tuple_of(c.values(node.elts))
    return c.tuple_of([c.value(*pair) for pair in zip(node.elts, types, strict=True)])


@expression(ast.List)
def _list(c: Compiler, node: ast.List, wanted: T.Type | None) -> Value:
    where = c.place(node)
    values = c.values(node.elts)
    if not values and wanted is None:
        return c.insert("prim::EmptyListLiteral", (), (T.ListType(T.TENSOR),), where).output
    hint = literal_hint(wanted, T.ListType, "List", where)
    element = hint.element if isinstance(hint, T.ListType) else None
    if values:
        element = _element_type(values, element, where)
    return hinted(c, c.list_of(values, element or T.TENSOR), wanted)


def hinted(c: Compiler, value: Value, wanted: T.Type | None) -> Value:
    """A literal as one of the optional or union type that is annotated."""
    if isinstance(wanted, (T.OptionalType, T.UnionType)):
        return c.cast(value, wanted)
    return value


def literal_hint(wanted: T.Type | None, kind: type[T.Type], name: str, where: SourceRange
                 ) -> T.Type | None:  # fmt: skip
    """The list or dictionary type among those that an annotation allows."""
    if wanted is None or wanted == T.ANY:
        return None
    for type in T.alternatives(wanted):
        if isinstance(type, kind):
            return type
    raise ScriptError(f"Expected an annotation of type {name} but got {shown(wanted)}", where)


def _element_type(values: list[Value], wanted: T.Type | None, where: SourceRange) -> T.Type:
    if wanted is not None:
        for value in values:
            if not value.type.is_subtype_of(wanted):
                raise ScriptError(
                    f"List type annotation `List[{shown(wanted)}]` did not match the types of the "
                    "given list elements, which were unified to "
                    f"{shown(common_type(values))}", where
                )  # fmt: skip
        return wanted
    return common_type(values)


def common_type(values: list[Value]) -> T.Type:
    """The type that values have in common; a union if there is nothing narrower."""
    found = values[0].type
    for value in values[1:]:
        if value.type is not found:
            found = T.common(found, value.type)
    return found


@expression(ast.Dict)
def _dict(c: Compiler, node: ast.Dict, wanted: T.Type | None) -> Value:
    from flambeau.jit.frontend.dictionaries import dict_literal

    return dict_literal(c, node, wanted)


@expression(ast.JoinedStr)
def _joined_string(c: Compiler, node: ast.JoinedStr, wanted: T.Type | None) -> Value:
    """An f-string is a call of `format`."""
    text, parts = "", []
    for part in node.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            text += "{}"
            parts.append(part.value)
    where = c.place(node)
    format = Argument(c.constant(text, where), where)
    function = BuiltinFunction("aten::format", format)
    return function.call(c.graph, where, c.arguments(parts), [], 1).as_value(c.graph, where)


# ---- operators


@expression(ast.BinOp)
def _binary(c: Compiler, node: ast.BinOp, wanted: T.Type | None) -> Value:
    where = c.place(node)
    if isinstance(node.op, ast.Mod) and c.value(node.left).type == T.STRING:
        values = c.values([node.left, node.right])
        return c.insert("aten::percentFormat", values, (T.STRING,), where).output
    return operate(c, type(node.op), [node.left, node.right], where)


def operate(c: Compiler, operator: type[ast.AST], operands: list[ast.expr], where: SourceRange
            ) -> Value:  # fmt: skip
    """An operator between two expressions."""
    name, method = BINARY[operator]
    args = [Argument(c.value(operand), c.place(operand)) for operand in operands]
    if operator is ast.In:
        args.reverse()
    types = [argument.value.type for argument in args]
    if operator is ast.Add and all(isinstance(type, T.TupleType) for type in types):
        return c.tuple_of([part for a in args for part in unpack(c.graph, a.value)])
    called = Magic(method, BuiltinFunction(f"aten::{name}"))
    return called.call(c.graph, where, args, [], 0).as_value(c.graph, where)


@expression(ast.UnaryOp)
def _unary(c: Compiler, node: ast.UnaryOp, wanted: T.Type | None) -> Value:
    if isinstance(node.op, ast.Not):
        return condition(c, node).value
    where = c.place(node)
    operand = node.operand
    is_number = isinstance(operand, ast.Constant) and type(operand.value) in NUMBERS
    if is_number and isinstance(node.op, ast.USub):
        return _negative(c, operand, where)
    name, method = UNARY[type(node.op)]
    called = Magic(method, BuiltinFunction(f"aten::{name}"))
    argument = Argument(c.value(node.operand), c.place(node.operand))
    value = called.call(c.graph, where, [argument], [], 0).as_value(c.graph, where)
    return _folded(c, value, where)


def _negative(c: Compiler, number: ast.expr, where: SourceRange) -> Value:
    """`-1` is a constant."""
    positive = c.value(number)
    return c.constant(-positive.constant, where, positive.type)


def _folded(c: Compiler, value: Value, where: SourceRange) -> Value:
    """`-1` is a constant."""
    made = value.node
    if made is None or made.kind not in ("aten::neg", "aten::bitwise_not"):
        return value
    operand = made.inputs[0]
    if not operand.is_constant or not isinstance(operand.constant, (int, float, complex)):
        return value
    number = operand.constant
    folded = -number if made.kind == "aten::neg" else ~int(number.real)
    return c.constant(folded, where, value.type)


@expression(ast.Compare)
def _compare(c: Compiler, node: ast.Compare, wanted: T.Type | None) -> Value:
    if len(node.ops) > 1 or isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.NotIn)):
        return condition(c, node).value
    where = c.place(node)
    return operate(c, type(node.ops[0]), [node.left, node.comparators[0]], where)


@expression(ast.Starred)
def _starred(c: Compiler, node: ast.Starred, wanted: T.Type | None) -> Value:
    raise ScriptError("Unexpected starred expansion. File a bug report", c.place(node))
