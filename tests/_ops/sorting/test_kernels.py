"""Sorted rows and their first elements against NumPy's stable sort."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._core import settings
from flambeau._ops.sorting import launch as kernels

DTYPES = ["float16", ml_dtypes.bfloat16, "float32", "float64", "int8", "uint8", "int16", "int32",
          "int64", "bool"]  # fmt: skip
SHAPES = [((1,), 0), ((7,), 0), ((3, 96), 1), ((3, 97), 1), ((40, 6), 0), ((2, 300, 3), 1),
          ((5, 1), 1), ((1, 70000), 1)]  # fmt: skip


def sample(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Numbers with ties, and for floats both zeros, infinities and NaN."""
    generator = np.random.default_rng(seed)
    wide = np.round(generator.standard_normal(shape) * 30)
    kind = np.dtype(dtype)
    if kind.kind in "fV":
        for value in (np.nan, np.inf, -np.inf, -0.0, 0.0):
            wide[generator.random(shape) < 0.05] = value
        return wide.astype(kind)
    return np.clip(wide, 0 if kind.kind in "ub" else -100, 100).astype(kind)


def stable_order(data: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """NumPy's stable order of exact float64 copies; downwards, equal elements stay in order."""
    wide = data.astype(np.int64 if data.dtype.kind in "iub" else np.float64)
    if not descending:
        return np.argsort(wide, dim, kind="stable")
    backwards = np.argsort(np.flip(wide, dim), dim, kind="stable")
    return data.shape[dim] - 1 - np.flip(backwards, dim)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal bit by bit."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("shape", "dim"), SHAPES, ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dtype: Any, shape: Any, dim: int, descending: bool) -> None:
    """Values with their very bits, and the indices of a stable order."""
    data = sample(shape, dtype)
    values, indices = kernels.sort(data, dim, descending)
    expected = stable_order(data, dim, descending)
    assert np.array_equal(indices, expected)
    assert same_bits(values, np.take_along_axis(data, expected, dim))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("length", [1, 5, 64, 400, 5000])
@pytest.mark.parametrize("k", [1, 3, 50])
@pytest.mark.parametrize("largest", [False, True])
def test_first(dtype: Any, length: int, k: int, largest: bool) -> None:
    """The first k are the beginning of the sorted rows."""
    data = sample((6, length), dtype, 1)
    k = min(k, length)
    values, indices = kernels.first(data, k, 1, largest)
    expected = stable_order(data, 1, largest)[:, :k]
    assert np.array_equal(indices, expected)
    assert same_bits(values, np.take_along_axis(data, expected, 1))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_first_of_a_long_row(dtype: str) -> None:
    """A long row is searched in parts, whatever its length is divisible by."""
    data = sample((1, 200_003), dtype, 2)
    values, indices = kernels.first(data, 100, 1, True)
    expected = stable_order(data, 1, True)[:, :100]
    assert np.array_equal(indices, expected)
    assert same_bits(values, np.take_along_axis(data, expected, 1))


def test_strides() -> None:
    """Views are read as they are."""
    data = sample((60, 50), "float32", 3)[::2, ::-1].T
    values, indices = kernels.sort(data, 0, False)
    expected = stable_order(data, 0, False)
    assert np.array_equal(indices, expected)
    assert np.array_equal(values, np.take_along_axis(data, expected, 0), equal_nan=True)


def test_threads_do_not_matter() -> None:
    """One thread or several: the same result, as order is decided by elements and indices."""
    data = sample((100_000,), "float32", 4)
    threads = settings.get_num_threads()
    try:
        settings.set_num_threads(1)
        alone = kernels.sort(data, 0, False)
    finally:
        settings.set_num_threads(threads)
    together = kernels.sort(data, 0, False)
    assert all(same_bits(a, b) for a, b in zip(alone, together, strict=True))


def test_complex_has_no_order() -> None:
    """Complex numbers and empty arrays are left to others."""
    assert not kernels.fits(np.zeros(3, np.complex64), 0)
    assert not kernels.fits(np.zeros((0, 3)), 1)
