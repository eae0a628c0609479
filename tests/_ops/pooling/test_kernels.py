"""The compiled pools against windows taken one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._ops.pooling import launch as compiled_pool

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


class Windows:
    """Random windows; `ceil` lets the last one reach over the end."""

    def __init__(self, rng: np.random.Generator, spatial: int, ceil: bool, dilated: bool) -> None:
        pick = lambda low, high: tuple(int(n) for n in rng.integers(low, high, spatial))  # noqa: E731
        self.kernel, self.stride = pick(1, 5), pick(1, 4)
        self.dilation = pick(1, 3) if dilated else (1,) * spatial
        self.padding = tuple(int(rng.integers(0, n // 2 + 1)) for n in self.kernel)
        spans = [gap * (n - 1) + 1 for n, gap in zip(self.kernel, self.dilation, strict=True)]
        self.size = tuple(span + int(rng.integers(0, 20 if spatial < 3 else 6)) for span in spans)
        output = []
        for n, span, step, pad in zip(self.size, spans, self.stride, self.padding, strict=True):
            reach = n + 2 * pad - span
            count = (reach + (step - 1 if ceil else 0)) // step + 1
            output.append(count - 1 if ceil and (count - 1) * step >= n + pad else count)
        self.output = tuple(output)

    def each(self) -> Any:
        """Every output place with the places of the input that its window covers."""
        for place in np.ndindex(*self.output):
            covered = []
            numbers = zip(place, self.kernel, self.stride, self.padding, self.dilation, self.size,
                          strict=True)  # fmt: skip
            for at, taps, step, pad, gap, size in numbers:
                places = [at * step - pad + k * gap for k in range(taps)]
                covered.append([n for n in places if 0 <= n < size])
            yield place, list(product(*covered))

    @property
    def numbers(self) -> tuple[tuple[int, ...], ...]:
        return self.kernel, self.stride, self.padding, self.dilation


def values(rng: np.random.Generator, shape: tuple[int, ...], kind: int, dtype: Any) -> np.ndarray:
    """Plain numbers, numbers with ties, with nan, or with many infinities."""
    found = rng.normal(size=shape)
    if kind == 1:
        found = np.round(found)
    if kind == 2:
        found[rng.random(shape) < 0.2] = np.nan
    if kind == 3:
        found[rng.random(shape) < 0.7] = -np.inf
    return found.astype(dtype)


def largest(plane: np.ndarray, places: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The place of the maximum: the first of equal numbers, the last of several nan."""
    best = places[0]
    for place in places:
        if plane[place] > plane[best] or np.isnan(plane[place]):
            best = place
    return best


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_max_pools(spatial: int, dtype: Any) -> None:
    rng = np.random.default_rng(spatial)
    for round_ in range(8):
        windows = Windows(rng, spatial, bool(round_ % 2), round_ > 3)
        if any(not covered for _, covered in windows.each()):
            continue
        input = values(rng, (3, *windows.size), round_ % 4, dtype)
        wide = input.astype(np.float64)
        places = np.empty((3, *windows.output), np.int64)
        for plane in range(3):
            for place, covered in windows.each():
                best = largest(wide[plane], covered)
                places[(plane, *place)] = np.ravel_multi_index(best, windows.size)
        expected = np.take_along_axis(input.reshape(3, -1), places.reshape(3, -1), 1)
        expected = expected.reshape(places.shape)
        found, indices = compiled_pool.max_pool_with_indices(
            input, *windows.numbers, windows.output
        )
        assert np.array_equal(indices, places)
        assert np.array_equal(found.astype(np.float64), expected.astype(np.float64), equal_nan=True)
        alone = compiled_pool.max_pool(input, *windows.numbers, windows.output)
        assert alone.tobytes() == found.tobytes()
        grad = rng.normal(size=places.shape).astype(dtype)
        sums = np.zeros((3, input[0].size))
        for plane in range(3):
            np.add.at(sums[plane], places[plane].ravel(), grad[plane].ravel().astype(np.float64))
        sums = sums.reshape(input.shape)
        compare(compiled_pool.max_pool_backward(grad, input, *windows.numbers), sums, dtype)
        compare(compiled_pool.scatter_planes(grad, places, windows.size), sums, dtype)


def compare(found: np.ndarray, expected: np.ndarray, dtype: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == dtype
    most = max(1.0, float(abs(expected).max(initial=0)))
    worst = float(abs(found.astype(np.float64) - expected).max(initial=0))
    assert worst <= TOLERANCE[np.dtype(dtype).name] * most


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_average_pools(spatial: int, dtype: Any) -> None:
    rng = np.random.default_rng(spatial)
    for round_ in range(8):
        windows = Windows(rng, spatial, bool(round_ % 2), False)
        include, override = round_ % 4 > 1, (None, 3)[round_ // 6]
        input = values(rng, (2, *windows.size), 0, dtype)
        grad = rng.normal(size=(2, *windows.output)).astype(dtype)
        sums, back = np.zeros(grad.shape), np.zeros(input.shape)
        for place, covered in windows.each():
            count = override or len(covered)
            if include and override is None:
                bounds = zip(place, windows.kernel, windows.stride, windows.padding, windows.size,
                             strict=True)  # fmt: skip
                count = int(np.prod([
                    min(at * step - pad + taps, size + pad) - (at * step - pad)
                    for at, taps, step, pad, size in bounds
                ]))  # fmt: skip
            for inner in covered:
                sums[(..., *place)] += input[(..., *inner)].astype(np.float64) / count
                back[(..., *inner)] += grad[(..., *place)].astype(np.float64) / count
        numbers = windows.kernel, windows.stride, windows.padding
        found = compiled_pool.avg_pool(input, *numbers, windows.output, include, override)
        compare(found, sums, dtype)
        found = compiled_pool.avg_pool_backward(grad, windows.size, *numbers, include, override)
        compare(found, back, dtype)


def test_windows_of_minus_infinity_have_their_first_element_as_maximum() -> None:
    input = np.full((1, 5, 4), -np.inf)
    _, indices = compiled_pool.max_pool_with_indices(input, (3, 3), (2, 1), (1, 1), (1, 1), (3, 4))
    assert np.array_equal(indices[0], [[0, 0, 1, 2], [4, 4, 5, 6], [12, 12, 13, 14]])


def test_planes_larger_than_a_band() -> None:
    rng = np.random.default_rng(0)
    input = rng.normal(size=(2, 301, 157)).astype(np.float32)
    found, indices = compiled_pool.max_pool_with_indices(
        input, (2, 2), (2, 2), (0, 0), (1, 1), (150, 78)
    )
    blocks = input[:, :300, :156].reshape(2, 150, 2, 78, 2)
    assert np.array_equal(found, blocks.max((2, 4)))
    assert np.array_equal(np.take_along_axis(input.reshape(2, -1), indices.reshape(2, -1), 1),
                          found.reshape(2, -1))  # fmt: skip
    average = compiled_pool.avg_pool(input, (2, 2), (2, 2), (0, 0), (150, 78))
    assert np.allclose(average, blocks.mean((2, 4)), atol=1e-6)


def test_inputs_need_not_be_contiguous() -> None:
    rng = np.random.default_rng(0)
    input = rng.normal(size=(6, 8, 2)).transpose(2, 1, 0)
    found = compiled_pool.max_pool(input, (2, 2), (2, 2), (0, 0), (1, 1), (4, 3))
    assert np.array_equal(found, input.reshape(2, 4, 2, 3, 2).max((2, 4)))
