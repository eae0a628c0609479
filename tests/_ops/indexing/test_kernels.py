"""Reading and writing by position against NumPy, one value after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._ops.indexing import launch as kernels
from flambeau._runtime import choice

DTYPES = ["float32", "float64", "int8", "uint8", "int32", "int64"]
INDEX_TYPES = [np.int32, np.int64]
SHAPES = [((5,), 0), ((4, 3), 0), ((4, 3), 1), ((3, 7, 5), 1), ((2, 40, 200), 1), ((30, 600), 0)]
OPS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays too."""
    for work in ("gather", "gather rows", "scatter", "scatter rows"):
        monkeypatch.setitem(choice.LIMITS, work, 0)


def sample(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Numbers whose sums and products stay exact."""
    return np.random.default_rng(seed).integers(0, 4, shape).astype(dtype)


def places(shape: tuple[int, ...], size: int, kind: Any, seed: int = 1) -> np.ndarray:
    """Positions, most of which occur more than once."""
    return np.random.default_rng(seed).integers(0, size, shape).astype(kind)


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "bool", "complex64"])
@pytest.mark.parametrize("kind", INDEX_TYPES)
@pytest.mark.parametrize(("shape", "dim"), SHAPES, ids=str)
def test_reading(dtype: str, kind: Any, shape: Any, dim: int) -> None:
    """Rows and elements."""
    data = sample(shape, dtype)
    index = places((3, 6), shape[dim], kind)
    assert np.array_equal(kernels.read_rows(data, dim, index), np.take(data, index, dim))
    each = list(shape)
    each[dim] = 9
    index = places(tuple(each), shape[dim], kind)
    expected = np.take_along_axis(data, index.astype(np.int64), dim)
    assert np.array_equal(kernels.read_elements(data, dim, index), expected)


def test_reading_from_the_end() -> None:
    """Negative positions count from the end only where that is asked for."""
    data = sample((5, 4), "float32")
    index = np.array([-1, 0, -5])
    assert np.array_equal(kernels.read_rows(data, 0, index, True), data[index])
    assert kernels.read_rows(data, 0, index) is None


@pytest.mark.parametrize("wrong", [-1, 5, -(1 << 62), (1 << 63) - 1])
@pytest.mark.parametrize("inner", [1, 3, 300])
def test_positions_out_of_range(wrong: int, inner: int) -> None:
    """Nothing is given and nothing is written."""
    data = sample((5, inner), "float32")
    before = data.copy()
    index = np.array([0, 1, 2, 3, 4, 0, 1, wrong])
    assert kernels.read_rows(data, 0, index) is None
    assert not kernels.write_rows(data, 0, index, sample((8, inner), "float32"), "add")
    each = np.repeat(index[:, None], inner, 1)
    assert kernels.read_elements(data, 0, each) is None
    assert not kernels.write_elements(data, 0, each, sample((8, inner), "float32"), "set")
    assert np.array_equal(data, before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", INDEX_TYPES)
@pytest.mark.parametrize(("shape", "dim"), SHAPES, ids=str)
@pytest.mark.parametrize("op", OPS)
def test_writing(dtype: str, kind: Any, shape: Any, dim: int, op: str) -> None:
    """Rows and elements meet what is there, one after the other."""
    counted = [*shape]
    counted[dim] = 11
    source = sample(tuple(counted), dtype, 2)
    index = places((11,), shape[dim], kind)
    found, expected = sample(shape, dtype), sample(shape, dtype)
    assert kernels.write_rows(found, dim, index, source, op)
    key = (slice(None),) * dim
    OPS[op].at(expected, (*key, index), source)
    assert np.array_equal(found, expected)

    each = places(tuple(counted), shape[dim], kind, 3)
    assert kernels.write_elements(found, dim, each, source, op)
    where: list[Any] = list(np.indices(each.shape))
    where[dim] = each
    OPS[op].at(expected, tuple(where), source)
    assert np.array_equal(found, expected)


def test_the_last_value_stays() -> None:
    """Of several values that are written to one place."""
    data = np.zeros((3, 2), np.float32)
    source = np.arange(8, dtype=np.float32).reshape(4, 2)
    assert kernels.write_rows(data, 0, np.array([1, 0, 1, 0]), source, "set")
    assert np.array_equal(data, [[6, 7], [4, 5], [0, 0]])


@pytest.mark.parametrize("width", [1, 5, 64, 256])
def test_a_position_left_out(width: int) -> None:
    """`skip` names the position that gets nothing."""
    index = places((400,), 7, np.int64)
    source = sample((400, width), "float32")
    data = np.zeros((7, width), np.float32)
    assert kernels.write_rows(data, 0, index, source, "add", skip=3)
    expected = np.zeros((7, width))
    np.add.at(expected, index[index != 3], source[index != 3])
    assert np.array_equal(data, expected)


def test_nan_wins() -> None:
    """Maxima and minima of NaN are NaN, whichever side it is on."""
    for op in ("max", "min"):
        data = np.array([np.nan, 1.0, 2.0], np.float32)
        source = np.array([5.0, np.nan, 3.0], np.float32)
        assert kernels.write_elements(data, 0, np.array([0, 1, 2]), source, op)
        assert np.isnan(data[:2]).all()
        assert not np.isnan(data[2])


def test_sums_do_not_depend_on_threads() -> None:
    """Every place adds up its values in their order."""
    generator = np.random.default_rng(5)
    index = generator.integers(0, 50, 3000)
    source = generator.standard_normal((3000, 130)).astype(np.float32)
    found = np.zeros((50, 130), np.float32)
    assert kernels.write_rows(found, 0, index, source, "add")
    expected = np.zeros((50, 130), np.float32)
    for place, row in zip(index, source, strict=True):
        expected[place] += row
    assert found.tobytes() == expected.tobytes()
