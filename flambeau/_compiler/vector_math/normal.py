"""erfcx and the logarithm of the normal distribution function, computed in f64."""

from __future__ import annotations

import math

from flambeau._compiler.language import absolute, any_lane, f64, fma, select
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.erfcx_table import ERFCX_WHOLE
from flambeau._compiler.vector_math.error import CENTER, erfc
from flambeau._compiler.vector_math.exponential import exp_parts
from flambeau._compiler.vector_math.logarithm import log, log1p
from flambeau._compiler.vector_math.parts import NAN, horner, scaled

SERIES = ERFCX_WHOLE[::-1]
HUGE = 1e300
OVERFLOW = 27.0
"""Below minus this, erfcx is infinite."""
ROOT_HALF = math.sqrt(0.5)
LOW = -1.0


@native
def erfcx_positive(x):
    """exp(x*x) erfc(x) for x >= 0."""
    finite = select(x > HUGE, HUGE, x)
    return horner((finite - CENTER) / (finite + CENTER), SERIES) / (1 + 2 * x)


@native
def erfcx_of(x):
    """exp(x*x) erfc(x): 2 exp(x*x) - erfcx(-x) below 0."""
    size = absolute(x)
    value = erfcx_positive(size)
    if any_lane(x < 0):
        inside = select(size > OVERFLOW, OVERFLOW, size)
        square = inside * inside
        small, n, shifted = exp_parts(square, fma(inside, inside, -square))
        value = select(x < 0, 2 * scaled(1 + small, shifted) - value, value)
    return value


@native
def erfcx(x):
    """exp(x*x) erfc(x)."""
    return x.type(erfcx_of(f64(x)))


@native
def log_ndtr(x):
    """The logarithm of the probability that a standard normal number is below x."""
    wide = f64(x)
    low = wide < LOW
    value = wide * NAN
    if any_lane(low):
        below = select(low, -wide, -LOW)
        tail = log(0.5 * erfcx_positive(below * ROOT_HALF)) - 0.5 * below * below
        value = select(low, tail, value)
    if any_lane(wide >= LOW):
        above = select(low, LOW, wide)
        value = select(low, value, log1p(-0.5 * erfc(above * ROOT_HALF)))
    return x.type(value)
