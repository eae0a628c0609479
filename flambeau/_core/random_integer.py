"""Fill arrays with random integers: torch's ``random_`` and ``randint`` on the CPU, word for word.

A range below 2**28 takes the remainder of one 32-bit word, a larger one that of a 64-bit word.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from flambeau._core.random_fill import (
    BFLOAT16,
    DIGITS,
    LARGEST,
    RANDOM_TYPES,
    SCALAR_NAMES,
    Compiled,
    fill,
    require_bounds,
    require_kernel,
)
from flambeau._core.settings import warn_user

if TYPE_CHECKING:
    from flambeau._core.generator import Generator

HALF_WORD_RANGE = 1 << 28
INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1

# How many values random_() without bounds has, per dtype; the wide ones take 64-bit draws.
FULL_RANGES = {
    np.dtype(np.bool_): 2,
    np.dtype(np.uint8): 1 << 8,
    np.dtype(np.int8): 1 << 7,
    np.dtype(np.int16): 1 << 15,
    np.dtype(np.int32): 1 << 31,
    np.dtype(np.int64): 1 << 63,
    **{dtype: (1 << digits) + 1 for dtype, digits in DIGITS.items()},
}
WIDE_FULL = (np.dtype(np.int64), np.dtype(np.float64))
FULL_64_BITS = (np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.float32), BFLOAT16)

# What bounds may be, per dtype; they are int64 numbers for uint64 too.
_LIMITS: dict[np.dtype, tuple[float, float]] = {
    np.dtype(np.bool_): (0, 1),
    **{
        dtype: (int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), _INT64_MAX))
        for dtype in RANDOM_TYPES
        if dtype.kind in "iu"
    },
    **{dtype: (-largest, largest) for dtype, largest in LARGEST.items()},
}


def signed(value: int) -> int:
    """A 64-bit number as the signed one of the same bits."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def random_(out: np.ndarray, generator: Generator) -> np.ndarray:
    """Integers of [0, largest]; for floats of [0, 2**digits]. ``Tensor.random_()``."""
    if out.size == 0:
        return out
    require_kernel(out.dtype, tuple(FULL_RANGES), "random_kernel_cpu")
    wide = out.dtype in WIDE_FULL
    extent = FULL_RANGES[out.dtype]
    fast = Compiled.kernels(out)
    if fast is not None:
        fast.integers(out, extent, 0, wide, generator)
        return out
    draws = generator.words64 if wide else generator.words
    return fill(out, lambda count: remainder(draws(count), extent).astype(np.int64))


def random_from_to_(
    out: np.ndarray, low: int, high: int | None, generator: Generator
) -> np.ndarray:
    """Integers of [low, high), or up to the dtype's largest when ``high`` is None.

    Errors: RuntimeError for an empty range or bounds outside the dtype.
    """
    if high is None and low == INT64_MIN:
        return _random_64_bits(out, generator)
    bounds = _check_bounds if out.dtype in DIGITS else _known_bounds
    low, last = bounds(out.dtype, low, high)
    if out.size == 0:
        return out
    extent = last - low + 1
    # below 2**28 the skew of the remainder stays small with one word
    wide = extent >= HALF_WORD_RANGE
    fast = Compiled.kernels(out)
    if fast is not None:
        fast.integers(out, extent, low, wide, generator)
        return out
    draws = generator.words64 if wide else generator.words

    def draw(count: int) -> np.ndarray:
        values = remainder(draws(count), extent).astype(np.int64)
        if low != 0:
            values += low
        return values

    return fill(out, draw)


def checked_bounds(dtype: np.dtype, low: int, high: int | None) -> tuple[int, int]:
    """The first and the last value of the range. Floats warn every time."""
    return (_check_bounds if dtype in DIGITS else _known_bounds)(dtype, low, high)


