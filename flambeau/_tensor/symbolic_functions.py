"""Expressions over sizes that are symbols: functions that sympy has not, numbers and bounds.

sympy is imported with this module, and this module with the first `ShapeEnv`: nobody else needs it.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

try:
    import sympy
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "symbolic sizes need sympy: python -m pip install 'flambeau[symbolic]'", name="sympy"
    ) from error

from flambeau._tensor import symbols

INFINITY = math.inf
Bounds = tuple[Any, Any]


class FloorDiv(sympy.Function):  # type: ignore[misc]
    """A quotient of integers, rounded down: `s0//2`."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, base: Any, divisor: Any) -> Any:
        """The quotient, as far as it can be written without rounding."""
        if base.is_Integer and divisor.is_Integer:
            return sympy.Integer(int(base) // int(divisor))
        if base.is_zero or divisor == 1:
            return base
        if isinstance(base, FloorDiv) and base.args[1].is_positive and divisor.is_positive:
            return FloorDiv(base.args[0], base.args[1] * divisor)
        whole = [term for term in sympy.Add.make_args(base) if _divides(divisor, term)]
        if whole:
            taken = sympy.Add(*whole)
            return sympy.Add(*[term / divisor for term in whole]) + cls(base - taken, divisor)
        common = sympy.gcd(base, divisor)
        if common.is_positive and common != 1:
            return cls(sympy.cancel(base / common), sympy.cancel(divisor / common))
        return None

    def _sympystr(self, printer: Any) -> str:
        parts = [printer.parenthesize(part, 999) for part in self.args]
        return f"({parts[0]}//{parts[1]})"


def _divides(divisor: Any, term: Any) -> bool:
    if divisor.is_Integer:
        return bool(term.as_coeff_Mul()[0] % divisor == 0)
    return bool(divisor.is_positive) and (term / divisor).as_numer_denom()[1] == 1


class IntTrueDiv(sympy.Function):  # type: ignore[misc]
    """A quotient of integers as a float."""

    nargs = (2,)
    is_real = True


class ToFloat(sympy.Function):  # type: ignore[misc]
    """An integer as a float."""

    nargs = (1,)
    is_real = True


class FloatTrueDiv(IntTrueDiv):
    """A quotient of floats."""


class FloatPow(sympy.Function):  # type: ignore[misc]
    """A power of floats."""

    nargs = (2,)
    is_real = True


class OpaqueUnaryFn_sqrt(sympy.Function):  # type: ignore[misc]  # noqa: N801 (as PyTorch prints it)
    """The square root of a float."""

    nargs = (1,)
    is_real = True


class TruncToInt(sympy.Function):  # type: ignore[misc]
    """A float without its fraction."""

    nargs = (1,)
    is_integer = True


class Where(sympy.Function):  # type: ignore[misc]
    """One of two values, as a condition says."""

    nargs = (3,)
    is_real = True


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
"""The operation that each kind of expression is, of numbers and of symbols."""


def evaluate(expr: Any, values: Mapping[Any, Any]) -> Any:
    """What an expression is for the values of its symbols: numbers, or symbolic numbers, which the
    operations meet one after another, as a program would write them.

    Raises:
        KeyError: a symbol has no value.
    """
    if expr.is_Symbol:
        return values[expr]
    if expr.is_Integer:
        return int(expr)
    if expr is sympy.true or expr is sympy.false:
        return expr is sympy.true
    if expr.is_number and not expr.is_Relational:
        return float(expr)
    return OPERATIONS[expr.func](*[evaluate(part, values) for part in expr.args])


def bounds(expr: Any, ranges: Mapping[Any, Bounds]) -> Bounds:
    """The least and the largest number that an integer expression may be."""
    if expr.is_Symbol:
        return ranges.get(expr, (-INFINITY, INFINITY))
    if expr.is_number:
        return (expr, expr)
    parts = [bounds(part, ranges) for part in expr.args]
    rule = BOUNDS.get(expr.func)
    return (-INFINITY, INFINITY) if rule is None else rule(*parts)


def _times(first: Any, second: Any) -> Any:
    return 0 if first == 0 or second == 0 else first * second


def _of_product(*parts: Bounds) -> Bounds:
    low, high = parts[0]
    for other in parts[1:]:
        ends = [_times(one, two) for one in (low, high) for two in other]
        low, high = min(ends), max(ends)
    return low, high


def _of_quotient(base: Bounds, divisor: Bounds) -> Bounds:
    if divisor[0] <= 0:
        return -INFINITY, INFINITY
    ends = [_rounded(one, two) for one in base for two in divisor]
    return min(ends), max(ends)


def _rounded(base: Any, divisor: Any) -> Any:
    if abs(base) == INFINITY:
        return base
    if divisor == INFINITY:
        return 0 if base >= 0 else -1
    return base // divisor


def _of_power(base: Bounds, power: Bounds) -> Bounds:
    if power[0] != power[1] or base[0] < 0 or power[0] < 0:
        return -INFINITY, INFINITY
    return base[0] ** power[0], base[1] ** power[0]


BOUNDS: dict[Any, Callable[..., Bounds]] = {
    sympy.Add: lambda *parts: (sum(p[0] for p in parts), sum(p[1] for p in parts)),
    sympy.Mul: _of_product, sympy.Pow: _of_power, FloorDiv: _of_quotient,
    sympy.Mod: lambda base, by: (0, by[1] - 1) if by[0] > 0 else (-INFINITY, INFINITY),
    sympy.Max: lambda *parts: (max(p[0] for p in parts), max(p[1] for p in parts)),
    sympy.Min: lambda *parts: (min(p[0] for p in parts), min(p[1] for p in parts)),
}  # fmt: skip


def decided(relation: Any, ranges: Mapping[Any, Bounds]) -> bool | None:
    """Whether a relation holds for all numbers in the ranges of its symbols (True), for none
    (False), or for some (None)."""
    if not isinstance(relation, sympy.core.relational.Relational):
        return None
    low, high = bounds(sympy.expand(relation.lhs - relation.rhs), ranges)
    return OUTCOMES[relation.func](low, high)


def _either(holds: bool, fails: bool) -> bool | None:
    return True if holds else False if fails else None


OUTCOMES: dict[Any, Callable[[Any, Any], bool | None]] = {
    sympy.Eq: lambda low, high: _either(low == high == 0, low > 0 or high < 0),
    sympy.Ne: lambda low, high: _either(low > 0 or high < 0, low == high == 0),
    sympy.Lt: lambda low, high: _either(high < 0, low >= 0),
    sympy.Le: lambda low, high: _either(high <= 0, low > 0),
    sympy.Gt: lambda low, high: _either(low > 0, high <= 0),
    sympy.Ge: lambda low, high: _either(low >= 0, high < 0),
}
"""What bounds of a difference say of its sign."""
