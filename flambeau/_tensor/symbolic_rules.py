"""What operations on symbolic numbers make of expressions, and of which type the result is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from flambeau._tensor.symbolic_functions import (
    FloatPow,
    FloatTrueDiv,
    FloorDiv,
    IntTrueDiv,
    OpaqueUnaryFn_sqrt,
    ToFloat,
    TruncToInt,
    Where,
)

Rule = Callable[[Any, Any, type, type], tuple[Any, type]]


def as_float(expr: Any, kind: type) -> Any:
    """An expression as a float."""
    if kind is float:
        return expr
    return sympy.Float(int(expr)) if expr.is_Integer else ToFloat(expr)


def truncated(expr: Any) -> Any:
    """An expression of a float, without its fraction."""
    return expr.args[0] if isinstance(expr, ToFloat) else TruncToInt(expr)


def root(expr: Any, kind: type) -> Any:
    """The square root."""
    return OpaqueUnaryFn_sqrt(as_float(expr, kind))


def chosen(condition: Any, one: Any, other: Any) -> Any:
    """One of two."""
    if condition is sympy.true or condition is sympy.false:
        return one if condition is sympy.true else other
    return Where(condition, one, other)


def _both(one: Any, two: Any, *kinds: type) -> tuple[Any, Any, type]:
    if float in kinds:
        return as_float(one, kinds[0]), as_float(two, kinds[1]), float
    return one, two, int


def _arithmetic(combine: Callable[[Any, Any], Any]) -> Rule:
    def rule(one: Any, two: Any, *kinds: type) -> tuple[Any, type]:
        one, two, kind = _both(one, two, *kinds)
        return combine(one, two), kind

    return rule


def _relation(combine: Callable[[Any, Any], Any]) -> Rule:
    def rule(one: Any, two: Any, *kinds: type) -> tuple[Any, type]:
        return combine(*_both(one, two, *kinds)[:2]), bool

    return rule


def _equal(one: Any, two: Any, *kinds: type) -> tuple[Any, type]:
    if bool in kinds:
        return sympy.Equivalent(one, two), bool
    return sympy.Eq(*_both(one, two, *kinds)[:2]), bool


def _unequal(one: Any, two: Any, *kinds: type) -> tuple[Any, type]:
    return sympy.Not(_equal(one, two, *kinds)[0]), bool


def _quotient(one: Any, two: Any, *kinds: type) -> tuple[Any, type]:
    if two.is_zero:
        raise ZeroDivisionError("division by zero")
    if float in kinds:
        return FloatTrueDiv(as_float(one, kinds[0]), as_float(two, kinds[1])), float
    return IntTrueDiv(one, two), float


def _whole_quotient(one: Any, two: Any, *kinds: type) -> tuple[Any, type]:
    if two.is_zero:
        raise ZeroDivisionError("integer division or modulo by zero")
    if float in kinds:
        return as_float(FloorDiv(one, two), int), float
    return FloorDiv(one, two), int


def _power(one: Any, two: Any, *kinds: type) -> tuple[Any, type]:
    if float in kinds:
        return FloatPow(as_float(one, kinds[0]), as_float(two, kinds[1])), float
    return sympy.expand(one**two), int


RULES: dict[str, Rule] = {
    "add": _arithmetic(lambda one, two: one + two),
    "sub": _arithmetic(lambda one, two: one - two),
    "mul": _arithmetic(lambda one, two: sympy.expand(one * two)),
    "mod": _arithmetic(sympy.Mod),
    "floordiv": _whole_quotient, "truediv": _quotient, "pow": _power,
    "and": lambda one, two, *kinds: (sympy.And(one, two), bool),
    "or": lambda one, two, *kinds: (sympy.Or(one, two), bool),
    "lt": _relation(sympy.Lt), "le": _relation(sympy.Le), "gt": _relation(sympy.Gt),
    "ge": _relation(sympy.Ge), "eq": _equal, "ne": _unequal,
}  # fmt: skip
"""For each operation: the expression and the type of the result, of those of its operands."""
