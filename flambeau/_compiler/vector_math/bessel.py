"""Bessel functions of order 0 and 1, and modified ones, by the series of `bessel_tables`.

Formulas are those of `_ops/special/bessel.py`, which explains them. Everything is computed in f64;
for results in f32 the series are cut where their rest is below 2e-10 of the largest coefficient.
"""

from __future__ import annotations

import math

from flambeau._compiler.language import (
    absolute,
    any_lane,
    copysign,
    f64,
    fma,
    select,
    sqrt,
    static,
    unroll,
)
from flambeau._compiler.native import native
from flambeau._compiler.vector_math import bessel_tables as tables
from flambeau._compiler.vector_math.exponential import exp
from flambeau._compiler.vector_math.logarithm import log
from flambeau._compiler.vector_math.parts import INFINITY, NAN
from flambeau._compiler.vector_math.trigonometric import cos, sin

I_LIMIT, J_LIMIT = 8.0, 5.0
"""Where the series for small arguments end."""
EXP_LIMIT = 700.0
TWO_OVER_PI = 2.0 / math.pi
PI = math.pi
SINGLE_REST = 2e-10


def _by_bits(series: tuple[float, ...]) -> dict[int, tuple[float, ...]]:
    """A series for results of 32 and of 64 bits."""
    rest, count = 0.0, len(series)
    largest = max(abs(c) for c in series)
    while rest + abs(series[count - 1]) < SINGLE_REST * largest:
        count -= 1
        rest += abs(series[count])
    return {32: series[:count], 64: series}


I0E_NEAR, I0E_FAR = _by_bits(tables.I0E_NEAR), _by_bits(tables.I0E_FAR)
I1E_NEAR, I1E_FAR = _by_bits(tables.I1E_NEAR), _by_bits(tables.I1E_FAR)
J0_NEAR, J1_NEAR = _by_bits(tables.J0_NEAR), _by_bits(tables.J1_NEAR)
Y0_NEAR, Y1_NEAR = _by_bits(tables.Y0_NEAR), _by_bits(tables.Y1_NEAR)
HANKEL_P = _by_bits(tables.HANKEL_P0), _by_bits(tables.HANKEL_P1)
HANKEL_Q = _by_bits(tables.HANKEL_Q0), _by_bits(tables.HANKEL_Q1)
ROOTS, ROOTS_LOW = tables.J_ROOTS, tables.J_ROOTS_LOW


@native
def chebyshev(t, SERIES: static):
    """A sum of c[k] T_k(t) by Clenshaw's recurrence."""
    twice = t + t
    before = t * 0
    current = t.type(SERIES[-1])
    for c in unroll(SERIES[-2:0:-1]):
        following = fma(twice, current, c - before)
        before = current
        current = following
    return fma(t, current, SERIES[0] - before)


# ---- modified functions


@native
def scaled_i(size, NEAR: static, FAR: static, ODD: static):
    """exp(-size) times I0 or, ODD, I1 of size >= 0."""
    near = size <= I_LIMIT
    value = size * NAN
    if any_lane(near):
        inside = select(near, size, I_LIMIT)
        found = chebyshev(inside * (2.0 / I_LIMIT) - 1.0, NEAR)
        value = select(near, inside * found if ODD else found, value)
    if any_lane(size > I_LIMIT):
        outside = select(near, I_LIMIT, size)
        found_far = chebyshev((2.0 * I_LIMIT) / outside - 1.0, FAR) / sqrt(outside)
        value = select(near, value, found_far)
    return value


@native
def grown(value, size):
    """value * exp(size), in two steps against early overflow; nan at infinity, as torch."""
    first = select(size > EXP_LIMIT, EXP_LIMIT, size)
    result = value * exp(first)
    if any_lane(size > EXP_LIMIT):
        result = result * exp(size - first)
    return select(size == INFINITY, NAN, result)


@native
def i0e(x):
    """exp(-|x|) I0(x)."""
    BITS = x.type.bits
    return x.type(scaled_i(absolute(f64(x)), I0E_NEAR[BITS], I0E_FAR[BITS], False))


