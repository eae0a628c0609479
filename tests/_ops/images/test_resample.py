"""Tables applied by compiled loops against dense matrices, and resizing against NumPy's form."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._core import settings
from flambeau._ops.images import interpolate_bytes as bytes_by_numpy
from flambeau._ops.images import numpy_interpolate as by_numpy
from flambeau._ops.images import resample, resample_launch, tables
from flambeau._ops.images.tables import COPIES, MEAN, OVER, PLAIN, TIMES
from flambeau._ops.pooling import numpy_adaptive
from flambeau._runtime import choice

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
SHAPES = [((3, 37), 1), ((2, 19, 5), 1), ((2, 11, 77), 1), ((1, 6, 130), 2), ((3, 4, 5, 21), 3)]
name_of = lambda dtype: np.dtype(dtype).name  # noqa: E731


@pytest.fixture(autouse=True)
def _kernels_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(choice.LIMITS, "resample", 0)


def random_table(rng: np.random.Generator, size: int, least: int) -> tables.Table:
    """Each new element of up to nine old ones."""
    lengths = rng.integers(least, 10, int(rng.integers(1, 60)))
    starts = np.concatenate([[0], lengths.cumsum()])
    places = rng.integers(0, size, int(starts[-1]))
    weights = rng.uniform(0.5, 2, len(places)) if least == 0 else np.repeat(lengths, lengths) * 1.0
    return tables.Table(size, starts, places, weights)


def dense(table: tables.Table, kind: int) -> np.ndarray:
    matrix = np.zeros((table.count, table.size))
    for new in range(table.count):
        for k in range(table.starts[new], table.starts[new + 1]):
            factor = {PLAIN: 1, TIMES: table.weights[k]}.get(kind, 1 / table.weights[k])
            matrix[new, table.places[k]] += factor
    return matrix


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("kind", [PLAIN, TIMES, OVER, MEAN])
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_tables(case: tuple[tuple[int, ...], int], kind: int, dtype: Any) -> None:
    shape, dim = case
    rng = np.random.default_rng([kind, *shape])
    for zero in (True, False):
        table = random_table(rng, shape[dim], 0 if zero and kind != MEAN else 1)
        array = rng.normal(size=shape).astype(dtype)
        found = resample_launch.apply(array, ((dim, table),), kind, zero)
        wide = np.moveaxis(array.astype(np.float64), dim, -1)
        expected = np.moveaxis(wide @ dense(table, kind).T, -1, dim)
        error = TOLERANCE[name_of(dtype)] * 10
        assert found.dtype == dtype
        np.testing.assert_allclose(found.astype(np.float64), expected, error, error)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_several_dims_and_threads(dtype: Any) -> None:
    """Any order of dims; the same bits for any number of threads."""
    rng = np.random.default_rng(7)
    array = (rng.normal(size=(5, 17, 70, 90)) / 99).astype(dtype)
    each = [random_table(rng, size, 1) for size in array.shape[1:]]
    placed = tuple(enumerate(each, 1))
    threads = settings.get_num_threads()
    found = []
    try:
        for count in (1, 3):
            settings.set_num_threads(count)
            found.append(resample_launch.apply(array, placed, TIMES, True))
    finally:
        settings.set_num_threads(threads)
    assert found[0].tobytes() == found[1].tobytes()
    matrices = [dense(table, TIMES) for table in each]
    expected = np.einsum("nabc,xa,yb,zc->nxyz", array.astype(np.float64), *matrices, optimize=True)
    error = TOLERANCE[name_of(dtype)]
    np.testing.assert_allclose(found[0].astype(np.float64), expected, error * 10,
                               error * np.abs(expected).max())  # fmt: skip


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_copies(case: tuple[tuple[int, ...], int], dtype: str) -> None:
    shape, last = case
    rng = np.random.default_rng([9, *shape])
    array = rng.integers(0, 255, shape).astype(dtype)
    for ordered in (True, False):
        placed, expected = [], array
        for dim in {max(last - 1, 0), last}:
            places = np.sort(rng.integers(0, shape[dim], 41))
            if ordered:
                places = np.clip(np.arange(-3, shape[dim] + 4), 0, shape[dim] - 1)
            placed.append((dim, tables.of_places(places, shape[dim])))
            expected = expected.take(places, dim)
        np.testing.assert_array_equal(resample_launch.copy(array, tuple(placed)), expected)


MODES = [
    ("nearest", 1), ("nearest-exact", 2), ("nearest", 3), ("linear", 1), ("bilinear", 2),
    ("trilinear", 3), ("bicubic", 2),
]  # fmt: skip


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_resizing(mode: tuple[str, int], dtype: Any, last: bool) -> None:
    name, spatial = mode
    rng = np.random.default_rng([spatial, last])
    for antialias in (False, name in ("bilinear", "bicubic")):
        sizes, output = rng.integers(1, 40 // spatial, (2, spatial)).tolist()
        array = rng.normal(size=(2, 3, *sizes)).astype(dtype)
        grad = rng.normal(size=(2, 3, *output)).astype(dtype)
        if last:
            array = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
        error = TOLERANCE[name_of(dtype)] * 4
        pairs = [
            (resample.interpolate(array, name, tuple(output), False, None, antialias),
             by_numpy.interpolate(array, name, tuple(output), False, None, antialias)),
            (resample.interpolate(grad, name, tuple(sizes), False, None, antialias, backward=True),
             by_numpy.interpolate_backward(grad, name, tuple(sizes), False, None, antialias)),
        ]  # fmt: skip
        for found, expected in pairs:
            assert found is not None
            assert found.dtype == dtype
            np.testing.assert_allclose(found.astype(float), expected.astype(float), error, error)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_bytes(mode: str, antialias: bool) -> None:
    rng = np.random.default_rng(3)
    for _ in range(6):
        sizes, output = rng.integers(1, 50, (2, 2)).tolist()
        array = rng.integers(0, 256, (2, 3, *sizes)).astype(np.uint8)
        numbers = (mode, tuple(output), False, None, antialias)
        expected = bytes_by_numpy.interpolate_bytes(array, *numbers)
        found = resample.interpolate_bytes(array, *numbers)
        if sizes != output:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_means_of_segments(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    error = TOLERANCE[name_of(dtype)]
    for spatial in (2, 3, 2, 3):
        sizes, output = rng.integers(1, 15, (2, spatial)).tolist()
        output[0] = 2
        array = rng.normal(size=(3, 2, *sizes)).astype(dtype)
        grad = rng.normal(size=(3, 2, *output)).astype(dtype)
        pairs = [
            (resample.segment_means(array, tuple(output)),
             numpy_adaptive.adaptive_avg_pool(array, tuple(output))),
            (resample.segment_means_backward(grad, tuple(sizes)),
             numpy_adaptive.adaptive_avg_pool_backward(grad, tuple(sizes))),
        ]  # fmt: skip
        for found, expected in pairs:
            assert found is not None
            np.testing.assert_allclose(found.astype(float), expected.astype(float), error, error)


def test_what_numpy_does() -> None:
    """No kernel for integers that are resized by weights, nor for nothing at all."""
    assert COPIES != PLAIN
    integers = np.ones((1, 1, 5), np.int64)
    assert resample.interpolate(integers, "linear", (9,), False, None, False) is None
    assert resample.segment_means(np.ones((0, 2, 5, 5)), (2, 2)) is None
