"""log, log2, log10, log1p.

x = 2**e * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2). log(1 + f) is f and a small rest: a
polynomial (float32), or fdlibm's series in s = f / (2 + f) (float64; K. C. Ng, 1993). The large
parts are added with their rounding error (T. J. Dekker, 1971).
"""

from __future__ import annotations

from flambeau._compiler.language import cast, fma, select
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.parts import (
    DIGITS,
    FLOAT,
    INFINITY,
    NAN,
    ONE_BITS,
    ROUNDER,
    UNSIGNED,
    horner,
)
from flambeau._compiler.vector_math.tables import LOG, LOG_RATIO

ROOT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}
EXPONENT_BIAS = {32: 128, 64: 1024}
"""Added to exponents, so that shifting them down need not keep a sign."""
ROUNDER_BITS = {32: 0x4B400000, 64: 0x4338000000000000}
SMALLEST_NORMAL = {32: 2.0**-126, 64: 2.0**-1022}
NO_ERROR_FROM = {32: 2.0**25, 64: 2.0**54}
"""The size from which 1 + x rounds to x, and 1 is nothing beside it."""

# By base and bits: log(2) in two parts, the first so short that its products with exponents are
# exact; then what the natural logarithm is multiplied by, in two parts.
LOG_OF_TWO = {
    ("e", 32): (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cf79abcap-20")),
    ("e", 64): (float.fromhex("0x1.62e42fefa38p-1"), float.fromhex("0x1.ef35793c7673p-45")),
    ("2", 32): (1.0, 0.0),
    ("2", 64): (1.0, 0.0),
    ("10", 32): (float.fromhex("0x1.344p-2"), float.fromhex("0x1.3509f79fef312p-18")),
    ("10", 64): (float.fromhex("0x1.34413509f78p-2"), float.fromhex("0x1.fef311f12b358p-46")),
}
FACTOR = {
    ("2", 32): (float.fromhex("0x1.715476p+0"), float.fromhex("0x1.4ae0cp-26")),
    ("2", 64): (float.fromhex("0x1.71547652b82fep+0"), float.fromhex("0x1.777d0ffda0d24p-56")),
    ("10", 32): (float.fromhex("0x1.bcb7b2p-2"), float.fromhex("-0x1.5b235ep-27")),
    ("10", 64): (float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57")),
}


@native
def split_exponent(x, bias):
    """x > 0, normal: e as a number (`bias` being ROUNDER + EXPONENT_BIAS, or more where x was
    scaled up), m = x / 2**e in sqrt(1/2) .. sqrt(2), and the bits of e + EXPONENT_BIAS in place."""
    BITS = x.type.bits
    place = DIGITS[BITS]
    word = cast(UNSIGNED[BITS], x) + ((EXPONENT_BIAS[BITS] << place) - ROOT_HALF_BITS[BITS])
    e = cast(FLOAT[BITS], (word >> place) + ROUNDER_BITS[BITS]) - bias
    m = cast(FLOAT[BITS], (word & (1 << place) - 1) + ROOT_HALF_BITS[BITS])
    return e, m, word & ((1 << BITS) - (1 << place))


@native
def log1p_rest(f):
    """log(1 + f) - f for 1 + f between sqrt(1/2) and sqrt(2)."""
    BITS = f.type.bits
    if BITS == 32:
        return f * f * fma(f, horner(f, LOG[32]), -0.5)
    s = f / (f + 2)
    z = s * s
    half_square = 0.5 * f * f
    return fma(s, fma(z, horner(z, LOG_RATIO[64]), half_square), -half_square)


@native
def log_sum(e, f, rest, BASE: static):
    """The logarithm to a base of 2**e * (1 + f), where log(1 + f) = f + rest."""
    BITS = f.type.bits
    two, two_low = LOG_OF_TWO[BASE, BITS]
    large = e * two
    main = f
    low = rest
    if BASE != "e":
        factor, factor_low = FACTOR[BASE, BITS]
        main = f * factor
        low = fma(rest, factor, fma(f, factor_low, fma(f, factor, -main)))
    if two_low != 0:
        low = fma(e, two_low, low)
    total = large + main
    lost = main - (total - large)
    return total + (lost + low)


@native
def log_to(x, BASE: static):
    """The logarithm of any x to a base."""
    BITS = x.type.bits
    scale = DIGITS[BITS]
    bias = ROUNDER[BITS] + EXPONENT_BIAS[BITS]
    tiny = x < SMALLEST_NORMAL[BITS]
    normal = select(tiny, x * 2.0**scale, x)
    e, m, bits = split_exponent(normal, select(tiny, x.type(bias + scale), bias))
    f = m - 1
    return at_ends(x, log_sum(e, f, log1p_rest(f), BASE), 0.0)


@native
def at_ends(x, y, pole: static):
    """y; inf at inf, -inf at the pole, nan below it and at nan."""
    below = select(x == pole, x.type(-INFINITY), NAN)
    return select(x > pole, select(x < INFINITY, y, x), below)


@native
def log(x):
    """The natural logarithm."""
    return log_to(x, "e")


@native
def log2(x):
    """The logarithm to base 2; exact at powers of 2."""
    return log_to(x, "2")


@native
def log10(x):
    """The logarithm to base 10."""
    return log_to(x, "10")


@native
def log1p(x):
    """log(1 + x), exact to the last place near 0."""
    return log1p_sum(x, x.type(0), x.type(0))


@native
def log1p_sum(x, low, twos):
    """log(2**twos * (1 + x + low)), `low` being less than the last place of x: what 1 + x loses by
    rounding is added to f."""
    BITS = x.type.bits
    u = 1 + x
    lost = select(x > 1, 1 - (u - x), x - (u - 1)) + low
    e, m, bits = split_exponent(u, ROUNDER[BITS] + EXPONENT_BIAS[BITS])
    inverse = (ONE_BITS[BITS] + (EXPONENT_BIAS[BITS] << DIGITS[BITS])) - bits
    lost = select(x < NO_ERROR_FROM[BITS], lost * cast(FLOAT[BITS], inverse), 0)
    f = m - 1 + lost
    rest = log1p_rest(f) + (lost - (f - (m - 1)))
    return select(x == 0, x, at_ends(x, log_sum(e + twos, f, rest, "e"), -1.0))
