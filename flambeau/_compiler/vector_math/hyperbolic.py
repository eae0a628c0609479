"""sinh, cosh, arcsinh, arccosh, arctanh, logaddexp, logaddexp2: by exp and log1p."""

from __future__ import annotations

from flambeau._compiler.language import absolute, copysign, fma, larger, select, sqrt
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.exponential import exp, exp2, exp_parts
from flambeau._compiler.vector_math.logarithm import log1p, log1p_sum
from flambeau._compiler.vector_math.parts import NAN, horner, power_of_two
from flambeau._compiler.vector_math.tables import LOG_RATIO, SINH

OVERFLOW = {32: 89.6, 64: 710.8}
"""Beyond all arguments of sinh and cosh whose result is finite."""
ONE_IS_NOTHING = {32: 2.0**26, 64: 2.0**55}
"""From here on 1 + x rounds to x, and so do the square roots of x*x + 1 and x*x - 1."""
ARCTANH_SPLIT = 0.17
LN2 = 0.6931471805599453
LOG2E = 1.4426950408889634


@native
def quarter_exp(size):
    """exp(size) / 4: finite wherever sinh and cosh are."""
    limit = OVERFLOW[size.type.bits]
    small, n, shifted = exp_parts(select(limit < size, limit, size))
    return (1 + small) * power_of_two(shifted - 2)


@native
def cosh(x):
    """The hyperbolic cosine."""
    quarter = quarter_exp(absolute(x))
    return 2 * (quarter + 0.0625 / quarter)


@native
def sinh(x):
    """The hyperbolic sine: below 1 an odd polynomial."""
    size = absolute(x)
    z = size * size
    near = fma(size * z, horner(z, SINH[x.type.bits]), size)
    quarter = quarter_exp(size)
    far = 2 * (quarter - 0.0625 / quarter)
    return copysign(select(size < 1, near, far), x)


@native
def arcsinh(x):
    """log(x + sqrt(x*x + 1)), as log(1 + w)."""
    size = absolute(x)
    large = size > ONE_IS_NOTHING[x.type.bits]
    root = sqrt(fma(size, size, 1))
    rest = size * size / (root + 1)
    w = size + rest
    low = select(large, 0, rest - (w - size))
    y = log1p_sum(select(large, size, w), low, select(large, x.type(1), 0))
    return copysign(y, x)


@native
def arccosh(x):
    """log(x + sqrt(x*x - 1)), as log(1 + w)."""
    large = x > ONE_IS_NOTHING[x.type.bits]
    t = x - 1
    root = sqrt(fma(t, t, t + t))
    w = root + t
    low = select(large, 0, t - (w - root))
    y = log1p_sum(select(large, x, w), low, select(large, x.type(1), 0))
    return select(x < 1, NAN, y)


@native
def arctanh(x):
    """log((1 + x) / (1 - x)) / 2: the series of the logarithm near 0, else log(1 + w) / 2."""
    size = absolute(x)
    z = x * x
    near = fma(size * z, 0.5 * horner(z, LOG_RATIO[x.type.bits]), size)
    far = 0.5 * log1p(2 * size / (1 - size))
    return copysign(select(size < ARCTANH_SPLIT, near, far), x)


@native
def logaddexp(x, y):
    """log(exp(x) + exp(y)): the larger one and log(1 + exp(-|x - y|)); equal infinities stay."""
    size = larger(x, y)
    return size + select(x == y, LN2, log1p(exp(-absolute(x - y))))


@native
def logaddexp2(x, y):
    """log2(2**x + 2**y)."""
    size = larger(x, y)
    return size + select(x == y, 1, log1p(exp2(-absolute(x - y))) * LOG2E)
