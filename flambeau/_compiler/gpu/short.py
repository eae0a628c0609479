"""Functions of numbers for half types in plain arithmetic, made for results of 11 bits.

Polynomials and quotients of polynomials, fitted to 2**-19 and better of the result; nothing here
asks the special function unit, save for what logarithms are at the ends of their range. So the
emulated GPU shows the bits of any. For all 65,536 numbers they are those of `vector_math`, but for
the numbers that `tests/_compiler/gpu/test_short.py` counts.

Operands are f32 and may be any, since formulas use these functions for what they computed before;
only `sin`, `cos` and `tan` want numbers below 2**22.
"""

from __future__ import annotations

from flambeau._compiler.gpu.words import bottom, fast_log2, top
from flambeau._compiler.language import (
    absolute,
    cast,
    f32,
    fma,
    i32,
    select,
    splat,
    static,
    u32,
)
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.parts import INFINITY, ROUNDER, horner
from flambeau._compiler.vector_math.trigonometric import HALF_PI, TWO_OVER_PI, flipped

LOG2E = 1.4426950408889634
LOG2E_LOST = LOG2E - float.fromhex("0x1.715476p+0")
"""What it has more than the nearest f32."""
LN2 = 0.6931471805599453
ONE = 0x3F800000
"""The bits of 1."""


@native
def signed(y, x):
    """y, negative where x is; y is not where x is not. Two instructions, and -0 for -0."""
    return cast(f32, cast(u32, y) | cast(u32, x) & 1 << 31)


# ---- exponentials

POWERS = (0.00015403507859446108, 0.0013390736421570182, 0.009618237614631653,
          0.05550357326865196, 0.24022649228572845, 0.6931471824645996)  # fmt: skip
"""2**f - 1 over f for |f| <= 1/2."""
LOWEST, HIGHEST = -104.0, 89.0
OVERFLOW = 88.72284
"""Beyond all numbers whose exponential is neither 0 nor infinite."""


@native
def kept(x, low: static, high: static):
    """x within two constants; nan stays nan."""
    return bottom(top(x, splat(f32(low), x.width)), splat(f32(high), x.width))


@native
def power_parts(x, factor: static, lost: static, less: static):
    """2**(factor * x - less) as a power of two, and what it is multiplied by less 1; `lost` is what
    the factor has more than the nearest f32, or 0 where that does not matter."""
    shifted = fma(x, factor, ROUNDER[32])
    rest = fma(x, factor, ROUNDER[32] - shifted)
    if lost != 0:
        rest = fma(x, lost, rest)
    two = cast(f32, (cast(u32, shifted) << 23) + (ONE - (less << 23)))
    return two, rest * horner(rest, POWERS)


@native
def exp(x):
    """The exponential, as the square of that of half the number: powers of two stay normal."""
    two, small = power_parts(kept(x, LOWEST, HIGHEST), LOG2E / 2, LOG2E_LOST / 2, 0)
    root = fma(two, small, two)
    return root * root


@native
def expm1(x):
    """e**x - 1."""
    half, small = power_parts(kept(x, -18.0, HIGHEST), LOG2E, 0, 1)
    return signed(2.0 * fma(half, small, half - 0.5), x)


@native
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1.0 / (exp(-x) + 1.0)


@native
def over_power(x, y):
    """x / (1 + exp(y))."""
    return x / (exp(y) + 1.0)


@native
def sinh(x):
    """The hyperbolic sine: h + h / (2h + 1) for h = (exp(|x|) - 1) / 2, all halved once more."""
    quarter, small = power_parts(bottom(absolute(x), splat(f32(89.6), x.width)), LOG2E, 0, 2)
    q = fma(quarter, small, quarter - 0.25)
    return signed(2.0 * (q + q / fma(q, 4.0, 1.0)), x)


TANH_ABOVE = (5.434600552689517e-06, 0.0025482599157840014, 0.1258706897497177, 1.0)
TANH_BELOW = (0.0001738972496241331, 0.022283365949988365, 0.45920372009277344, 1.0)
"""tanh(x) / x by x**2, for |x| <= 4.6."""


