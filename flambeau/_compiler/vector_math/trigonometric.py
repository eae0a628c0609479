"""sin, cos, tan.

|x| = n * pi/2 + r with pi/2 in three parts (Cody and Waite, 1980), r kept with its rounding error;
then fdlibm's polynomials (K. C. Ng, 1993). Beyond the reach of the three parts, the product
with 2/pi is formed from those of its bits that matter (M. Payne and R. Hanek, 1983).
"""

from __future__ import annotations

from flambeau._compiler.language import (
    absolute,
    any_lane,
    cast,
    count_leading_zeros,
    f64,
    fma,
    i64,
    i128,
    insert,
    select,
    table,
    u64,
)
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.parts import (
    FLOAT,
    INFINITY,
    NAN,
    ROUNDER,
    UNSIGNED,
    horner,
)
from flambeau._compiler.vector_math.tables import COS, SIN, TAN

TWO_OVER_PI = 0.6366197723675814
HALF_PI = {
    32: tuple(map(float.fromhex, ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50"))),
    64: tuple(map(float.fromhex, (
        "0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110"))),
}  # fmt: skip
TWO_OVER_PI_BITS = (
    0,
    0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484,
    0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip
"""2/pi in words of 64 bits, behind a word of zeros."""
REACH = {32: 2.0**17, 64: 2.0**28}
"""The sizes below which three parts of pi/2 are enough."""


@native
def near_multiple(x):
    """x >= 0, below REACH: n in the low bits of a word, and x - n * pi/2 as a sum of two."""
    BITS = x.type.bits
    first, second, third = HALF_PI[BITS]
    shifted = fma(x, TWO_OVER_PI, ROUNDER[BITS])
    n = shifted - ROUNDER[BITS]
    a = fma(n, -first, x)  # exact: a multiple of the last place of `first`, below 1
    b = n * second
    b_lost = fma(n, second, -b)
    r = a - b
    low = fma(n, -third, (a - r) - b - b_lost)
    return cast(UNSIGNED[BITS], shifted), r, low


@native(outline=True)
def far_multiple(x: f64):
    """As `near_multiple` for one finite x >= 2**28: M * 2**k * 2/pi modulo 4, M being an integer
    of 53 bits, from the 192 bits of 2/pi that begin with the one worth 2**(1-k)."""
    word = cast(u64, x)
    k = (word >> 52) - (1023 + 52)
    start = k + 62
    place, shift = i64(start >> 6), start & 63
    bits = table(u64, TWO_OVER_PI_BITS) + place
    mantissa = i128(word & 0xFFFFFFFFFFFFF | 1 << 52)
    high = bits[0] << shift | bits[1] >> 1 >> 63 - shift
    middle = bits[1] << shift | bits[2] >> 1 >> 63 - shift
    low = bits[2] << shift | bits[3] >> 1 >> 63 - shift
    product = (mantissa * i128(high) << 64) + mantissa * i128(middle)
    product = product + (mantissa * i128(low) >> 64)
    quadrant = u64((product >> 125) + 1 >> 1) & 3
    fraction = product << 2
    r, rest = times_half_pi(fraction)
    return quadrant, r, rest


@native
def times_half_pi(fraction):
    """A signed fraction of 2**128 times pi/2, as a sum of two."""
    size = absolute(fraction)
    zeros = count_leading_zeros(size)
    size = size << zeros
    unit = cast(f64, u64(1023 - zeros) << 52)
    unit = select(fraction < 0, -unit, unit)
    high = f64(i64(u64(size >> 64) >> 11)) * 2.0**-53
    low = f64(i64(u64(size >> 22) & (1 << 53) - 1)) * 2.0**-106
    first, second, third = HALF_PI[64]
    main = high * first
    rest = fma(high, first, -main) + fma(high, second, low * first)
    r = main + rest
    return r * unit, (rest - (r - main)) * unit


@native
def reduced(x):
    """Any x >= 0 as n * pi/2 + r: n in the low bits of a word, r as a sum of two."""
    BITS = x.type.bits
    word, r, low = near_multiple(x)
    if any_lane(x >= REACH[BITS]):
        for lane in range(x.type.width):
            one = f64(lane_of(x, lane))
            if (one >= REACH[BITS]) & (one < INFINITY):
                far_word, far_r, far_low = far_multiple(one)
                head = x.type.element(far_r)
                tail = x.type.element(far_r - f64(head) + far_low)
                word = with_lane(word, lane, UNSIGNED[BITS](far_word))
                r = with_lane(r, lane, head)
                low = with_lane(low, lane, tail)
        r = select(x < INFINITY, r, NAN)
    return word, r, low


@native
def lane_of(x, lane):
    """One lane; a number is its only one."""
    return x if x.type.width == 1 else x[lane]


@native
def with_lane(x, lane, value):
    """x with another lane."""
    return value if x.type.width == 1 else insert(x, lane, value)


@native
def sine_near(r, low):
    """sin(r + low) for |r| <= pi/4."""
    z = r * r
    return r + fma(r * z, horner(z, SIN[r.type.bits]), low)


@native
def cosine_near(r, low):
    """cos(r + low) for |r| <= pi/4: 1 - r*r/2 with what its rounding loses."""
    z = r * r
    half = -0.5 * r
    main = fma(half, r, 1)
    lost = fma(half, r, 1 - main)
    return main + fma(z * z, horner(z, COS[r.type.bits]), fma(-r, low, lost))


@native
def sine_of(word, r, low):
    """sin(n * pi/2 + r + low); n in the low bits of `word`."""
    BITS = r.type.bits
    y = select(word & 1 != 0, cosine_near(r, low), sine_near(r, low))
    return flipped(y, word << BITS - 2)


@native
def flipped(y, word):
    """y, its sign changed where the highest bit of a word is set."""
    BITS = y.type.bits
    return cast(FLOAT[BITS], cast(UNSIGNED[BITS], y) ^ word & 1 << BITS - 1)


@native
def sin(x):
    """The sine."""
    word, r, low = reduced(absolute(x))
    return flipped(sine_of(word, r, low), cast(UNSIGNED[x.type.bits], x))


@native
def cos(x):
    """The cosine: the sine a quadrant further."""
    word, r, low = reduced(absolute(x))
    return sine_of(word + 1, r, low)


@native
def tan(x):
    """The tangent: of r, or -1 / tan(r) in every second quadrant, its rounding error repaired."""
    word, r, low = reduced(absolute(x))
    z = r * r
    rest = fma(r * z, horner(z, TAN[r.type.bits]), fma(low, z, low))
    t = r + rest
    t_low = rest - (t - r)
    inverse = -1 / t
    inverse = fma(fma(inverse, t_low, fma(inverse, t, 1)), inverse, inverse)
    y = select(word & 1 != 0, inverse, t)
    return flipped(y, cast(UNSIGNED[x.type.bits], x))
