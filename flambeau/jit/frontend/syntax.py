"""Syntax that TorchScript does not have: refused wherever it stands, reached or not."""

from __future__ import annotations

import ast
from typing import Any

from flambeau.jit.frontend.errors import (
    NAMES,
    FrontendError,
    NotSupportedError,
    UnsupportedNodeError,
)
from flambeau.jit.frontend.source import Places
from flambeau.jit.ir.source import Source, SourceRange

STATEMENTS = (
    ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Return, ast.Raise,
    ast.Assert, ast.While, ast.For, ast.If, ast.Pass, ast.Break, ast.Continue, ast.With,
)  # fmt: skip
EXPRESSIONS = (
    ast.Attribute, ast.Call, ast.Name, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Compare,
    ast.Subscript, ast.Slice, ast.List, ast.Tuple, ast.Dict, ast.Constant, ast.JoinedStr,
    ast.FormattedValue, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.Starred,
)  # fmt: skip
AUGMENTED = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.BitOr, ast.BitAnd, ast.BitXor, ast.LShift,
    ast.RShift, ast.Pow,
)  # fmt: skip
UNARY = (ast.Not, ast.USub, ast.Invert)
PARAMETERS = (
    "Compiled functions can't take variable number of arguments or use keyword-only arguments "
    "with defaults"
)


def check_syntax(node: ast.FunctionDef, source: Source, closures: bool = False) -> None:
    """Refuse a definition that has syntax which programs do not have.

    closures: functions without parameters may stand in it, as they do in archives.

    Raises:
        NotSupportedError, UnsupportedNodeError: with the place.
    """
    checker = _Checker(Places(source), closures)
    checker.parameters(node.args)
    body = node.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
        body = body[1:]  # the docstring
    for inner in body:
        checker.check(inner)


class _Checker:
    def __init__(self, places: Places, closures: bool) -> None:
        self.places = places
        self.closures = closures

    def refuse(self, place: SourceRange, message: str) -> None:
        raise NotSupportedError(place, message)

    def parameters(self, arguments: ast.arguments) -> None:
        for argument in (arguments.kwarg, arguments.vararg):
            if argument is not None:
                stars = self.places.token(argument, len(argument.arg))
                self.refuse(SourceRange(stars.source, stars.start - 1, stars.end), PARAMETERS)
        for default in arguments.kw_defaults:
            if default is not None:
                self.refuse(self.places.of(default), PARAMETERS)

    def check(self, node: ast.AST) -> None:
        """Check a node and all inside."""
        allowed = isinstance(node, STATEMENTS) or (self.closures and _is_closure(node))
        if isinstance(node, ast.stmt) and not allowed:
            self.unsupported(node)
        if isinstance(node, ast.expr) and not isinstance(node, EXPRESSIONS):
            self.unsupported(node)
        rule = RULES.get(type(node))
        if rule is not None:
            rule(self, node)
        if not isinstance(node, ast.Constant):  # of which there may be very many
            for child in ast.iter_child_nodes(node):
                self.check(child)

    def unsupported(self, node: Any, reason: str = "") -> None:
        name, token = NAMES.get(type(node), (type(node).__name__, " "))
        middle = f"{reason} " if reason else ""
        raise UnsupportedNodeError(
            self.places.token(node, len(token)), f"{name} {middle}aren't supported"
        )

    # ---- rules of some nodes

    def annotated(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.unsupported(node, "without assigned value")

    def augmented(self, node: ast.AugAssign) -> None:
        if not isinstance(node.op, AUGMENTED):
            before = self.places.of(node.value).start
            equals = self.places.source.text.rindex("=", 0, before)
            self.refuse(
                SourceRange(self.places.source, equals - 1, equals + 1),
                f"unsupported kind of augmented assignment: {type(node.op).__name__}",
            )

    def while_loop(self, node: ast.While) -> None:
        if node.orelse:
            self.refuse(self.places.of(node), "else branches of while loops aren't supported")

    def for_loop(self, node: ast.For) -> None:
        if node.orelse:
            self.refuse(self.places.token(node, 3), "else branches of for loops aren't supported")

    def constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bytes):
            place = self.places.token(node, len(str(node.value)))
            raise FrontendError(place, "Unknown Constant expression type")

    def unary(self, node: ast.UnaryOp) -> None:
        if not isinstance(node.op, UNARY):
            self.refuse(
                self.places.token(node, 1), f"unsupported unary operator: {type(node.op).__name__}"
            )

    def call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse(self.places.of(keyword.value), "keyword-arg expansion is not supported")

    def name(self, node: ast.Name) -> None:
        if node.id.startswith("__jit"):
            self.refuse(
                self.places.of(node),
                "names of variables used in JIT-ed functions can't start with __jit",
            )

    def dictionary(self, node: ast.Dict) -> None:
        if None in node.keys:
            self.refuse(
                self.places.token(node, 1), "Dict expansion (e.g. `{**dict}`) is not supported"
            )

    def comprehension(self, node: Any) -> None:
        place = self.places.token(node, 0)
        if len(node.generators) != 1:
            self.refuse(place, "Only a single generator is currently supported")
        if node.generators[0].ifs:
            self.refuse(place, "Comprehension ifs are not supported yet")

    def formatted(self, node: ast.JoinedStr) -> None:
        for part in node.values:
            if not isinstance(part, ast.FormattedValue):
                continue
            place = self.places.token(part, 1)
            if part.conversion != -1:
                self.refuse(place, "Don't support conversion in JoinedStr")
            if part.format_spec is not None:
                self.refuse(place, "Don't support formatting in JoinedStr")


def _is_closure(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return False
    return not any(True for _ in ast.iter_child_nodes(node.args))


RULES: dict[type[ast.AST], Any] = {
    ast.AnnAssign: _Checker.annotated, ast.AugAssign: _Checker.augmented,
    ast.While: _Checker.while_loop, ast.For: _Checker.for_loop, ast.UnaryOp: _Checker.unary,
    ast.Call: _Checker.call, ast.Name: _Checker.name, ast.Dict: _Checker.dictionary,
    ast.ListComp: _Checker.comprehension, ast.GeneratorExp: _Checker.comprehension,
    ast.DictComp: _Checker.comprehension, ast.Constant: _Checker.constant,
    ast.JoinedStr: _Checker.formatted,
}  # fmt: skip
