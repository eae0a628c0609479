"""`with` blocks: objects with `__enter__` and `__exit__`."""

from __future__ import annotations

import ast

from flambeau.jit.frontend.calls import defined
from flambeau.jit.frontend.compiler import Compiler, statement
from flambeau.jit.frontend.statements import assign
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.ir.graph import Value
from flambeau.jit.ir.source import ScriptError, SourceRange


@statement(ast.With)
def _with(c: Compiler, node: ast.With) -> None:
    entered = []
    for item in node.items:
        value = c.value(item.context_expr)
        where = c.place(item.context_expr)
        enter = _methods(value, where)
        result = enter.schema.returns[0].type
        made = c.graph.insert("prim::Enter", (value,), (result,)).output
        entered.append(value)
        if item.optional_vars is not None:
            from flambeau.jit.frontend.simple_value import SimpleValue

            assign(c, item.optional_vars, SimpleValue(made), where)
    c.statements(node.body)
    for value in reversed(entered):
        c.graph.insert("prim::Exit", (value,), (T.TENSOR,))  # of no meaning, as in torch


def _methods(value: Value, where: SourceRange) -> Function:
    """`__enter__` of an object, after both methods have been checked."""
    type = value.type
    if not isinstance(type, T.ClassType):
        raise ScriptError("With item expression must return an object", where)
    enter, leave = type.method("__enter__"), type.method("__exit__")
    if enter is None or leave is None:
        raise ScriptError(
            "Object returned by with item expression does not define __enter__ and __exit__ "
            "methods", where
        )  # fmt: skip
    if len(defined(enter, where).schema.arguments) != 1:
        raise ScriptError("__enter__ must have only one argument and one return value", where)
    arguments = defined(leave, where).schema.arguments
    if len(arguments) != 4:
        raise ScriptError("__exit__ must have four arguments", where)
    for index, argument in enumerate(arguments[1:], 1):
        if argument.type != T.ANY:
            raise ScriptError(
                f"argument {index} of __exit__ must have Any type; TorchScript does not currently "
                "support passing exception type, value, or traceback to the __exit__ function.",
                where,
            )
    return enter
