"""Functions of numbers for half types, whose results are rounded so far that shorter forms do.

float16 has those of `short`, in plain arithmetic. For bfloat16, `tanh`, logarithms, `sigmoid`,
softplus and the quotient in `silu` ask the special function unit: the same bits, `tanh`, `log`,
`sigmoid` and `silu` as measured on an H100, the others by the unit's documented error. `gelu`
differs from the CPU's by a unit below -3.5.

`exp` of rows (`row_exp`) is the unit's alone; it differs for 2 numbers.
"""

from __future__ import annotations

from flambeau._compiler.gpu import short
from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import Native, native
from flambeau._compiler.types import Scalar
from flambeau._compiler.vector_math.parts import INFINITY, NAN, ROUNDER, horner
from flambeau._compiler.vector_math.tables import COS, SIN
from flambeau._compiler.vector_math.trigonometric import (
    HALF_PI,
    REACH,
    TWO_OVER_PI,
    TWO_OVER_PI_BITS,
    flipped,
    lane_of,
    with_lane,
)

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
LOG10_OF_2 = 0.3010299956639812


@native
def row_exp(x):
    """The exponential by the special function unit."""
    if x.type.element is f32:
        return fast_exp2(x * LOG2E)
    return fast_exp2(f32(x) * LOG2E)


@native
def log(x):
    """The natural logarithm."""
    return fast_log2(x) * LN2


@native
def log1p(x):
    """log(1 + x)."""
    return short.log1p_by(x, short.SHORT_LOG)


@native
def log2(x):
    """The logarithm to base 2."""
    return fast_log2(x)


@native
def log10(x):
    """The logarithm to base 10."""
    return fast_log2(x) * LOG10_OF_2


@native
def tanh(x):
    """The hyperbolic tangent: a series below 0.35, else by the exponential."""
    size = absolute(x)
    z = x * x
    near = fma(size * z, fma(z, fma(z, -0.05396825, 0.13333333), -0.33333333), size)
    far = fma(fast_inverse(fast_exp2(size * (2 * LOG2E)) + 1.0), -2.0, splat(f32(1), x.width))
    return copysign(select(size < 0.35, near, far), x)


@native
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return fast_quotient(splat(f32(1), x.width), row_exp(-x) + 1.0)


@native
def over_power(x, y):
    """x / (1 + exp(y))."""
    return fast_quotient(x, row_exp(y) + 1.0)


@native
def log1p_of_exp(x):
    """log(1 + exp(x)); infinite where exp(x) is."""
    t = row_exp(-absolute(x))
    found = fma(t, horner(t, short.SOFT), top(x, splat(f32(0), x.width)))
    return select(x > short.OVERFLOW, x.type(INFINITY), found)


@native
def erf_tail(size):
    """1 - erf(size) for size >= 0, to 3e-7 (M. Abramowitz, I. Stegun, 7.1.28)."""
    p = horner(size, (0.0000430638, 0.0002765672, 0.0001520143, 0.0092705272, 0.0422820123,
                      0.0705230784, 1.0))  # fmt: skip
    p2 = p * p
    p4 = p2 * p2
    p8 = p4 * p4
    return fast_inverse(p8 * p8)


@native
def one_and_erf(x):
    """1 + erf(x)."""
    return 1.0 + copysign(1.0 - erf_tail(absolute(x)), x)


# ---- sine and cosine

COSINE = (*COS[32], -0.5)
FIRST = 127 + 17
"""The exponent of `REACH`, from which on turns are counted by whole numbers."""
BITS_OF_PI = 64 * (len(TWO_OVER_PI_BITS) - 1)


def _turns() -> tuple[int, ...]:
    """For every exponent from there on: what one unit of a number's last place is in turns of the
    circle, in units of 2**-64; whole turns are left out."""
    whole = 0
    for word in TWO_OVER_PI_BITS:
        whole = whole << 64 | word
    return tuple((whole << 64 >> BITS_OF_PI + 2 + 150 - e if e < BITS_OF_PI else 0) % (1 << 64)
                 for e in range(FIRST, 255))  # fmt: skip


TURNS = _turns()


@native
def far_turns(x):
    """One finite number from REACH on: its quadrant, and the angle from there."""
    word = cast(u32, x)
    unit = table(u64, TURNS)[i64(word >> 23) - FIRST]
    turns = unit * u64(word & 0x7FFFFF | 1 << 23)
    quadrant = u32((turns >> 61) + 1 >> 1)
    return quadrant, f32(cast(i64, turns << 2)) * f32(1.5707963267948966 * 2.0**-64)


@native
def turned(x):
    """x >= 0 as n * pi/2 + r: n in the low bits of a word, and r."""
    first, second, third = HALF_PI[32]
    shifted = fma(x, TWO_OVER_PI, ROUNDER[32])
    n = shifted - ROUNDER[32]
    r = fma(n, -third, fma(n, -second, fma(n, -first, x)))
    word = cast(u32, shifted)
    if any_lane(x >= REACH[32]):
        for LANE in unroll(x.width):
            one = lane_of(x, LANE)
            if (one >= REACH[32]) & (one < INFINITY):
                far_word, far_r = far_turns(one)
                word = with_lane(word, LANE, far_word)
                r = with_lane(r, LANE, far_r)
        r = select(x < INFINITY, r, NAN)
    return word, r


@native
def wave(word, r):
    """sin(n * pi/2 + r)."""
    z = r * r
    sine = fma(r * z, horner(z, SIN[32]), r)
    cosine = fma(z, horner(z, COSINE), 1)
    return flipped(select(word & 1 != 0, cosine, sine), word << 30)


@native
def sin(x):
    """The sine."""
    word, r = turned(absolute(x))
    return flipped(wave(word, r), cast(u32, x))


@native
def cos(x):
    """The cosine: the sine a quadrant further."""
    word, r = turned(absolute(x))
    return wave(word + 1, r)


COMMON: dict[str, Native] = {
    "exp": short.exp, "expm1": short.expm1, "sinh": short.sinh, "erf": short.erf,
    "arctan": short.arctan, "arctan2": short.arctan2,
    "tanh_of_log1p_of_exp": short.tanh_of_log1p_of_exp,
}  # fmt: skip
SHORT: dict[Scalar, dict[str, Native]] = {
    bf16: COMMON | {
        "log": log, "log1p": log1p, "log2": log2, "log10": log10, "tanh": tanh, "sin": sin,
        "cos": cos, "sigmoid": sigmoid, "over_power": over_power, "one_and_erf": one_and_erf,
        "log1p_of_exp": log1p_of_exp,
    },
    f16: COMMON | {
        "log": short.log, "log1p": short.log1p, "log2": short.log2, "log10": short.log10,
        "tanh": short.tanh, "sin": short.sin, "cos": short.cos, "tan": short.tan,
        "sigmoid": short.sigmoid, "over_power": short.over_power,
        "one_and_erf": short.one_and_erf, "log1p_of_exp": short.log1p_of_exp,
    },
}  # fmt: skip
"""What takes the place of primitives, by the type; `over_power` and the like that of several, as
`pointwise_text` says."""
QUICK, COST = (log, log2, log10, sigmoid, over_power), 4
"""Those of the special function unit alone, and what one costs in additions."""
