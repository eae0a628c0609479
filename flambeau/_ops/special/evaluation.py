"""Tools of the special functions: blocked float64 evaluation, polynomials, regions.

A kernel here is a function of float64 arrays that returns a new float64 array and leaves its
arguments alone.  ``in_float64`` turns it into a function of arrays of any floating dtype and shape.
"""

from collections.abc import Callable, Sequence
from functools import wraps

import numpy as np

Array = np.ndarray
Kernel = Callable[..., Array]

# 16 Ki doubles are 128 KiB: a block and its temporaries stay in the second-level cache.
BLOCK = 16384
_LARGE_ITEM = 4


def in_float64(kernel: Kernel) -> Kernel:
    """Evaluate ``kernel`` in float64, block by block, and round once to the inputs' dtype.

    Inputs broadcast and share one floating dtype; the result is a new array of that dtype.
    Raises:
        TypeError: for dtypes that are not real floating point, or that differ.
    """
    return with_single_kernel(kernel, kernel)


def with_single_kernel(kernel: Kernel, single: Kernel) -> Kernel:
    """As ``in_float64``; inputs narrower than float64 take ``single``, which may be less exact."""

    @wraps(kernel)
    def run(*arrays: Array) -> Array:
        dtype = _common_dtype(kernel.__name__, arrays)
        arrays = np.broadcast_arrays(*arrays) if len(arrays) > 1 else arrays
        chosen = single if dtype.itemsize <= _LARGE_ITEM else kernel
        with np.errstate(all="ignore"):
            return _run_blocks(chosen, arrays, dtype)

    return run


def _common_dtype(name: str, arrays: Sequence[Array]) -> np.dtype:
    dtype = arrays[0].dtype
    if any(array.dtype != dtype for array in arrays):
        raise TypeError(f"{name} wants one dtype, got {[str(array.dtype) for array in arrays]}")
    if dtype.kind not in "fV" or dtype.itemsize > 8:
        raise TypeError(f"{name} wants a real floating dtype, got {dtype}")
    return dtype


def _run_blocks(kernel: Kernel, arrays: Sequence[Array], dtype: np.dtype) -> Array:
    shape = arrays[0].shape
    flat = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
    result = np.empty(flat[0].size, dtype)
    for start in range(0, result.size, BLOCK):
        stop = start + BLOCK
        values = kernel(*(array[start:stop].astype(np.float64) for array in flat))
        result[start:stop] = _rounded(values, dtype)
    return result.reshape(shape)


def _rounded(values: Array, dtype: np.dtype) -> Array:
    # Half types are computed in float32 and rounded from there, as torch does.
    if dtype.itemsize < _LARGE_ITEM:
        return values.astype(np.float32).astype(dtype)
    return values


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """sum(coefficients[k] * x**k), by Horner's rule."""
    result = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        result += coefficient
        result *= x
    result += coefficients[0]
    return result


def rational(x: Array, numerator: Sequence[float], denominator: Sequence[float]) -> Array:
    """polynomial(x, numerator) / polynomial(x, denominator)."""
    result = polynomial(x, numerator)
    result /= polynomial(x, denominator)
    return result


def chebyshev_series(t: Array, coefficients: Sequence[float]) -> Array:
    """sum(coefficients[k] * T_k(t)), by Clenshaw's recurrence (Clenshaw 1955)."""
    twice = t + t
    before = np.zeros_like(t)
    current = np.full_like(t, coefficients[-1])
    for coefficient in coefficients[-2:0:-1]:
        before, current = current, coefficient + twice * current - before
    return coefficients[0] + t * current - before


def by_region(arrays: Sequence[Array], regions: Sequence[tuple[Array, Kernel]]) -> Array:
    """Evaluate each kernel only where its mask holds; nan where no mask holds."""
    size = arrays[0].size
    result = np.full(size, np.nan)
    for mask, kernel in regions:
        index = np.flatnonzero(mask)
        if index.size == size:
            return kernel(*arrays)
        if index.size:
            result[index] = kernel(*(array[index] for array in arrays))
    return result


def exp_square(x: Array, scale: float) -> Array:
    """exp(scale*x*x) without the rounding error of x*x; ``scale`` is a power of two, or minus one.

    x = high + low with high a float32, whose square is exact; the result is then
    exp(scale*high*high) * exp(y), y = scale*low*(x + high).  Where the result is neither zero nor
    infinite, |y| < 1e-4, and a cubic serves for exp(y).
    """
    limited = np.maximum(np.minimum(x, 64.0), -64.0)
    high = limited.astype(np.float32).astype(np.float64)
    y = (scale * (limited - high)) * (high + limited)
    return np.exp(scale * high * high) * (1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0))))


def sin_pi(x: Array) -> Array:
    """sin(pi*x), exactly zero at integers; nan at infinities."""
    rest = np.fmod(x, 2.0)
    rest = rest - 2.0 * np.round(0.5 * rest)
    folded = np.where(np.abs(rest) > 0.5, np.copysign(1.0, rest) - rest, rest)
    return np.sin(np.pi * folded)