@native
def tanh(x):
    """The hyperbolic tangent: 1 from 4.6 on."""
    inside = kept(x, -4.6, 4.6)
    z = inside * inside
    return inside * horner(z, TANH_ABOVE) / horner(z, TANH_BELOW)


# ---- logarithms

LOG = (-0.10106773674488068, 0.1622253954410553, -0.17250850796699524, 0.1990017145872116,
       -0.24969908595085144, 0.33335059881210327, -0.5000036358833313, 1.0)  # fmt: skip
"""log(1 + f) over f, for 1 + f between sqrt(1/2) and sqrt(2)."""
SHORT_LOG = (0.1189596876502037, -0.18667817115783691, 0.20496352016925812, -0.24909749627113342,
             0.3331450819969177, -0.500011146068573, 1.0)  # fmt: skip
"""The same, for 8 bits."""
LOG2 = tuple(c / LN2 for c in LOG)
LOG10 = tuple(c / 2.302585092994046 for c in LOG)
ROOT_HALF_BITS = 0x3F3504F3
SMALLEST, INFINITE = 1 << 23, 255 << 23
"""The bits of the smallest normal number, and those of infinity."""


@native
def exponent_and_rest(x):
    """The exponent of a positive normal number, negated, and its mantissa less 1."""
    word = cast(u32, x) + (ONE - ROOT_HALF_BITS)
    exponent = f32(127 - cast(i32, word >> 23))
    return exponent, cast(f32, (word & 0x7FFFFF) + ROOT_HALF_BITS) - 1.0


@native
def log_to(x, two: static, LIST: static):
    """The logarithm to a base whose logarithm of 2 is `two`; where x is no normal number above 0,
    that of the special function unit."""
    exponent, f = exponent_and_rest(x)
    found = fma(exponent, -two, f * horner(f, LIST))
    return select(cast(u32, x) - SMALLEST < INFINITE - SMALLEST, found, fast_log2(x) * two)


@native
def log(x):
    """The natural logarithm."""
    return log_to(x, LN2, LOG)


@native
def log2(x):
    """The logarithm to base 2."""
    return log_to(x, 1.0, LOG2)


@native
def log10(x):
    """The logarithm to base 10."""
    return log_to(x, 0.3010299956639812, LOG10)


@native
def log1p(x):
    """log(1 + x)."""
    return log1p_by(x, LOG)


@native
def log1p_by(x, LIST: static):
    """log(1 + x) by a polynomial; near 0 the sum is not rounded."""
    u = x + 1.0
    exponent, f = exponent_and_rest(u)
    f = select(absolute(x) < 0.25, x, f)
    found = fma(exponent, -LN2, f * horner(f, LIST))
    plain = cast(u32, u) - SMALLEST < INFINITE - SMALLEST
    return select(plain, found, fast_log2(u))


SOFT = (-0.008539104834198952, 0.04408928006887436, -0.10768125206232071, 0.17745211720466614,
        -0.24495454132556915, 0.33275479078292847, -0.4999740421772003, 1.0)  # fmt: skip
"""log(1 + t) over t, for 0 <= t <= 1."""


@native
def log1p_of_exp(x):
    """log(1 + exp(x)): what is above 0, and log(1 + t) of a power that is no more than 1. Infinite
    where exp(x) is."""
    two, small = power_parts(top(-absolute(x), splat(f32(LOWEST), x.width)), LOG2E / 2, 0, 0)
    root = fma(two, small, two)
    t = root * root
    found = fma(t, horner(t, SOFT), top(x, splat(f32(0), x.width)))
    return select(x > OVERFLOW, x.type(INFINITY), found)


@native
def tanh_of_log1p_of_exp(x):
    """tanh(log(1 + exp(x))): n / (n + 2) for n = exp(x) * (exp(x) + 2)."""
    power = exp(bottom(x, splat(f32(22), x.width)))
    n = power * (power + 2.0)
    return n / (n + 2.0)


