"""arcsin, arccos, arctan, arctan2: fdlibm's reductions (K. C. Ng, 1993), odd polynomials behind."""

from __future__ import annotations

from flambeau._compiler.language import absolute, copysign, fma, larger, select, sqrt
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.parts import horner
from flambeau._compiler.vector_math.tables import ARCSIN, ARCTAN

# pi/4 in two parts; pi/2 and pi are multiples of both.
QUARTER_PI = {32: (float.fromhex("0x1.921fb6p-1"), float.fromhex("-0x1.777a5cp-26")),
              64: (float.fromhex("0x1.921fb54442d18p-1"),
                   float.fromhex("0x1.1a62633145c07p-55"))}  # fmt: skip
TAN_EIGHTH = 0.41421356237309503
"""tan(pi/8); tan(3/8 pi) is 2 more."""
# Sizes outside of which both sides of a quotient are scaled, so that their sum is finite and exact.
HUGE = {32: 2.0**120, 64: 2.0**1000}
TINY = {32: 2.0**-100, 64: 2.0**-960}
UP = {32: 2.0**90, 64: 2.0**900}


@native
def angle(y, x):
    """The angle of the point (x, y) in the first quadrant, not both 0 or infinite: turned by
    pi/4 or pi/2 where that makes its tangent smaller."""
    BITS = y.type.bits
    low = y < x * TAN_EIGHTH
    high = y * TAN_EIGHTH > x
    over = select(low, y, select(high, -x, y - x))
    under = select(low, x, select(high, y, y + x))
    t = over / under
    z = t * t
    rest = t * z * horner(z, ARCTAN[BITS])
    quarter, quarter_low = QUARTER_PI[BITS]
    turn = select(low, 0.0, select(high, y.type(2 * quarter), quarter))
    turn_low = select(low, 0, select(high, y.type(2 * quarter_low), quarter_low))
    main = turn + t
    return main + (((turn - main) + t) + (rest + turn_low))


@native
def arctan(x):
    """The angle whose tangent is x, from -pi/2 to pi/2."""
    return copysign(angle(absolute(x), x.type(1)), x)


@native
def arctan2(y, x):
    """The angle of the point (x, y), from -pi to pi, with C99's values at zeros and infinities."""
    BITS = y.type.bits
    quarter, quarter_low = QUARTER_PI[BITS]
    above, beside = absolute(y), absolute(x)
    size = larger(above, beside)
    scale = select(
        size > HUGE[BITS], y.type(0.0625), select(size < TINY[BITS], y.type(UP[BITS]), 1)
    )
    first = angle(above * scale, beside * scale)
    first = select(above == beside, quarter, first)
    first = select((above == 0) & (x == x), 0, first)
    left = 4 * quarter - (first - 4 * quarter_low)
    return copysign(select(copysign(y.type(1), x) < 0, left, first), y)


@native
def turned(start, start_low, times, r, rest):
    """start - times * (r + rest), the first difference with its rounding error."""
    part = times * r
    main = start - part
    return main + (((start - main) - part) + fma(-times, rest, start_low))


@native
def of_sine(x, near):
    """Whether |x| > 1/2, and an angle: the one whose sine is `near`, which is |x| or x; if so, half
    the one whose cosine is |x|."""
    size = absolute(x)
    far = size > 0.5
    z = select(far, fma(size, -0.5, 0.5), size * size)
    r = select(far, sqrt(z), near)
    return far, r, r * z * horner(z, ARCSIN[x.type.bits])


@native
def arcsin(x):
    """The angle whose sine is x."""
    far, r, rest = of_sine(x, absolute(x))
    quarter, quarter_low = QUARTER_PI[x.type.bits]
    start = select(far, x.type(2 * quarter), 0)
    start_low = select(far, x.type(2 * quarter_low), 0)
    return copysign(turned(start, start_low, select(far, x.type(2), -1), r, rest), x)


@native
def arccos(x):
    """The angle whose cosine is x."""
    far, r, rest = of_sine(x, x)
    quarter, quarter_low = QUARTER_PI[x.type.bits]
    right = far & (x > 0)
    turns = select(right, 0, select(far, x.type(4), 2))
    times = select(right, -2, select(far, x.type(2), 1))
    return turned(turns * quarter, turns * quarter_low, times, r, rest)
