"""Error functions and the normal distribution: erf, erfc, erfcx, erfinv, ndtr, ndtri, log_ndtr.

All take one floating array of any shape and return a new array of its shape and dtype.
Formulas: DLMF 7.2 (definitions); the approximations are named in ``error_tables.py``.
"""

import numpy as np

from flambeau._ops.special import error_tables as tables
from flambeau._ops.special.evaluation import (
    Array,
    by_region,
    exp_square,
    in_float64,
    polynomial,
    rational,
    with_single_kernel,
)

_SHEPHERD_CENTER = 3.75
# erf rounds to one in float32 from 3.92 on.
_SINGLE_LIMIT = 4.0
_CENTRAL_LIMIT = 1.0
_CANCELLATION_LIMIT = 0.5
_SQRT_HALF = 0.7071067811865476
_ERF_SINGLE = tuple(
    np.array([[numerator], [denominator]])
    for numerator, denominator in zip(
        tables.ERF_SINGLE_NUMERATOR, (*tables.ERF_SINGLE_DENOMINATOR, 0.0), strict=True
    )
)


def _erf_single(x: Array) -> Array:
    limited = np.maximum(np.minimum(x, _SINGLE_LIMIT), -_SINGLE_LIMIT)
    square = limited * limited
    # Both polynomials in one array: half the NumPy calls, which is what small inputs pay for.
    both = square * _ERF_SINGLE[-1]
    for pair in _ERF_SINGLE[-2:0:-1]:
        both += pair
        both *= square
    both += _ERF_SINGLE[0]
    limited *= both[0]
    limited /= both[1]
    return limited


def _erf_central(x: Array) -> Array:
    return x * polynomial(x * x, tables.ERF_CENTRAL)


def _erf_outer(x: Array) -> Array:
    size = np.abs(x)
    return np.copysign(1.0 - exp_square(size, -1.0) * _erfcx_positive(size), x)


def _erfcx_positive(x: Array) -> Array:
    """exp(x*x) erfc(x) for x >= 0."""
    finite = np.minimum(x, 1e300)
    t = (finite - _SHEPHERD_CENTER) / (finite + _SHEPHERD_CENTER)
    return polynomial(t, tables.ERFCX) / (1.0 + 2.0 * x)


def _erf(x: Array) -> Array:
    central = np.abs(x) < _CENTRAL_LIMIT
    return by_region([x], [(central, _erf_central), (~central, _erf_outer)])


def erfc_double(x: Array) -> Array:
    near = np.abs(x) < _CANCELLATION_LIMIT
    return by_region([x], [(near, lambda x: 1.0 - _erf_central(x)), (~near, _erfc_outer)])


def _erfc_outer(x: Array) -> Array:
    size = np.abs(x)
    tail = exp_square(size, -1.0) * _erfcx_positive(size)
    return np.where(x < 0.0, 2.0 - tail, tail)


def _erfcx(x: Array) -> Array:
    regions = [(x >= 0.0, _erfcx_positive), (x < 0.0, _erfcx_negative)]
    return by_region([x], regions)


def _erfcx_negative(x: Array) -> Array:
    """2 exp(x*x) - erfcx(-x)."""
    return 2.0 * exp_square(x, 1.0) - _erfcx_positive(-x)


def _normal_quantile(offset: Array, smaller: Array) -> Array:
    """The x with P(X <= x) = 1/2 + offset; ``smaller`` is the smaller of the two tails (AS241)."""
    central = np.abs(offset) <= 0.425
    regions = [(central, _quantile_central), (~central, _quantile_outer)]
    return by_region([offset, smaller], regions)


def _quantile_central(offset: Array, smaller: Array) -> Array:
    t = 0.180625 - offset * offset
    return offset * rational(t, tables.NORMAL_CENTRAL_NUMERATOR, tables.NORMAL_CENTRAL_DENOMINATOR)


def _quantile_outer(offset: Array, smaller: Array) -> Array:
    root = np.sqrt(-np.log(smaller))
    regions = [
        (root <= 5.0, _quantile_middle),
        (root > 5.0, _quantile_tail),
    ]
    return np.copysign(by_region([root], regions), offset)


def _quantile_middle(root: Array) -> Array:
    t = root - 1.6
    return rational(t, tables.NORMAL_MIDDLE_NUMERATOR, tables.NORMAL_MIDDLE_DENOMINATOR)


def _quantile_tail(root: Array) -> Array:
    t = np.minimum(root, 1e3) - 5.0
    value = rational(t, tables.NORMAL_TAIL_NUMERATOR, tables.NORMAL_TAIL_DENOMINATOR)
    return np.where(np.isinf(root), np.inf, value)


def _erfinv(x: Array) -> Array:
    return _SQRT_HALF * _normal_quantile(0.5 * x, 0.5 * (1.0 - np.abs(x)))


def _ndtri(p: Array) -> Array:
    return _normal_quantile(p - 0.5, np.minimum(p, 1.0 - p))


def _ndtr(x: Array) -> Array:
    near = np.abs(x) < _CANCELLATION_LIMIT
    return by_region([x], [(near, _ndtr_near), (~near, _ndtr_outer)])


def _ndtr_near(x: Array) -> Array:
    return 0.5 + 0.5 * _erf_central(x * _SQRT_HALF)


def _ndtr_outer(x: Array) -> Array:
    tail = _normal_tail(np.abs(x))
    return np.where(x < 0.0, tail, 1.0 - tail)


def _normal_tail(x: Array) -> Array:
    """P(X > x) = exp(-x*x/2) erfcx(x/sqrt(2)) / 2 for x >= 0."""
    return 0.5 * exp_square(x, -0.5) * _erfcx_positive(x * _SQRT_HALF)


def _log_ndtr(x: Array) -> Array:
    low = x < -1.0
    return by_region([x], [(low, _log_ndtr_low), (~low, _log_ndtr_high)])


def _log_ndtr_low(x: Array) -> Array:
    return np.log(0.5 * _erfcx_positive(-x * _SQRT_HALF)) - 0.5 * x * x


def _log_ndtr_high(x: Array) -> Array:
    return np.log1p(-0.5 * erfc_double(x * _SQRT_HALF))


erf = with_single_kernel(_erf, _erf_single)
erfc = in_float64(erfc_double)
erfcx = in_float64(_erfcx)
erfinv = in_float64(_erfinv)
ndtr = in_float64(_ndtr)
ndtri = in_float64(_ndtri)
log_ndtr = in_float64(_log_ndtr)
