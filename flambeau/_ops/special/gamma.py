"""Gamma functions: lgamma, digamma, polygamma and the Hurwitz zeta function.

All take floating arrays of any shape and return new arrays of their dtype.
Formulas: DLMF 5.5 (recurrence, reflection), 5.11 (Stirling), 5.15 (polygamma), 25.11 (zeta).
"""

import math

import numpy as np

from flambeau._ops.special import gamma_tables as tables
from flambeau._ops.special.evaluation import (
    Array,
    by_region,
    in_float64,
    polynomial,
    rational,
    sin_pi,
)

_STIRLING_LIMIT = 8.0
_DIGAMMA_LIMIT = 10.0
_LOG_PI = math.log(math.pi)
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# B_2, B_4, ..., B_24.
_BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510),
    *(43867 / 798, -174611 / 330, 854513 / 138, -236364091 / 2730),
)
_DIGAMMA_SERIES = (0.0, *(b / (2 * k) for k, b in enumerate(_BERNOULLI[:7], start=1)))
_ZETA_DIRECT_TERMS = 10


def _lgamma(x: Array) -> Array:
    regions = [
        ((x >= 1.0) & (x < 3.0), lambda x: _lgamma_product(x - 1.0, x - 2.0)),
        ((x > 0.0) & (x < 1.0), lambda x: _lgamma_product(x, x - 1.0) - np.log(x)),
        ((x >= 3.0) & (x < _STIRLING_LIMIT), _lgamma_by_recurrence),
        (x >= _STIRLING_LIMIT, _lgamma_stirling),
        (x < 0.0, _lgamma_reflected),
        (x == 0.0, lambda x: np.full_like(x, np.inf)),
    ]
    return by_region([x], regions)


def _lgamma_product(from_one: Array, from_two: Array) -> Array:
    """lgamma(y) from y - 1 and y - 2, for y in [1, 3]: exact near both zeros."""
    quotient = rational(from_one, tables.LGAMMA_NUMERATOR, tables.LGAMMA_DENOMINATOR)
    # Adding zero turns -0 at one into 0.
    return from_one * from_two * quotient + 0.0


def _lgamma_by_recurrence(x: Array) -> Array:
    product = np.ones_like(x)
    rest = x.copy()
    for _ in range(5):
        above = rest >= 3.0
        rest = rest - above
        product = np.where(above, product * rest, product)
    return np.log(product) + _lgamma_product(rest - 1.0, rest - 2.0)


def _lgamma_stirling(x: Array) -> Array:
    value = (x - 0.5) * (np.log(x) - 1.0) + (_HALF_LOG_TWO_PI - 0.5) + stirling_rest(x)
    return np.where(np.isinf(x), np.inf, value)


def stirling_rest(x: Array) -> Array:
    """lgamma(x) - ((x - 1/2) log x - x + log(2 pi)/2) for x >= 8."""
    inverse = 1.0 / x
    return inverse * polynomial(64.0 * inverse * inverse, tables.STIRLING)


def _lgamma_reflected(x: Array) -> Array:
    """log(pi / |x sin(pi x)|) - lgamma(-x); absolute, not relative, accuracy near its zeros."""
    sine = np.abs(sin_pi(x))
    value = _LOG_PI - np.log(-x) - np.log(sine) - _lgamma(-x)
    return np.where((sine == 0.0) | np.isinf(x), np.inf, value)


def lgamma_plus_one(x: Array) -> Array:
    """lgamma(1 + x) for x >= 0, exact for small x.  float64 in, float64 out."""
    small = x <= 2.0
    regions = [
        (small, lambda x: _lgamma_product(x, x - 1.0)),
        (~small, lambda x: _lgamma(x + 1.0)),
    ]
    return by_region([x], regions)


def _digamma(x: Array) -> Array:
    regions = [
        ((x > 0.0) & (x < 1.0), lambda x: _digamma_unit(x) - 1.0 / x),
        ((x >= 1.0) & (x < _DIGAMMA_LIMIT), _digamma_by_recurrence),
        (x >= _DIGAMMA_LIMIT, _digamma_asymptotic),
        (x < 0.0, _digamma_reflected),
        (x == 0.0, lambda x: np.copysign(np.inf, -x)),
    ]
    return by_region([x], regions)


def _digamma_unit(offset: Array) -> Array:
    """digamma(1 + offset) for offset in [0, 1], with its root taken out."""
    high, low = tables.DIGAMMA_ROOT
    from_root = (offset - (high - 1.0)) - low
    return from_root * rational(offset, tables.DIGAMMA_NUMERATOR, tables.DIGAMMA_DENOMINATOR)


