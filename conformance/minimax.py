"""Derives the polynomials of `flambeau/_compiler/vector_math/tables.py`, with mpmath.

Usage: `python conformance/minimax.py [names]` prints the tables, `--write` writes the file.

Each polynomial P minimises the largest `|weight(x) * (P(x) - f(x))|` over an interval by Remez's
exchange (E. Remez, 1934; J.-M. Muller, Elementary Functions, 2016, section 3.5). For float32 the
coefficients are then rounded one after the other, lowest first, and those behind are fitted anew.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

mp.dps = 60
TARGET = Path(__file__).parents[1] / "flambeau/_compiler/vector_math/tables.py"
Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Fit:
    """A polynomial to find: what it stands for, and where; `degrees` by the bits of the type."""

    name: str
    meaning: str
    function: Function
    weight: Function
    low: Any
    high: Any
    degrees: dict[int, int]


def nodes(low: Any, high: Any, count: int) -> list[Any]:
    """The extrema of a Chebyshev polynomial: where the exchange starts."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle - half * mp.cos(mp.pi * k / (count - 1)) for k in range(count)]


def solve(points: list[Any], targets: list[Any], weights: list[Any], start: int) -> list[Any]:
    """Coefficients (from power `start`) whose weighted errors at the points are +e, -e, +e ..."""
    size = len(points)
    matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
    for row, (x, target, weight) in enumerate(zip(points, targets, weights, strict=True)):
        for column in range(size - 1):
            matrix[row, column] = weight * x ** (start + column)
        matrix[row, size - 1] = (-1) ** row
        right[row] = weight * target
    return list(mp.lu_solve(matrix, right))[:-1]


def value(coefficients: list[Any], x: Any) -> Any:
    """The polynomial, lowest coefficient first."""
    return mp.polyval(coefficients[::-1], x)


def remez(fit: Fit, degree: int, fixed: list[Any]) -> tuple[list[Any], Any]:
    """All coefficients, the first ones given, and the largest weighted error."""
    count = degree + 1 - len(fixed)
    low, high = mpf(fit.low), mpf(fit.high)
    grid = nodes(low, high, 16 * (count + 2) + 1)
    inner = [x if x != 0 else (high - low) * mpf(10) ** -12 for x in grid]
    goal, weight = [fit.function(x) for x in inner], [fit.weight(x) for x in inner]
    rest = [t - value(fixed, x) for t, x in zip(goal, inner, strict=True)]
    if count == 0:
        return fixed, max(abs(w * t) for w, t in zip(weight, rest, strict=True))
    chosen = [16 * (k + 0) + 8 for k in range(count + 1)]
    for _ in range(30):
        picked = [[column[k] for k in chosen] for column in (inner, rest, weight)]
        found = solve(*picked, len(fixed))
        full = [mpf(0)] * len(fixed) + found
        errors = [w * (t - value(full, x)) for x, t, w in zip(inner, rest, weight, strict=True)]
        again = exchanged(errors, count + 1)
        if again in (None, chosen):
            break
        chosen = again
    return [*fixed, *found], max(abs(e) for e in errors)


def exchanged(errors: list[Any], count: int) -> list[int] | None:
    """Where the error is largest between its changes of sign: the `count` best, if there are so
    many (with given coefficients the powers left need not allow it: the first guess stays)."""
    runs: list[int] = []
    for place, error in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[runs[-1]]):
                runs[-1] = place
        else:
            runs.append(place)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs if len(runs) == count else None


def rounded(number: Any, bits: int) -> Any:
    """The nearest float32 or float64."""
    if bits == 64:
        return mpf(float(number))
    return mpf(struct.unpack("<f", struct.pack("<f", float(number)))[0])


def fitted(fit: Fit, bits: int) -> tuple[list[float], Any]:
    """Coefficients of the type, highest first, and the weighted error that remains."""
    exact, _ = remez(fit, fit.degrees[bits], [])
    found = [[rounded(c, bits) for c in exact]]
    if bits == 32:
        found.append(refitted(fit, exact))
    errors = [largest_error(fit, coefficients) for coefficients in found]
    best = found[errors.index(min(errors))]
    return [float(c) for c in best[::-1]], min(errors)


def refitted(fit: Fit, exact: list[Any]) -> list[Any]:
    """Coefficients rounded to float32 one by one, those behind being fitted anew."""
    fixed: list[Any] = []
    for place in range(len(exact)):
        fixed = [*fixed, rounded(exact[place], 32)]
        if place + 1 < len(exact):
            exact, _ = remez(fit, len(exact) - 1, fixed)
    return fixed


