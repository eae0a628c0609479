"""Sums of arrays by NumPy, in an order that keeps their digits."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from flambeau._ops.views.geometry import CACHE_SIZE

WIDER = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}
LONG = 2048
"""From this many elements on, single precision is not added up one after the other."""


def add_up(data: np.ndarray, axes: tuple[int, ...], working: Any, keepdim: bool) -> Any:
    """The sum over axes; NumPy adds by pairs along contiguous memory, but rows one by one."""
    if data.size >= LONG and axes:
        if data.flags.c_contiguous and _leaves_few_columns(data.shape, axes):
            return _add_columns(data, axes, working, keepdim)
        if working in WIDER and _adds_one_by_one(data.shape, data.strides, axes):
            working = WIDER[working]
    axis = numpy_axis(axes, data.ndim)
    return np.add.reduce(data, axis, working, None, keepdim)  # type: ignore[call-overload]


def numpy_axis(axes: tuple[int, ...], ndim: int) -> Any:
    """Axes in the form that NumPy reads fastest."""
    count = len(axes)
    if count == ndim:
        return None
    return axes[0] if count == 1 else axes


def adds_by_pairs(data: np.ndarray) -> bool:
    """Whether NumPy's sum of all elements is as exact as the type allows, however they lie."""
    return data.size < LONG or data.flags.c_contiguous


@lru_cache(CACHE_SIZE)
def _leaves_few_columns(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether the leading dims of row-major memory are summed and few results are left."""
    if sorted(axes) != list(range(len(axes))):
        return False
    count = math.prod(shape[len(axes) :])
    return 1 < count <= 8 and math.prod(shape) >= LONG * count


def _add_columns(data: np.ndarray, axes: tuple[int, ...], working: Any, keepdim: bool) -> Any:
    """Each column by itself: NumPy would make one call of its inner loop for every short row."""
    rest = data.shape[len(axes) :]
    rows = data.reshape(-1, math.prod(rest))
    totals = [np.add.reduce(column, dtype=working) for column in rows.T]
    kept = (1,) * len(axes) if keepdim else ()
    return np.array(totals, working).reshape(kept + rest)


@lru_cache(CACHE_SIZE)
def _adds_one_by_one(
    shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]
) -> bool:
    """Whether long runs of additions are left after those along the innermost memory."""
    by_stride = sorted((abs(strides[d]), d) for d in range(len(shape)) if shape[d] > 1)
    run, expected = 1, None
    for stride, d in by_stride:
        if d not in axes or expected not in (None, stride):
            break
        run *= shape[d]
        expected = stride * shape[d]
    return math.prod([shape[d] for d in axes]) > 64 * run


def complex_logaddexp(x: np.ndarray, y: np.ndarray, nothing: np.ndarray) -> np.ndarray:
    """log(exp(x) + exp(y)) as large + log1p(exp(small - large)): the phase goes on beyond pi.

    Of two infinite ones the phase is that of their sum, where both are log(0) the result is
    `nothing`, and a NaN in either part is one in both.
    """
    swap = x.real < y.real
    large, small = np.where(swap, y, x), np.where(swap, x, y)
    result = large + np.log1p(np.exp(small - large))
    result = np.where(np.isposinf(small.real), np.log(np.exp(x) + np.exp(y)), result)
    result = np.where(np.isneginf(large.real), nothing, result)
    return np.where(np.isnan(x) | np.isnan(y), complex(math.nan, math.nan), result)
