"""erf, erfc, erfinv.

Near 0 an odd polynomial. Further out 1 - exp(-p(x)) (float32), or exp(-x*x) times a slow function
(float64; M. Shepherd and J. Laframboise, Math. Comp. 36, 1981).
"""

from __future__ import annotations

from flambeau._compiler.language import absolute, copysign, f32, f64, fma, select, sqrt, unroll
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.exponential import exp_inside, exp_parts
from flambeau._compiler.vector_math.logarithm import log
from flambeau._compiler.vector_math.parts import INFINITY, horner, scaled
from flambeau._compiler.vector_math.tables import (
    ERF,
    ERF_TAIL,
    ERFCX,
    ERFINV,
    ERFINV_FAR,
    ERFINV_MIDDLE,
    ERFINV_MIDDLE_SINGLE,
    ERFINV_SINGLE,
)

CENTER = 3.75
ERFC_LIMIT = 28.0
"""From here on erfc rounds to 0."""
ERF_LIMIT = {32: 4.0, 64: 6.0}
"""From here on erf rounds to 1."""
ERFINV_MIDDLE_FROM, ERFINV_FAR_FROM = 6.25, 16.0
MIDDLE = (0.0,) * 3 + ERFINV_MIDDLE[64]
FAR = (0.0,) * 4 + ERFINV_FAR[64]


@native
def erf(x):
    """The error function."""
    BITS = x.type.bits
    square = x * x
    near = fma(x, horner(square, ERF[BITS]), x)
    size = absolute(x)
    inside = select(ERF_LIMIT[BITS] < size, ERF_LIMIT[BITS], size)
    tail = erfc_single(inside) if BITS == 32 else erfc_far(inside)
    return select(size < 1, near, copysign(1 - tail, x))


@native
def erfc_single(x):
    """erfc for 1 <= x <= 4 in float32; the exponent enters with what its rounding loses."""
    slope = horner(x, ERF_TAIL[32])
    exponent = x * slope
    tail = exp_inside(-exponent)
    return fma(fma(-x, slope, exponent), tail, tail)


@native
def erfc_far(x):
    """erfc for 0.5 <= x <= 28 in float64; x*x and 1 + 2*x with what their rounding loses."""
    square = x * x
    divisor = 1 + 2 * x
    divisor_lost = 1 - (divisor - 2 * x)
    slow = horner((x - CENTER) / (x + CENTER), ERFCX[64])
    lost = fma(x, x, -square) + divisor_lost / divisor
    small, n, shifted = exp_parts(-square, -lost)
    return scaled((1 + fma(small, slow, small + slow)) / divisor, shifted)


@native
def erfc(x):
    """1 - erf(x), exact to the last places for large x."""
    if x.type.bits == 32:
        return f32(erfc(f64(x)))
    size = absolute(x)
    square = x * x
    near = 1 - fma(x, horner(square, ERF[64]), x)
    far = erfc_far(select(ERFC_LIMIT < size, ERFC_LIMIT, size))
    return select(size < 0.5, near, select(x < 0, 2 - far, far))


@native
def erfinv(x):
    """The inverse of erf, as x + x * p(w) with w = -log(1 - x*x); beyond w = 6.25 polynomials in the
    root of w (M. Giles, GPU Computing Gems, 2011)."""
    BITS = x.type.bits
    wide = f64(x)
    w = -log((1 - wide) * (1 + wide))
    root = sqrt(w)
    middle = w >= ERFINV_MIDDLE_FROM
    at = select(middle, root - 3.25, w - 3.125)
    if BITS == 64:
        far = w >= ERFINV_FAR_FROM
        at = select(far, root - 5, at)
        listed = zip(ERFINV[64], MIDDLE, FAR)
    else:
        listed = zip(ERFINV_SINGLE[64], ERFINV_MIDDLE_SINGLE[64])
    total = wide * 0
    for row in unroll(listed):
        c = select(middle, wide.type(row[1]), row[0])
        c = select(far, row[2], c) if BITS == 64 else c
        total = fma(total, at, c)
    size = absolute(x)
    return select(size == 1, copysign(x.type(INFINITY), x), x.type(fma(total, wide, wide)))