def remainder(words: np.ndarray, extent: int) -> np.ndarray:
    """``words % extent``, through NumPy's fast division by a constant."""
    kind = words.dtype.type
    if extent >= 1 << (8 * words.itemsize):
        return words
    if extent & (extent - 1) == 0:
        return words & kind(extent - 1)
    divisor = kind(extent)
    multiples = words // divisor
    multiples *= divisor
    return words - multiples


def _random_64_bits(out: np.ndarray, generator: Generator) -> np.ndarray:
    if out.size == 0:
        return out
    listed = (*FULL_64_BITS, *(np.dtype(kind) for kind in (np.uint8, np.int8, np.int16, np.int32)))
    require_kernel(out.dtype, listed, "random_full_64_bits_range_kernel_cpu")
    if out.dtype not in FULL_64_BITS:
        raise RuntimeError(
            "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16"
        )
    return fill(out, lambda count: generator.words64(count).view(np.int64))


def _check_bounds(dtype: np.dtype, low: int, high: int | None) -> tuple[int, int]:
    """The first and the last value of the range, moved to what a float dtype can hold."""
    if high is None:
        return _check_open_bounds(dtype, low)
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype in DIGITS:
        low, high = _raise_from(dtype, low), _lower_to(dtype, high)
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                f"but got from={low} >= to={high}"
            )
    _check_from_to(dtype, low, high - 1)
    return low, high - 1


_known_bounds = lru_cache(256, typed=True)(_check_bounds)


def _check_open_bounds(dtype: np.dtype, low: int) -> tuple[int, int]:
    if dtype in DIGITS:
        last = 1 << DIGITS[dtype]
        low = _raise_from(dtype, low)
        if low >= last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' "
                f"casted to dtype, but got from={low} > to_inc={last}"
            )
    elif dtype == np.bool_:
        last = 1
    elif dtype.kind in "iu":
        # torch keeps the end in an int64, where uint64's wraps to -1 and is then refused
        last = -1 if dtype == np.uint64 else int(np.iinfo(dtype).max)
    else:
        raise RuntimeError(
            "random_from_to_impl handles only integral, floating-point and boolean types"
        )
    _check_from_to(dtype, low, last)
    return low, last


def _check_from_to(dtype: np.dtype, low: int, last: int) -> None:
    limits = _LIMITS.get(dtype)
    if limits is None:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    require_bounds(low, "from", *limits, dtype)
    require_bounds(last, "to - 1", *limits, dtype)
    if dtype in DIGITS:
        _warn_inexact(low, "from", dtype)
        _warn_inexact(last, "to - 1", dtype)


def _warn_inexact(value: int, name: str, dtype: np.dtype) -> None:
    digits = DIGITS[dtype]
    if abs(value) <= 1 << digits:
        return
    warn_user(
        f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
        f"{SCALAR_NAMES[dtype][1]} can support discrete uniform distribution only within this "
        "range. This warning will become an error in version 1.7 release, please fix the code in "
        "advance"
    )


def _rounded(dtype: np.dtype, value: int) -> int:
    """``value`` through the dtype and back; beyond int64, x86's answer, the smallest int64."""
    wide = np.float64(value) if dtype == np.float64 else np.float32(value)
    with np.errstate(over="ignore"):
        rounded = float(wide.astype(dtype))
    return int(rounded) if abs(rounded) < 2.0**63 else INT64_MIN


def _raise_from(dtype: np.dtype, low: int) -> int:
    """The next value of the dtype when ``low + 1`` would round below ``low``."""
    rounded = _rounded(dtype, low + 1)
    if rounded >= low:
        return low
    return rounded + (1 << (abs(low + 1).bit_length() - DIGITS[dtype]))


def _lower_to(dtype: np.dtype, high: int) -> int:
    """The previous value of the dtype when ``high - 1`` would round up to ``high``."""
    rounded = _rounded(dtype, high - 1)
    if rounded < high:
        return high
    return rounded - (1 << (abs(high - 1).bit_length() - DIGITS[dtype]))