def _digamma_by_recurrence(x: Array) -> Array:
    total = np.zeros_like(x)
    rest = x.copy()
    for _ in range(int(_DIGAMMA_LIMIT) - 2):
        above = rest > 2.0
        rest = rest - above
        total += above / rest
    return total + _digamma_unit(rest - 1.0)


def _digamma_asymptotic(x: Array) -> Array:
    """log x - 1/(2x) - sum B_2k / (2k x**2k), DLMF 5.11.2."""
    inverse = 1.0 / x
    return np.log(x) - 0.5 * inverse - polynomial(inverse * inverse, _DIGAMMA_SERIES)


def _digamma_reflected(x: Array) -> Array:
    """digamma(1 - x) - pi cot(pi x), DLMF 5.5.4; nan at the poles."""
    rest = x - np.round(x)
    cotangent = np.pi / np.tan(np.pi * rest)
    return np.where(rest == 0.0, np.nan, _digamma(1.0 - x) - cotangent)


def _trigamma(x: Array) -> Array:
    low = x < 0.5
    return by_region([x], [(low, _trigamma_reflected), (~low, _trigamma_positive)])


def _trigamma_reflected(x: Array) -> Array:
    sine = sin_pi(x)
    return np.square(np.pi / sine) - _trigamma_positive(1.0 - x)


def _trigamma_positive(x: Array) -> Array:
    """sum 1/(x+k)**2 up to x + 10, then DLMF 5.15.8."""
    total = np.zeros_like(x)
    rest = x
    for _ in range(int(_DIGAMMA_LIMIT)):
        total = total + 1.0 / (rest * rest)
        rest = rest + 1.0
    inverse = 1.0 / rest
    square = inverse * inverse
    tail = inverse + 0.5 * square + inverse * polynomial(square, (0.0, *_BERNOULLI[:8]))
    return total + tail


def _zeta(x: Array, q: Array) -> Array:
    pole = (q <= 0.0) & (q == np.floor(q))
    defined = (x > 1.0) & np.isfinite(x) & np.isfinite(q) & ~pole
    regions = [
        (defined & (q > 0.0), _zeta_positive),
        (defined & (q < 0.0) & (x == np.floor(x)), _zeta_negative),
        ((x == 1.0) | (~(x < 1.0) & pole), lambda x, q: np.full_like(x, np.inf)),
        ((x == np.inf) & (q < 1.0) & ~pole, lambda x, q: np.full_like(x, np.inf)),
        ((x == np.inf) & (q == 1.0), lambda x, q: np.ones_like(x)),
    ]
    return by_region([x, q], regions)


def _zeta_positive(x: Array, q: Array) -> Array:
    """Euler-Maclaurin summation after ten direct terms, DLMF 25.11.28 with 2.10.1."""
    total = np.zeros_like(x)
    for k in range(_ZETA_DIRECT_TERMS):
        total = total + (q + k) ** -x
    start = q + _ZETA_DIRECT_TERMS
    power = start**-x
    # A power this small adds nothing, while the factors below may overflow for large x.
    relevant = power > total * 1e-25
    tail = power * (start / (x - 1.0) + 0.5)
    factor = x / start
    for k, bernoulli in enumerate(_BERNOULLI, start=1):
        tail = tail + power * factor * (bernoulli / math.factorial(2 * k))
        factor = factor * (x + (2 * k - 1)) * (x + 2 * k) / (start * start)
    return total + np.where(relevant, tail, 0.0)


def _zeta_negative(x: Array, q: Array) -> Array:
    """Sum over all integers k of (q+k)**-x, for integer x: the terms left of zero change sign."""
    floor = np.floor(q)
    fraction = q - floor
    left = _zeta_positive(x, 1.0 - fraction) - _zeta_positive(x, 1.0 - fraction - floor)
    sign = np.where(np.fmod(x, 2.0) == 0.0, 1.0, -1.0)
    return _zeta_positive(x, fraction) + sign * left


lgamma = in_float64(_lgamma)
digamma = in_float64(_digamma)
trigamma = in_float64(_trigamma)
zeta = in_float64(_zeta)


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma, (-1)**(n+1) n! zeta(n+1, x) for n >= 2 (DLMF 25.11.12).

    Raises:
        RuntimeError: for negative n.
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(x)
    if n == 1:
        return trigamma(x)
    return in_float64(lambda values: _polygamma(n, values))(x)


def _polygamma(n: int, x: Array) -> Array:
    order = np.full_like(x, n + 1.0)
    scale = math.exp(math.lgamma(n + 1.0)) if n > 170 else float(math.factorial(n))
    sign = 1.0 if n % 2 else -1.0
    return sign * scale * _zeta(order, x)
