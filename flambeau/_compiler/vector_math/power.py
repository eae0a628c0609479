"""power, after C99 (annex F): 2**(y * log2(|x|)), the logarithm with more digits than the result.

float32 is computed in float64; float64 in sums of two numbers (T. J. Dekker, 1971), with the
logarithm as a series in s = (m - 1) / (m + 1).
"""

from __future__ import annotations

from flambeau._compiler.language import absolute, copysign, f32, f64, floor, fma, select
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.logarithm import (
    EXPONENT_BIAS,
    SMALLEST_NORMAL,
    split_exponent,
)
from flambeau._compiler.vector_math.parts import (
    DIGITS,
    INFINITY,
    NAN,
    ROUNDER,
    between,
    horner,
    power_of_two,
    scaled,
)
from flambeau._compiler.vector_math.tables import EXP2, POWER_EXP, POWER_LOG, POWER_RATIO

LN2 = 0.6931471805599453
BIAS = ROUNDER[64] + EXPONENT_BIAS[64]
# 2 / ln(2), and a third of it, in two parts
SCALE = (float.fromhex("0x1.71547652b82fep+1"), float.fromhex("0x1.777d0ffda0d24p-55"))
THIRD = (float.fromhex("0x1.ec709dc3a03fdp-1"), float.fromhex("0x1.d27f05548af0cp-55"))


@native
def log2_short(x):
    """log2(x) in float64 to 38 bits, for normal x > 0."""
    e, m, bits = split_exponent(x, BIAS)
    f = m - 1
    return fma(f, horner(f, POWER_LOG[64]), e)


@native
def power_single(x, y):
    """x**y for x >= 0 in float32."""
    wide = f64(x)
    log = log2_short(wide)
    log = select(x == 0, -INFINITY, select(x < INFINITY, log, wide))
    exponent = between(f64(y) * log, -200.0, 200.0)
    shifted = exponent + ROUNDER[64]
    r = exponent - (shifted - ROUNDER[64])
    return f32(horner(r, POWER_EXP[64]) * power_of_two(shifted))


@native
def log2_sum(x):
    """log2(x) for x >= 0 in float64, as a sum of two."""
    tiny = x < SMALLEST_NORMAL[64]
    normal = select(tiny, x * 2.0 ** DIGITS[64], x)
    e, m, bits = split_exponent(normal, select(tiny, x.type(BIAS + DIGITS[64]), BIAS))
    f = m - 1
    g = m + 1
    inverse = 1 / g
    s = f * inverse
    s_low = inverse * (fma(-s, g, f) - s * (m - (g - 1)))
    z = s * s
    z_low = fma(2 * s, s_low, fma(s, s, -z))
    rest = z * horner(z, POWER_RATIO[64])
    c = THIRD[0] + rest
    c_low = (rest - (c - THIRD[0])) + THIRD[1]
    w = z * c
    w_low = fma(z, c_low, fma(z_low, c, fma(z, c, -w)))
    u = SCALE[0] + w
    u_low = (w - (u - SCALE[0])) + (SCALE[1] + w_low)
    log = s * u
    log_low = fma(s, u_low, fma(s_low, u, fma(s, u, -log)))
    high = e + log
    low = (log - (high - e)) + log_low
    return select(x == 0, -INFINITY, select(x < INFINITY, high, x)), low


@native
def power_double(x, y):
    """x**y for x >= 0 in float64."""
    log, log_low = log2_sum(x)
    product = y * log
    low = fma(y, log_low, fma(y, log, -product))
    low = select(absolute(product) < 1100, low, 0) * LN2
    exponent = between(product, -1100.0, 1100.0)
    shifted = exponent + ROUNDER[64]
    r = exponent - (shifted - ROUNDER[64])
    rest = r * horner(r, EXP2[64])
    return scaled(1 + fma(low, 1 + rest, rest), shifted)


@native
def power(x, y):
    """x to the power of y."""
    size = absolute(x)
    result = power_single(size, y) if x.type.bits == 32 else power_double(size, y)
    finite = absolute(y) < INFINITY
    whole = floor(y) == y
    odd = (floor(y * 0.5) * 2 != y) & whole & finite
    result = select(odd, copysign(result, x), result)
    outside = (x < 0) & (x > -INFINITY) & finite & ~whole
    result = select(outside, NAN, result)
    one = (x == 1) | (y == 0) | ((x == -1) & (absolute(y) == INFINITY))
    return select(one, 1, result)