# ---- the error function

ERF_ABOVE = (-1.0665563650036347e-06, 0.00014407566050067544, 0.005054617766290903,
             0.05481947585940361, 0.2393956482410431, 1.1283791065216064)  # fmt: skip
ERF_BELOW = (0.0011987030738964677, 0.017193160951137543, 0.13042224943637848, 0.5454905033111572,
             1.0)  # fmt: skip
"""erf(x) / x by x**2, for |x| <= 3.3."""
TAIL = (2.6350130610808264e-06, -1.4629641555075068e-05, 7.126117270672694e-05,
        0.0002535224484745413, 0.00016342617163900286, 0.009260404855012894, 0.04228886216878891,
        0.07052156329154968, 1.0)  # fmt: skip
"""erfc(s)**(-1/16) for 0 <= s <= 3.8."""


@native
def erf(x):
    """The error function: 1 from 3.3 on."""
    inside = kept(x, -3.3, 3.3)
    z = inside * inside
    return inside * horner(z, ERF_ABOVE) / horner(z, ERF_BELOW)


@native
def one_and_erf(x):
    """1 + erf(x), which is erfc(-x): good to its last places also where x is far below 0."""
    p = horner(absolute(x), TAIL)
    p2 = p * p
    p4 = p2 * p2
    p8 = p4 * p4
    tail = 1.0 / (p8 * p8)
    return select(x < 0.0, tail, 2.0 - tail)


# ---- angles

SINE = (-0.00019516654720064253, 0.008332173340022564, -0.16666655242443085, 1.0)
COSINE = (-0.0013597244396805763, 0.0416562519967556, -0.49999892711639404, 1.0)


@native
def turned(x):
    """x = n * pi/2 + r: n in the low bits of a word, sine and cosine of r."""
    first, second, third = HALF_PI[32]
    shifted = fma(x, TWO_OVER_PI, ROUNDER[32])
    n = shifted - ROUNDER[32]
    r = fma(n, -second, fma(n, -first, x))
    z = r * r
    return cast(u32, shifted), r * horner(z, SINE), horner(z, COSINE)


@native
def sin(x):
    """The sine."""
    word, sine, cosine = turned(x)
    return flipped(select(word & 1 != 0, cosine, sine), word << 30)


@native
def cos(x):
    """The cosine: the sine a quadrant further."""
    word, sine, cosine = turned(x)
    return flipped(select(word & 1 != 0, sine, cosine), word + 1 << 30)


@native
def tan(x):
    """The tangent."""
    word, sine, cosine = turned(x)
    odd = word & 1 != 0
    return flipped(select(odd, cosine, sine) / select(odd, sine, cosine), word << 31)


ATAN = (0.008006813935935497, -0.037442732602357864, 0.08435382694005966, -0.13512162864208221,
        0.19887319207191467, -0.3332701325416565, 0.9999994039535522)  # fmt: skip
"""arctan(t) / t by t**2, for 0 <= t <= 1."""
LEAST = 2.0**-149
"""The smallest number: 0 divided by it is 0."""
HALF_TURN, QUARTER_TURN = 3.141592653589793, 1.5707963267948966


@native
def arctan(x):
    """The arc tangent."""
    size = absolute(x)
    far = size > 1.0
    t = select(far, 1.0 / size, size)
    near = t * horner(t * t, ATAN)
    return signed(select(far, QUARTER_TURN - near, near), x)


@native
def arctan2(y, x):
    """The angle of (x, y): the quotient of infinities is 1 here, that of zeros 0."""
    height, width = absolute(y), absolute(x)
    small = bottom(height, width)
    large = top(top(height, width), splat(f32(LEAST), x.width))
    t = select(small == large, x.type(1.0), small / large)
    near = t * horner(t * t, ATAN)
    angle = select(height > width, QUARTER_TURN - near, near)
    return signed(select(cast(i32, x) < 0, HALF_TURN - angle, angle), y)