@native
def i1e(x):
    """exp(-|x|) I1(x)."""
    BITS = x.type.bits
    value = x.type(scaled_i(absolute(f64(x)), I1E_NEAR[BITS], I1E_FAR[BITS], True))
    return select(x < 0, -value, value)


@native
def i0(x):
    """The modified function of the first kind, of order 0."""
    BITS = x.type.bits
    size = absolute(f64(x))
    return x.type(grown(scaled_i(size, I0E_NEAR[BITS], I0E_FAR[BITS], False), size))


@native
def i1(x):
    """The modified function of the first kind, of order 1."""
    BITS = x.type.bits
    size = absolute(f64(x))
    value = x.type(grown(scaled_i(size, I1E_NEAR[BITS], I1E_FAR[BITS], True), size))
    return select(x < 0, -value, value)


# ---- J and Y


@native
def less_root(square, INDEX: static):
    """A square less that of a root of J, which is kept in two pieces."""
    return (square - ROOTS[INDEX]) - ROOTS_LOW[INDEX]


@native
def in_square(square, SERIES: static):
    """A series in x*x, x in [0, 5]."""
    return chebyshev(square * (2.0 / J_LIMIT**2) - 1.0, SERIES)


@native
def j_near(x, BITS: static, ORDER: static):
    """J0 or J1 on [0, 5]."""
    square = x * x
    if ORDER == 0:
        return less_root(square, 0) * less_root(square, 1) * in_square(square, J0_NEAR[BITS])
    return x * less_root(square, 2) * in_square(square, J1_NEAR[BITS])


@native
def y_near(x, BITS: static, ORDER: static):
    """Y0 or Y1 on (0, 5]."""
    square = x * x
    main = log(x) * j_near(x, BITS, ORDER)
    if ORDER == 0:
        return in_square(square, Y0_NEAR[BITS]) + TWO_OVER_PI * main
    return x * in_square(square, Y1_NEAR[BITS]) + TWO_OVER_PI * (main - 1.0 / x)


@native
def hankel(x, BITS: static, ORDER: static, SECOND: static):
    """J or, SECOND, Y beyond 5. The angle is never formed: cosine and sine of x are combined."""
    inverse = J_LIMIT / x
    t = 2.0 * inverse * inverse - 1.0
    amplitude = 1.0 / sqrt(PI * x)
    first = amplitude * chebyshev(t, HANKEL_P[ORDER][BITS])
    second = amplitude * chebyshev(t, HANKEL_Q[ORDER][BITS]) / x
    c, s = cos(x), sin(x)
    cosine = c + s if ORDER == 0 else s - c
    sine = s - c if ORDER == 0 else -(c + s)
    return first * sine + second * cosine if SECOND else first * cosine - second * sine


@native
def of_size(size, BITS: static, ORDER: static, SECOND: static):
    """J or, SECOND, Y of size > 0."""
    near = size <= J_LIMIT
    value = size * NAN
    if any_lane(near):
        inside = select(near, size, J_LIMIT)
        if SECOND:
            value = select(near, y_near(inside, BITS, ORDER), value)
        else:
            value = select(near, j_near(inside, BITS, ORDER), value)
    if any_lane(size > J_LIMIT):
        outside = select(near, J_LIMIT, size)
        found_far = hankel(outside, BITS, ORDER, SECOND)
        value = select(near, value, found_far)
    return value


@native
def bessel_j0(x):
    """The function of the first kind, of order 0."""
    return x.type(of_size(absolute(f64(x)), x.type.bits, 0, False))


@native
def bessel_j1(x):
    """The function of the first kind, of order 1."""
    value = x.type(of_size(absolute(f64(x)), x.type.bits, 1, False))
    return select(copysign(x.type(1), x) < 0, -value, value)


@native
def bessel_y0(x):
    """The function of the second kind, of order 0; nan below 0."""
    wide = f64(x)
    value = of_size(select(wide > 0, wide, wide.type(NAN)), x.type.bits, 0, True)
    return x.type(select(wide == 0, -INFINITY, value))


@native
def bessel_y1(x):
    """The function of the second kind, of order 1; nan below 0."""
    wide = f64(x)
    value = of_size(select(wide > 0, wide, wide.type(NAN)), x.type.bits, 1, True)
    return x.type(select(wide == 0, -INFINITY, value))
