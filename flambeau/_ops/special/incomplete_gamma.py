"""Regularised incomplete gamma functions: gammainc (igamma, P) and gammaincc (igammac, Q).

Both take (a, x), floating arrays of one dtype that broadcast, and return a new array.
Formulas: DLMF 8.7.1 and 8.11.4 (series), 8.9.2 (continued fraction), 8.12 (uniform expansion,
Temme 1979); the regions are close to those of Gautschi (1979).
"""

import math

import numpy as np

from flambeau._ops.special import gamma_tables as tables
from flambeau._ops.special.error_functions import erfc_double
from flambeau._ops.special.evaluation import Array, by_region, in_float64, polynomial
from flambeau._ops.special.gamma import lgamma_plus_one, stirling_rest

_LARGE = 20.0
_UNIFORM_WIDTH = 0.3
_MOST_TERMS = 2000
_TINY = 1e-300
_EPSILON = 2.0**-53


def _gammainc(a: Array, x: Array) -> Array:
    uniform, series, fraction = _regions(a, x)
    regions = [
        (uniform, lambda a, x: _uniform(a, x, upper=False)),
        (series, _lower_series),
        (fraction, lambda a, x: 1.0 - _upper_fraction(a, x)),
    ]
    return _with_edges(a, x, by_region([a, x], regions), at_zero=0.0)


def _gammaincc(a: Array, x: Array) -> Array:
    uniform, series, fraction = _regions(a, x)
    small = series & (x <= 1.1) & (a < _small_order_limit(x))
    regions = [
        (uniform, lambda a, x: _uniform(a, x, upper=True)),
        (small, _upper_series),
        (series & ~small, lambda a, x: 1.0 - _lower_series(a, x)),
        (fraction, _upper_fraction),
    ]
    return _with_edges(a, x, by_region([a, x], regions), at_zero=1.0)


def _small_order_limit(x: Array) -> Array:
    """Below this order Q is the small part, and its own series keeps its digits."""
    return np.where(x <= 0.5, -0.4 / np.log(x), 1.1 * x)


def _regions(a: Array, x: Array) -> tuple[Array, Array, Array]:
    inside = (a > 0.0) & (x > 0.0) & np.isfinite(a) & np.isfinite(x)
    uniform = inside & (a > _LARGE) & (np.abs(x - a) < _UNIFORM_WIDTH * a)
    series = inside & ~uniform & ((x <= 1.1) | (x <= a))
    return uniform, series, inside & ~uniform & ~series


def _with_edges(a: Array, x: Array, inside: Array, at_zero: float) -> Array:
    """Torch's values on the border: the first row that holds decides."""
    at_infinity = 1.0 - at_zero
    rows = [
        ((x < 0.0) | (a < 0.0), np.nan),
        ((a == 0.0) & (x > 0.0), at_infinity),
        (a == 0.0, np.nan),
        (x == 0.0, at_zero),
        (np.isinf(a) & np.isinf(x), np.nan),
        (np.isinf(a), at_zero),
        (np.isinf(x), at_infinity),
    ]
    conditions = [condition for condition, _ in rows]
    return np.select(conditions, [value for _, value in rows], inside)


def _log1p_minus(mu: Array) -> Array:
    """log(1 + mu) - mu; for small mu from 2 atanh(s), s = mu/(2 + mu), without cancellation."""
    s = mu / (2.0 + mu)
    square = s * s
    series = polynomial(square, [1.0 / (2 * k + 3) for k in range(18)])
    return np.where(np.abs(mu) < 0.5, s * (2.0 * square * series - mu), np.log1p(mu) - mu)


def _power_factor(a: Array, x: Array) -> Array:
    """x**a exp(-x) / Gamma(1 + a)."""
    large = a >= _LARGE / 2
    regions = [(large, _power_factor_large), (~large, _power_factor_small)]
    return by_region([a, x], regions)


def _power_factor_large(a: Array, x: Array) -> Array:
    exponent = a * _log1p_minus((x - a) / a) - stirling_rest(a)
    return np.exp(exponent) / np.sqrt(2.0 * math.pi * a)


def _power_factor_small(a: Array, x: Array) -> Array:
    # The two halves of exp(-x) keep x**a from overflowing before it is damped; where each is 0, so
    # is the whole, though x**a may be infinite.
    half = np.exp(-0.5 * x)
    power = np.where(half > 0.0, x, 0.0) ** a
    return half * power * half * np.exp(-lgamma_plus_one(a))


def _lower_series(a: Array, x: Array) -> Array:
    """P = x**a e**-x / Gamma(1+a) * sum x**n / ((a+1)...(a+n))."""
    term = np.ones_like(x)
    total = np.ones_like(x)
    order = a
    for _ in range(_MOST_TERMS):
        order = order + 1.0
        term = term * (x / order)
        total = total + term
        if np.all(term <= total * _EPSILON):
            break
    return total * _power_factor(a, x)


def _upper_series(a: Array, x: Array) -> Array:
    """Q = 1 - x**a / Gamma(1+a) * (1 + a sum (-x)**n / (n! (a+n)))."""
    term = np.ones_like(x)
    total = np.zeros_like(x)
    for n in range(1, _MOST_TERMS):
        term = term * (-x / n)
        total = total + term / (a + n)
        if np.all(np.abs(term) <= np.abs(total) * _EPSILON):
            break
    exponent = a * np.log(x) - lgamma_plus_one(a)
    return -np.expm1(exponent) - a * np.exp(exponent) * total


def _upper_fraction(a: Array, x: Array) -> Array:
    """Q by the continued fraction of DLMF 8.9.2, evaluated by Lentz's method."""
    b = x + 1.0 - a
    c = np.full_like(x, 1.0 / _TINY)
    d = 1.0 / b
    value = d
    for n in range(1, _MOST_TERMS):
        numerator = n * (a - n)
        b = b + 2.0
        d = 1.0 / _away_from_zero(b + numerator * d)
        c = _away_from_zero(b + numerator / c)
        step = c * d
        value = value * step
        if np.all(np.abs(step - 1.0) <= 4.0 * _EPSILON):
            break
    return value * a * _power_factor(a, x)


def _away_from_zero(x: Array) -> Array:
    return np.where(np.abs(x) < _TINY, _TINY, x)


def _uniform(a: Array, x: Array, upper: bool) -> Array:
    """Temme's expansion, DLMF 8.12.3 to 8.12.8, for x close to a large a."""
    mu = (x - a) / a
    half_square = -_log1p_minus(mu)
    eta = np.copysign(np.sqrt(2.0 * half_square), mu)
    sign = 1.0 if upper else -1.0
    inverse = 1.0 / a
    series = polynomial(eta, tables.TEMME[-1])
    for row in tables.TEMME[-2::-1]:
        series = series * inverse + polynomial(eta, row)
    rest = np.exp(-a * half_square) / np.sqrt(2.0 * math.pi * a) * series
    return 0.5 * erfc_double(sign * eta * np.sqrt(0.5 * a)) + sign * rest


gammainc = in_float64(_gammainc)
gammaincc = in_float64(_gammaincc)
