"""Functions of numbers: sqrt, exp, log, sin, … They give inf or nan where C++ does, no error."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

from flambeau.jit.operators.numbers import INF, NAN, div
from flambeau.jit.operators.registry import implements


def _real(function: Callable[[float], float], beyond: float = INF) -> Callable[[float], float]:
    """A function of math that gives nan where it is not defined, and inf beyond its range."""

    def guarded(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return beyond
        except ValueError:
            return NAN

    return guarded


def _log(function: Callable[[float], float], pole: float = 0.0) -> Callable[[float], float]:
    guarded = _real(function)
    return lambda x: -INF if x == pole else guarded(x)


def _hyperbolic_sine(x: float) -> float:
    try:
        return math.sinh(x)
    except OverflowError:
        return math.copysign(INF, x)


def _gamma(x: float) -> float:
    return math.copysign(INF, x) if x == 0 else _real(math.gamma)(x)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):
        return INF


def _atanh(x: float) -> float:
    return math.copysign(INF, x) if abs(x) == 1 else _real(math.atanh)(x)


REAL: dict[str, Callable[[float], float]] = {
    "acos": _real(math.acos), "acosh": _real(math.acosh), "asin": _real(math.asin),
    "asinh": math.asinh, "atan": math.atan, "atanh": _atanh, "cos": _real(math.cos),
    "cosh": _real(math.cosh), "sin": _real(math.sin), "sinh": _hyperbolic_sine,
    "tan": _real(math.tan), "tanh": math.tanh, "sqrt": _real(math.sqrt), "exp": _real(math.exp),
    "expm1": _real(math.expm1), "log": _log(math.log), "log10": _log(math.log10),
    "log1p": _log(math.log1p, -1.0), "erf": math.erf, "erfc": math.erfc, "gamma": _gamma,
    "lgamma": _lgamma, "degrees": math.degrees, "radians": math.radians,
}  # fmt: skip
"""Functions of a float (or int) to a float."""


def _complex_log(function: Callable[[complex], complex]) -> Callable[[complex], complex]:
    return lambda x: function(x) if x else complex(-INF, 0)


COMPLEX: dict[str, Callable[[complex], complex]] = {
    "log": _complex_log(cmath.log), "log10": _complex_log(cmath.log10),
    **{name: getattr(cmath, name) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan",
        "tanh", "sqrt", "exp")},
}  # fmt: skip


def _at_poles(function: Callable[[complex], complex]) -> Callable[[complex], complex]:
    """The function, infinite where it is not defined."""

    def guarded(x: complex) -> complex:
        try:
            return function(x)
        except (OverflowError, ValueError):
            return complex(math.copysign(INF, complex(x).real), 0)

    return guarded


def _any_number(name: str) -> Callable[[Any], Any]:
    real, complex_ = REAL[name], COMPLEX.get(name)

    def function(x: Any) -> Any:
        if isinstance(x, complex):
            if complex_ is None:
                raise TypeError(f"{name} is not defined for complex numbers")
            return complex_(x)
        return real(x)

    return function


for name, real in REAL.items():
    implements(f"{name}.int", f"{name}.float")(real)
    implements(f"{name}.Scalar")(_any_number(name))
for name, of_complex in COMPLEX.items():
    implements(f"{name}.complex")(_at_poles(of_complex))


KINDS = ("int", "float", "complex")


@implements(*(f"log.{a}_{b}" for a in KINDS for b in KINDS), "log.Scalar_Scalar")
def log_of_base(x: Any, base: Any) -> Any:
    """The logarithm to a base: the quotient of two natural ones."""
    log = _any_number("log")
    return div(log(x), log(base))