def largest_error(fit: Fit, coefficients: list[Any]) -> Any:
    """The largest weighted error at many points."""
    grid = [x for x in nodes(mpf(fit.low), mpf(fit.high), 400) if x != 0]
    return max(abs(fit.weight(x) * (value(coefficients, x) - fit.function(x))) for x in grid)


HALF_LN2 = mp.log(2) / 2 * mpf("1.001")
ROOT = mp.sqrt(2)
QUARTER = mp.pi / 4 * mpf("1.01")


def _even(function: Function) -> Function:
    """A function of x as one of z = x*x."""
    return lambda z: function(mp.sqrt(z))


def scaled_erfcx(x: Any) -> Any:
    """(1 + 2 * x) exp(x*x) erfc(x) - 1, between 0.1 and 0.3."""
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x) - 1


def erfinv_ratio(w: Any) -> Any:
    """erfinv(x) / x - 1 for w = -log(1 - x*x)."""
    x = mp.sqrt(-mp.expm1(-max(w, mpf(10) ** -30)))
    return mp.erfinv(x) / x - 1


FITS = [
    Fit("EXP", "e**r = 1 + r + r*r * EXP(r)",
        lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r),
        -HALF_LN2, HALF_LN2, {32: 4, 64: 9}),
    Fit("EXP2", "2**r = 1 + r * EXP2(r)",
        lambda r: mp.expm1(r * mp.log(2)) / r, lambda r: r / mpf(2) ** r,
        -0.5, 0.5, {32: 5, 64: 10}),
    Fit("LOG", "log(1 + f) = f - f*f/2 + f**3 * LOG(f)",
        lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda f: f**3 / mp.log1p(f),
        1 / ROOT - 1, ROOT - 1, {32: 8}),
    Fit("LOG_RATIO", "log((1 + s) / (1 - s)) = 2*s + s**3 * LOG_RATIO(s*s)",
        _even(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3), _even(lambda s: s**3 / mp.atanh(s)),
        0, (3 - 2 * ROOT) ** 2, {32: 2, 64: 6}),
    Fit("TANH", "tanh(x) = x + x**3 * TANH(x*x), |x| <= 1 (float64: 0.625)",
        _even(lambda x: (mp.tanh(x) / x - 1) / x**2), _even(lambda x: x**3 / mp.tanh(x)),
        0, 1, {32: 6}),
    Fit("TANH", "", _even(lambda x: (mp.tanh(x) / x - 1) / x**2),
        _even(lambda x: x**3 / mp.tanh(x)), 0, 0.390625, {64: 11}),
    Fit("ERF", "erf(x) = x + x * ERF(x*x), |x| <= 1",
        _even(lambda x: mp.erf(x) / x - 1), _even(lambda x: x / mp.erf(x)),
        0, 1, {32: 6, 64: 13}),
    Fit("ERF_TAIL", "erf(x) = 1 - exp(-x * ERF_TAIL(x)), 1 <= x <= 4 (float64: 6)",
        lambda x: -mp.log(mp.erfc(x)) / x, lambda x: mp.erfc(x) * x,
        1, 4, {32: 6}),
    Fit("ERF_TAIL", "", lambda x: -mp.log(mp.erfc(x)) / x, lambda x: mp.erfc(x) * x,
        1, 6, {64: 17}),
    Fit("SIN", "sin(r) = r + r**3 * SIN(r*r)",
        _even(lambda r: (mp.sin(r) - r) / r**3), _even(lambda r: r**3 / mp.sin(r)),
        0, QUARTER**2, {32: 2, 64: 5}),
    Fit("COS", "cos(r) = 1 - r*r/2 + r**4 * COS(r*r)",
        _even(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), _even(lambda r: r**4 / mp.cos(r)),
        0, QUARTER**2, {32: 2, 64: 5}),
    Fit("TAN", "tan(r) = r + r**3 * TAN(r*r)",
        _even(lambda r: (mp.tan(r) - r) / r**3), _even(lambda r: r**3 / mp.tan(r)),
        0, QUARTER**2, {32: 6, 64: 14}),
    Fit("ERFINV", "erfinv(x) = x + x * ERFINV(w - 3.125), w = -log(1 - x*x) < 6.25",
        lambda t: erfinv_ratio(t + 3.125), lambda t: 1, -3.125, 3.125, {64: 24}),
    Fit("ERFINV_MIDDLE", "erfinv(x) = x + x * ERFINV_MIDDLE(sqrt(w) - 3.25), 6.25 <= w < 16",
        lambda t: erfinv_ratio((t + 3.25) ** 2), lambda t: 1, -0.75, 0.75, {64: 21}),
    Fit("ERFINV_FAR", "erfinv(x) = x + x * ERFINV_FAR(sqrt(w) - 5), 16 <= w < 37",
        lambda t: erfinv_ratio((t + 5) ** 2), lambda t: 1, -1, 1.1, {64: 20}),
    Fit("ERFINV_SINGLE", "ERFINV for float32, computed in float64",
        lambda t: erfinv_ratio(t + 3.125), lambda t: 1, -3.125, 3.125, {64: 10}),
    Fit("ERFINV_MIDDLE_SINGLE", "ERFINV_MIDDLE for float32, computed in float64",
        lambda t: erfinv_ratio((t + 3.25) ** 2), lambda t: 1, -0.75, 0.76, {64: 10}),
    Fit("ARCTAN", "arctan(t) = t + t**3 * ARCTAN(t*t), |t| <= tan(pi/8)",
        _even(lambda t: (mp.atan(t) - t) / t**3), _even(lambda t: t**3 / mp.atan(t)),
        0, mpf("0.1717"), {32: 4, 64: 11}),
    Fit("ARCSIN", "arcsin(x) = x + x**3 * ARCSIN(x*x), |x| <= 1/2",
        _even(lambda x: (mp.asin(x) - x) / x**3), _even(lambda x: x**3 / mp.asin(x)),
        0, 0.25, {32: 4, 64: 11}),
    Fit("SINH", "sinh(x) = x + x**3 * SINH(x*x), |x| <= 1",
        _even(lambda x: (mp.sinh(x) - x) / x**3), _even(lambda x: x**3 / mp.sinh(x)),
        0, 1, {32: 3, 64: 7}),
    Fit("ERFCX", "exp(x*x) erfc(x) = (1 + ERFCX(t)) / (1 + 2*x), t = (x - 3.75) / (x + 3.75)",
        lambda t: scaled_erfcx(3.75 * (1 + t) / (1 - t)), lambda t: 1,
        (0.5 - 3.75) / 4.25, (28 - 3.75) / (28 + 3.75), {32: 12, 64: 24}),
    Fit("POWER_LOG", "log2(1 + f) = f * POWER_LOG(f), for powers of float32",
        lambda f: mp.log1p(f) / mp.log(2) / f, lambda f: 1 / (mp.log1p(f) / mp.log(2) / f),
        1 / ROOT - 1, ROOT - 1, {64: 13}),
    Fit("POWER_RATIO",
        "log2((1 + s) / (1 - s)) = c*s + s*z * (c/3 + z * POWER_RATIO(z)), z = s*s, c = 2/ln2",
        _even(lambda s: (mp.atanh(s) / s - 1 - s**2 / 3) / s**4 * 2 / mp.log(2)),
        _even(lambda s: s**4 / mp.atanh(s) * s),
        0, (3 - 2 * ROOT) ** 2, {64: 7}),
    Fit("POWER_EXP", "2**r = POWER_EXP(r), for powers of float32",
        lambda r: mpf(2) ** r, lambda r: 1 / mpf(2) ** r, -0.5, 0.5, {64: 6}),
]  # fmt: skip

HEADER = '''"""Coefficients, highest power first, by the bits of the type.

Written by conformance/minimax.py. The number behind each is the base-2 logarithm of the error that
it leaves, relative to the result.
"""

'''


def tables(names: list[str]) -> str:
    """The text of the tables."""
    text: dict[str, list[str]] = {}
    for fit in FITS:
        if names and fit.name not in names:
            continue
        lines = text.setdefault(fit.name, [f"# {fit.meaning}", f"{fit.name} = {{"])
        for bits in fit.degrees:
            found, error = fitted(fit, bits)
            lines.append(f"    {bits}: (  # {float(mp.log(error, 2)):.1f}")
            lines += [f"        {c!r}," for c in found]
            lines.append("    ),")
    return "\n".join("\n".join([*lines, "}"]) for lines in text.values()) + "\n"


if __name__ == "__main__":
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    made = tables(wanted)
    if "--write" in sys.argv:
        TARGET.write_text(HEADER + made, encoding="utf-8")
    else:
        sys.stdout.write(made)
