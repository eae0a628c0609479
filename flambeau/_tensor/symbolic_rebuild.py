"""An expression as operations on symbols, one after another, as a program would write it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import sympy

from flambeau._tensor import symbols
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


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *parts: functools.reduce(function, parts)


OPERATIONS: dict[Any, Callable[..., Any]] = {
    sympy.Add: _folded(operator.add), sympy.Mul: _folded(operator.mul), sympy.Pow: operator.pow,
    sympy.Mod: operator.mod, FloorDiv: operator.floordiv, IntTrueDiv: operator.truediv,
    FloatTrueDiv: operator.truediv, FloatPow: operator.pow, ToFloat: symbols.sym_float,
    TruncToInt: symbols.sym_int, OpaqueUnaryFn_sqrt: symbols.sym_sqrt, Where: symbols.sym_ite,
    sympy.Max: _folded(symbols.sym_max), sympy.Min: _folded(symbols.sym_min),
    sympy.Eq: operator.eq, sympy.Ne: operator.ne, sympy.Lt: operator.lt, sympy.Le: operator.le,
    sympy.Gt: operator.gt, sympy.Ge: operator.ge, sympy.Not: symbols.sym_not,
    sympy.And: _folded(operator.and_), sympy.Or: _folded(operator.or_),
}  # fmt: skip
"""The operation that each kind of expression is."""


def rebuilt(expr: Any, numbers: Mapping[Any, Any]) -> Any:
    """The number that an expression is, computed of those in the place of its symbols."""
    if expr.is_Symbol:
        return numbers[expr]
    if expr.is_Integer:
        return int(expr)
    if expr.is_number:
        return float(expr)
    return OPERATIONS[expr.func](*[rebuilt(part, numbers) for part in expr.args])
