"""Elementwise expressions: what the bodies of pointwise rows are traced to.

A body gets one `Expr` per parameter and combines them with Python operators and with the functions
of this module. The tree knows no dtype and no device; a renderer turns it into NumPy source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._compiler.primitives import PRIMITIVES

LEAVES = ("parameter", "constant")


class Expr:
    """A node of an expression: a parameter, a constant, or a primitive applied to others."""

    __slots__ = ("args", "op")

    def __init__(self, op: str, *args: Any) -> None:
        self.op = op
        self.args = args

    def __add__(self, other: Any) -> Expr:
        return Expr("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return Expr("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return Expr("subtract", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return Expr("subtract", other, self)

    def __mul__(self, other: Any) -> Expr:
        return Expr("multiply", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return Expr("multiply", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return Expr("divide", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return Expr("divide", other, self)

    def __pow__(self, other: Any) -> Expr:
        return Expr("power", self, other)

    def __neg__(self) -> Expr:
        return Expr("negative", self)

    def __abs__(self) -> Expr:
        return Expr("absolute", self)

    def __lt__(self, other: Any) -> Expr:
        return Expr("less", self, other)

    def __le__(self, other: Any) -> Expr:
        return Expr("less_equal", self, other)

    def __gt__(self, other: Any) -> Expr:
        return Expr("greater", self, other)

    def __ge__(self, other: Any) -> Expr:
        return Expr("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return Expr("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return Expr("not_equal", self, other)

    def __and__(self, other: Any) -> Expr:
        return Expr("bitwise_and", self, other)

    def __or__(self, other: Any) -> Expr:
        return Expr("bitwise_or", self, other)

    def __xor__(self, other: Any) -> Expr:
        return Expr("bitwise_xor", self, other)

    def __invert__(self) -> Expr:
        return Expr("invert", self)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("a pointwise body may not branch on values; use where(condition, x, y)")

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.args))})"


def parameter(name: str) -> Expr:
    """The expression of a parameter of the row."""
    return Expr("parameter", name)


def trace(body: Callable[..., Any], names: list[str]) -> Expr:
    """The expression that a body computes from parameters of these names."""
    result = body(*[parameter(name) for name in names])
    return result if isinstance(result, Expr) else Expr("constant", result)


def parameters(node: Any) -> set[str]:
    """The parameters that an expression depends on."""
    if not isinstance(node, Expr) or node.op == "constant":
        return set()
    if node.op == "parameter":
        return {node.args[0]}
    return set().union(*[parameters(part) for part in node.args])


def primitives(expression: Expr) -> list[str]:
    """The primitives that an expression applies, each node once."""
    found: dict[int, str] = {}

    def visit(node: Any) -> None:
        if isinstance(node, Expr) and node.op not in LEAVES and id(node) not in found:
            found[id(node)] = node.op
            for part in node.args:
                visit(part)

    visit(expression)
    return list(found.values())


def __getattr__(name: str) -> Callable[..., Expr]:
    """`expr.exp(x)`: any primitive of the table."""
    if name not in PRIMITIVES:
        raise AttributeError(f"no elementwise primitive {name!r}")

    def primitive(*args: Any) -> Expr:
        return Expr(name, *args)

    primitive.__name__ = name
    globals()[name] = primitive
    return primitive
