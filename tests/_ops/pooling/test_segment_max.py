"""Maxima over windows that are told one by one, against a search through each window."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._core import settings
from flambeau._ops.pooling import launch as compiled_pool

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
SIZES = {1: [(5,), (70,)], 2: [(9, 3), (7, 45)], 3: [(4, 5, 6), (3, 4, 37)]}


def values(rng: np.random.Generator, shape: tuple[int, ...], kind: int, dtype: Any) -> np.ndarray:
    """Plain numbers, numbers with ties, with nan, or with many infinities."""
    found = rng.normal(size=shape)
    if kind == 1:
        found = np.round(found)
    if kind == 2:
        found[rng.random(shape) < 0.3] = np.nan
    if kind == 3:
        found[rng.random(shape) < 0.8] = -np.inf
    return found.astype(dtype)


def searched(plane: np.ndarray, spans: list[range]) -> int:
    """The flat place of the maximum: the first of equal numbers, the last of several nan."""
    places = list(product(*spans))
    best = places[0]
    for place in places:
        if plane[place] > plane[best] or np.isnan(plane[place]):
            best = place
    return int(np.ravel_multi_index(best, plane.shape))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_windows(spatial: int, dtype: Any, shared: bool) -> None:
    rng = np.random.default_rng([spatial, shared])
    for round_, sizes in enumerate(SIZES[spatial] * 4):
        planes = 3
        output = tuple(int(n) for n in rng.integers(1, 6, spatial))
        spans, bounds = [], []
        for size, count in zip(sizes, output, strict=True):
            starts = rng.integers(0, size, (1 if shared else planes, count))
            stops = rng.integers(starts + 1, size + 1)
            spans.append((starts, stops))
            bounds += [starts, stops]
        array = values(rng, (planes, *sizes), round_ // 2, dtype)
        expected = np.empty((planes, *output), np.int64)
        for plane, *place in np.ndindex(expected.shape):
            row = 0 if shared else plane
            covered = [range(starts[row, at], stops[row, at])
                       for (starts, stops), at in zip(spans, place, strict=True)]  # fmt: skip
            expected[(plane, *place)] = searched(array[plane], covered)
        largest, places = compiled_pool.segment_max(array, np.concatenate(bounds, 1), output)
        np.testing.assert_array_equal(places, expected)
        flat = np.take_along_axis(array.reshape(planes, -1), places.reshape(planes, -1), 1)
        np.testing.assert_array_equal(
            largest.astype(float), flat.reshape(largest.shape).astype(float)
        )


def test_threads() -> None:
    array = np.random.default_rng(5).normal(size=(9, 60, 90)).astype(np.float32)
    bounds = np.array([[0, 20, 30, 60, 0, 11, 44, 5, 70, 90]])
    threads = settings.get_num_threads()
    found = []
    try:
        for count in (1, 4):
            settings.set_num_threads(count)
            found.append(compiled_pool.segment_max(array, bounds, (2, 3)))
    finally:
        settings.set_num_threads(threads)
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()
