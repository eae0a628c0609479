"""Uniform numbers into normal ones, with the bits that torch's CPU kernels give.

torch's float32 kernel is vectorised: logarithm, sine and cosine are the Cephes polynomials
(Moshier, public domain) in single precision, and every product that meets a sum is a fused
multiply-add. Here a fused step runs in double precision, where the product of two singles is
exact, and is then rounded once more. The two could differ only where the rounded sum falls on the
middle between two singles and the exact one does not; 1.3 * 10**9 standard normals compared with
torch's showed no such case.
The double kernel calls the C library.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

SINGLE = np.float32

_SQRT_HALF = SINGLE(0.707106781186547524)
_TWO_PI = SINGLE(2.0 * math.pi)
_FOUR_OVER_PI = SINGLE(1.27323954473516)
_MANTISSA = np.int32(~0x7F800000)
_HALF_BITS = np.int32(0x3F000000)


def _singles(*values: float) -> list[float]:
    """The values rounded to single precision, kept as Python floats."""
    return [float(SINGLE(value)) for value in values]


_LOG_P = _singles(
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_LN2_LOW, _LN2_HIGH = _singles(-2.12194440e-4, 0.693359375)
_QUARTER_PI_PARTS = _singles(0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)
# Row 0 is the cosine polynomial, row 1 the sine polynomial; both in powers of the square.
_COS_SIN_P = [
    np.array([_singles(cosine), _singles(sine)])
    for cosine, sine in (
        (2.443315711809948e-5, -1.9515295891e-4),
        (-1.388731625493765e-3, 8.3321608736e-3),
        (4.166664568298827e-2, -1.6666654611e-1),
    )
]
# Of cosine and sine by octant; only even octants occur.
_SIGNS = np.array(
    [
        [1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0, 0.0, 1.0],
        [1.0, 0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0],
    ]
)


def _round(values: np.ndarray) -> np.ndarray:
    """Round float64 values to single precision, in place."""
    values[...] = values.astype(SINGLE)
    return values


def log_single(values: np.ndarray) -> np.ndarray:
    """Natural logarithm of positive normal float32 values, as float64 holding singles."""
    bits = values.view(np.int32)
    fraction = ((bits & _MANTISSA) | _HALF_BITS).view(SINGLE)
    below = fraction < _SQRT_HALF
    exponent = ((bits >> 23) - 126 - below).astype(np.float64)
    fraction += np.where(below, fraction, SINGLE(0))
    x = fraction.astype(np.float64)
    x -= 1.0
    square = _round(x * x)
    result = x * _LOG_P[0]
    result += _LOG_P[1]
    _round(result)
    for coefficient in _LOG_P[2:]:
        result *= x
        result += coefficient
        _round(result)
    result *= x
    _round(result)
    result *= square
    result += _round(exponent * _LN2_LOW)
    _round(result)
    result -= 0.5 * square
    _round(result)
    result += x
    _round(result)
    exponent *= _LN2_HIGH
    result += exponent
    return _round(result)


def cos_sin_single(angles: np.ndarray) -> np.ndarray:
    """Cosine (row 0) and sine (row 1) of float32 angles in [0, 2 pi], shape (n,) to (2, n).

    The result is float64 holding singles.
    """
    octant = (angles * _FOUR_OVER_PI).astype(np.int32)
    octant += 1
    octant &= ~1
    turns = octant.astype(np.float64)
    x = angles.astype(np.float64)
    # the first difference is exact: its digits end where those of the angle end
    x -= turns * _QUARTER_PI_PARTS[0]
    for part in _QUARTER_PI_PARTS[1:]:
        x -= turns * part
        _round(x)
    square = _round(x * x)
    both = square * _COS_SIN_P[0]
    both += _COS_SIN_P[1]
    _round(both)
    both *= square
    both += _COS_SIN_P[2]
    _round(both)
    both *= square
    _round(both)
    both[0] *= square
    both[0] -= 0.5 * square
    both[1] *= x
    both[1] += x
    _round(both)
    both[0] += 1.0
    _round(both[0])
    both = np.where((octant & 2) != 0, both[::-1], both)
    both *= _SIGNS.take(octant, axis=1)
    return both


def box_muller_single(units: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Turn float32 uniforms of shape (blocks, 16) into normals of the same shape.

    In each row the first eight give the radius, the last eight the angle; the first eight results
    are the cosines, the last eight the sines.
    """
    blocks = units.shape[0]
    logarithm = log_single((SINGLE(1) - units[:, :8]).ravel())
    logarithm *= -2.0
    radius = np.sqrt(logarithm.astype(SINGLE)).astype(np.float64)
    values = cos_sin_single((_TWO_PI * units[:, 8:]).ravel())
    values *= radius
    _round(values)
    values *= float(SINGLE(std))
    values += float(SINGLE(mean))
    result = np.empty((blocks, 2, 8), SINGLE)
    result[...] = values.reshape(2, blocks, 8).swapaxes(0, 1)
    return result.reshape(blocks, 16)


