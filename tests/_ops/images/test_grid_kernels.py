"""The compiled `grid_sample` against NumPy's form of it."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import flambeau as torch
from flambeau._ops.images import grid_launch, numpy_grid
from tests.random_seeds import generator

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
TOLERANCE = {"float64": 1e-11, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
CHOICES = [
    choice
    for choice in product((2, 3), numpy_grid.MODES, numpy_grid.PADDING_MODES, (False, True))
    if choice[:2] != (3, "bicubic")
]


def drawn() -> np.random.Generator:
    return np.random.default_rng(generator().getrandbits(64))


def arguments(rng: np.random.Generator, rank: int, dtype: Any) -> tuple[Any, Any, Any]:
    """An image with positions that lie far outside, at pixels and nowhere; a gradient."""
    spatial = tuple(int(n) for n in rng.integers(1, 9, rank))
    output = tuple(int(n) for n in rng.integers(1, 12, rank))
    images, channels = (int(n) for n in rng.integers(1, 4, 2))
    input = rng.standard_normal((images, channels, *spatial))
    grid = rng.standard_normal((images, *output, rank)) * 1.3
    odd = rng.random(grid.shape) < 0.1
    grid[odd] = rng.choice([-1, 1, 0, 30, -1e4, np.inf, -np.inf, np.nan], int(odd.sum()))
    grad = rng.standard_normal((images, channels, *output))
    return tuple(array.astype(dtype) for array in (input, grid, grad))  # type: ignore[return-value]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_kernels(choice: tuple[int, str, str, bool], dtype: Any) -> None:
    rng, (rank, *options) = drawn(), choice
    input, grid, grad = arguments(rng, rank, dtype)
    plain = numpy_grid.grid_sample(input, grid, *options)  # type: ignore[arg-type]
    close(grid_launch.grid_sample(input, grid, *options), plain)  # type: ignore[arg-type]
    expected = numpy_grid.grid_sample_backward(grad, input, grid, *options)  # type: ignore[arg-type]
    found = grid_launch.grid_sample_backward(grad, input, grid, *options)  # type: ignore[arg-type]
    for ours, theirs in zip(found, expected, strict=True):
        close(ours, theirs)


def close(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    tolerance = TOLERANCE[found.dtype.name]
    wide = [array.astype(np.float64) for array in (found, expected)]
    np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance * 10)


def test_what_lies_outside_is_not_read() -> None:
    """Zeros around an image of NaN and infinity are zeros."""
    image = np.full((1, 1, 2, 2), np.inf, np.float32)
    far = np.full((1, 1, 3, 2), 5, np.float32)
    assert not grid_launch.grid_sample(image, far, "bilinear", "zeros", False).any()
    assert not grid_launch.grid_sample(image, far, "bicubic", "zeros", False).any()


def test_threads() -> None:
    """The same bits for any number of threads."""
    input, grid, grad = arguments(drawn(), 2, np.float32)
    input, grid, grad = (
        np.tile(array, (5, *[1] * (array.ndim - 1))) for array in (input, grid, grad)
    )
    grid = np.tile(grid, (1, 16, 16, 1))
    grad = np.tile(grad, (1, 1, 16, 16))
    before, found = torch.get_num_threads(), []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        found.append([
            grid_launch.grid_sample(input, grid, "bilinear", "border", False),
            *grid_launch.grid_sample_backward(grad, input, grid, "bilinear", "border", False),
        ])  # fmt: skip
    torch.set_num_threads(before)
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
