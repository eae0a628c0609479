"""`x += y`: in place for tensors and lists, a new value for everything else."""

from __future__ import annotations

import ast

from flambeau.jit.frontend.compiler import Compiler, statement
from flambeau.jit.frontend.indexing import OPTIONAL_TENSOR, index_nodes, view_of
from flambeau.jit.frontend.simple_value import SimpleValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Value
from flambeau.jit.ir.source import ScriptError, SourceRange

OPERATORS: dict[type[ast.operator], tuple[str, str, str]] = {
    ast.Add: ("add", "add_", "add"), ast.Sub: ("sub", "sub_", "sub"),
    ast.Mult: ("mul", "mul_", "mul"), ast.Div: ("div", "div_", "truediv"),
    ast.Mod: ("fmod", "fmod_", "mod"), ast.Pow: ("pow", "pow", "pow"),
    ast.BitOr: ("__or__", "bitwise_or", "or"), ast.BitAnd: ("__and__", "bitwise_and", "and"),
    ast.BitXor: ("__xor__", "bitwise_xor", "xor"),
    ast.LShift: ("__lshift__", "__ilshift__", "lshift"),
    ast.RShift: ("__rshift__", "__irshift__", "rshift"),
}  # fmt: skip
"""The operator on plain values, the one in place, and the middle of the method's name."""


@statement(ast.AugAssign)
def _augmented(c: Compiler, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        value = c.value(target)
        c.environment.set(target.id, c.place(target), _operate(c, node, value))
    elif isinstance(target, ast.Attribute):
        owner = c.sugared(target.value)
        place = c.place(target)
        value = owner.attr(c.graph, place, target.attr).as_value(c.graph, place)
        owner.set_attr(c.graph, place, target.attr, _operate(c, node, value))
    else:
        _augmented_element(c, node, target)


def _name(node: ast.AugAssign, type: T.Type) -> str:
    plain, in_place, _ = OPERATORS[_kind(node)]
    return f"aten::{in_place if type == T.TENSOR or isinstance(type, T.ListType) else plain}"


def _kind(node: ast.AugAssign) -> type[ast.operator]:
    """The kind of the operator."""
    return type(node.op)


def _operate(c: Compiler, node: ast.AugAssign, value: Value) -> Value:
    """The new value."""
    where = c.place(node)
    right = c.value(node.value)
    if isinstance(value.type, T.ClassType):
        return _method(c, node, value, right, where)
    return c.builtin(_name(node, value.type), where, value, right)


def _method(c: Compiler, node: ast.AugAssign, value: Value, right: Value, where: SourceRange
            ) -> Value:  # fmt: skip
    from flambeau.jit.operators.matching import Argument

    name = OPERATORS[_kind(node)][2]
    owner = SimpleValue(value)
    for method in (f"__i{name}__", f"__{name}__"):
        if owner.has_attr(c.graph, where, method):
            called = owner.attr(c.graph, where, method)
            result = called.call(c.graph, where, [Argument(right, where)], [], 1)
            return result.as_value(c.graph, where)
    raise ScriptError(
        f"Cannot emit inplace op on {value.type.annotation} since it does not define an "
        f"__i{name}__ or __{name}__ method", where
    )  # fmt: skip


def _augmented_element(c: Compiler, node: ast.AugAssign, target: ast.expr) -> None:
    """`x[i] += y`."""
    if not isinstance(target, ast.Subscript):
        raise ScriptError("unexpected expression on left-hand side of augmented assignment",
                          c.place(target))  # fmt: skip
    where, place = c.place(node), c.place(target)
    base = c.value(target.value)
    indices = index_nodes(target)
    if base.type != T.TENSOR:
        if len(indices) != 1:
            raise ScriptError(
                "Sliced expression not yet supported for subscripted list augmented assignment. "
                "File a bug if you want this", place
            )  # fmt: skip
        index, right = c.value(indices[0]), c.value(node.value)
        item = c.builtin("aten::__getitem__", where, base, index)
        changed = c.builtin(_name(node, item.type), where, item, right)
        c.builtin("aten::_set_item", where, base, index, changed)
        return
    viewed, tensors = view_of(c, place, base, indices)
    right = c.value(node.value)
    if not tensors:
        c.builtin(_name(node, T.TENSOR), where, viewed, right)
        return
    listed = c.list_of(tensors, OPTIONAL_TENSOR)
    indexed = c.builtin("aten::index", where, viewed, listed)
    changed = c.builtin(_name(node, T.TENSOR), where, indexed, right)
    c.builtin("aten::index_put_", where, viewed, listed, changed)
