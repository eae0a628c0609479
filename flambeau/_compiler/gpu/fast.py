"""Functions of numbers for half types, whose results are rounded so far that shorter forms do.

For bfloat16, elementwise (`SHORT`): `exp`, `sin` and `cos` are plain arithmetic, so that what
the emulated GPU finds for all 65,536 numbers, the bits of `vector_math`'s, holds on any. `tanh`,
`log`, `sigmoid` and the quotient in `silu` ask the special function unit: the same bits, as
measured on an H100. `erf` is so short that `gelu` differs by a unit below -3.5.

`exp` of rows (`row_exp`) is the unit's alone; it differs for 2 numbers.
"""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.parts import INFINITY, NAN, ROUNDER, horner, scaled
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
LOG2E_LOW = LOG2E - float.fromhex("0x1.715476p+0")
"""What it has more than the nearest f32."""
LN2 = 0.6931471805599453
POWERS = (0.0001545316294512069, 0.0013390863364671234, 0.0096180825572778515,
          0.055503571142190778, 0.24022650760568127, 0.69314718802622878)  # fmt: skip
"""2**f - 1 over f, for |f| <= 1/2, good to 2**-27: its values at Chebyshev's places."""


@native
def row_exp(x):
    """The exponential by the special function unit."""
    if x.type.element is f32:
        return fast_exp2(x * LOG2E)
    return fast_exp2(f32(x) * LOG2E)


@native
def exp(x):
    """The exponential: 2 to a whole number times a polynomial in the rest."""
    inside = bottom(top(x, splat(f32(-104), x.width)), splat(f32(89), x.width))
    shifted = fma(inside, LOG2E, ROUNDER[32])
    rest = fma(inside, LOG2E_LOW, fma(inside, LOG2E, ROUNDER[32] - shifted))
    return scaled(fma(rest, horner(rest, POWERS), 1), shifted)


@native
def log(x):
    """The natural logarithm."""
    return fast_log2(x) * LN2


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


@native
def erf(x):
    """The error function; a series below 0.2."""
    size = absolute(x)
    z = x * x
    near = fma(size * z, fma(z, 0.11283792, -0.37612639), size * 1.1283792)
    return copysign(select(size < 0.2, near, 1.0 - erf_tail(size)), x)


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


SHORT = {"tanh": tanh, "log": log, "exp": exp, "sin": sin, "cos": cos, "erf": erf,
         "sigmoid": sigmoid, "over_power": over_power, "one_and_erf": one_and_erf}  # fmt: skip
"""What takes the place of primitives in bfloat16; `over_power` and `one_and_erf` that of two, as
x / (1 + exp(y)) and 1 + erf(y)."""
QUICK, COST = ("log", "sigmoid", "over_power"), 4
"""Those of the special function unit alone, and what one costs in additions."""