def box_muller_double(units: np.ndarray, mean: float, std: float) -> np.ndarray:
    """The same for float64 uniforms of shape (blocks, 16)."""
    radius = libm("log")(1.0 - units[:, :8])
    radius *= -2.0
    np.sqrt(radius, out=radius)
    theta = (2.0 * math.pi) * units[:, 8:]
    result = np.empty_like(units)
    np.multiply(radius, libm("cos")(theta), out=result[:, :8])
    np.multiply(radius, libm("sin")(theta), out=result[:, 8:])
    return fused_multiply_add(result, std, mean)


# A layer that compiles kernels may put faster ones of the same results here.
BLOCK_TRANSFORMS: dict[str, Callable[[np.ndarray, float, float], np.ndarray]] = {
    "single": box_muller_single,
    "double": box_muller_double,
}


def normal_pairs(units: np.ndarray) -> np.ndarray:
    """Float64 uniforms of shape (n, 2) to standard normals of shape (n, 2): cosine, sine."""
    radius = np.sqrt(-2.0 * libm("log1p")(-units[:, 1]))
    theta = (2.0 * math.pi) * units[:, 0]
    result = np.empty_like(units)
    np.multiply(radius, libm("cos")(theta), out=result[:, 0])
    np.multiply(radius, libm("sin")(theta), out=result[:, 1])
    return result


SPLITTABLE = 2.0**960
DOWN = 2.0**128
"""Larger factors are scaled down, exactly: `_split` would overflow."""


def fused_multiply_add(values: np.ndarray, factor: float, addend: float) -> np.ndarray:
    """``values * factor + addend`` in float64 with one rounding (Boldo and Melquiond, 2008)."""
    if factor == 1.0:
        return values + addend
    if addend == 0.0:
        return values * factor + 0.0
    if not math.isfinite(factor) or not math.isfinite(addend):
        return values * factor + addend
    if max(abs(factor), abs(addend)) > SPLITTABLE:
        return fused_multiply_add(values, factor / DOWN, addend / DOWN) * DOWN
    product = values * factor
    low = _product_error(values, factor, product)
    total, rest = _two_sum(product, np.float64(addend))
    tail, error = _two_sum(low, rest)
    # Round the tail to odd, so that the last addition rounds as the exact sum would.
    bits = tail.view(np.int64)
    inexact = (error != 0.0) & ((bits & 1) == 0)
    bits += np.where(inexact, np.where((error > 0.0) == (tail > 0.0), 1, -1), 0)
    return total + tail


def _two_sum(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rounded sum and what the rounding lost (Knuth)."""
    total = left + right
    share = total - left
    return total, (left - (total - share)) + (right - share)


def _product_error(left: np.ndarray, right: float, product: np.ndarray) -> np.ndarray:
    """What rounding ``left * right`` to ``product`` lost (Dekker, 1971)."""
    left_high, left_low = _split(left)
    right_high, right_low = _split(np.float64(right))
    error = left_high * right_high - product
    error += left_high * right_low
    error += left_low * right_high
    error += left_low * right_low
    return error


def _split(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shifted = values * 134217729.0
    high = shifted - (shifted - values)
    return high, values - high


@functools.cache
def libm(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """The C library's function over float64 arrays.

    NumPy calls the C library on most machines and its own vectorised code on others (AVX-512);
    where the two disagree on a sample, the slow way through ``math`` is taken.
    """
    ufunc = getattr(np, name)
    scalar = getattr(math, name)
    sample = np.arange(1, 2000) / 2000.0 * (-1.0 if name == "log1p" else 1.0)
    expected = np.array([scalar(value) for value in sample.tolist()])
    if np.array_equal(ufunc(sample), expected):
        return ufunc

    def by_element(values: np.ndarray) -> np.ndarray:
        results = [_tolerant(scalar, ufunc, value) for value in values.ravel().tolist()]
        return np.array(results).reshape(values.shape)

    return by_element


def _tolerant(scalar: Callable[[float], float], ufunc: np.ufunc, value: float) -> float:
    """``math`` raises at poles and overflows, where C and NumPy give infinities."""
    try:
        return scalar(value)
    except (ValueError, OverflowError):
        return float(ufunc(value))
