"""erf, erfc, erfinv.

erf is an odd polynomial near 0, further out 1 - exp(-x * p(x)); erfc is exp(-x*x) times a slow
function there (M. Shepherd and J. Laframboise, Math. Comp. 36, 1981).
"""

from __future__ import annotations

from flambeau._compiler.language import absolute, copysign, f32, f64, fma, select, sqrt, unroll
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.exponential import exp_inside, exp_parts
from flambeau._compiler.vector_math.logarithm import log
from flambeau._compiler.vector_math.parts import INFINITY, NAN, horner, scaled
from flambeau._compiler.vector_math.power import LN2, log2_short
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
ERFC_LIMIT = {32: 10.5, 64: 28.0}
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
    slope = horner(inside, ERF_TAIL[BITS])
    exponent = inside * slope
    tail = exp_inside(-exponent)
    tail = fma(fma(-inside, slope, exponent), tail, tail)
    return select(size < 1, near, copysign(1 - tail, x))


@native
def erfc_far(x):
    """erfc for 0.5 <= x <= 28; x*x and 1 + 2*x with what their rounding loses."""
    square = x * x
    divisor = 1 + 2 * x
    inverse = 1 / divisor
    divisor_lost = 1 - (divisor - 2 * x)
    slow = horner((x - CENTER) / (x + CENTER), ERFCX[x.type.bits])
    lost = fma(divisor_lost, inverse, fma(x, x, -square))
    small, n, shifted = exp_parts(-square, -lost)
    rest = fma(small, slow, small + slow)
    main = 1 + rest
    quotient = main * inverse
    left = fma(-quotient, divisor, main) + (rest - (main - 1))
    return scaled(fma(left, inverse, quotient), shifted)


@native
def erfc(x):
    """1 - erf(x), exact to the last places for large x."""
    BITS = x.type.bits
    size = absolute(x)
    square = x * x
    near = 1 - fma(x, horner(square, ERF[BITS]), x)
    far = erfc_far(select(ERFC_LIMIT[BITS] < size, ERFC_LIMIT[BITS], size))
    return select(size < 0.5, near, select(x < 0, 2 - far, far))


@native
def erfinv(x):
    """The inverse of erf, as x + x * p(w) with w = -log(1 - x*x); beyond w = 6.25 polynomials in
    the root of w (M. Giles, GPU Computing Gems, 2011)."""
    BITS = x.type.bits
    wide = f64(x)
    left = (1 - wide) * (1 + wide)
    w = -log(left) if BITS == 64 else -LN2 * log2_short(left)
    root = sqrt(w) if BITS == 64 else f64(sqrt(f32(w)))
    middle = w >= ERFINV_MIDDLE_FROM
    at = select(middle, root - 3.25, w - 3.125)
    if BITS == 64:
        far = w >= ERFINV_FAR_FROM
        at = select(far, root - 5, at)
        listed = zip(ERFINV[64], MIDDLE, FAR, strict=True)
    else:
        listed = zip(ERFINV_SINGLE[64], ERFINV_MIDDLE_SINGLE[64], strict=True)
    total = wide * 0
    for row in unroll(listed):
        c = select(middle, wide.type(row[1]), row[0])
        c = select(far, row[2], c) if BITS == 64 else c
        total = fma(total, at, c)
    size = absolute(x)
    ends = select(size == 1, x.type(INFINITY), NAN)
    return copysign(select(size < 1, x.type(fma(total, wide, wide)), ends), x)
