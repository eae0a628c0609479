"""Running sums, products and extremes against plain loops."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._ops.scans import launch as kernels

FLOATS = ["float16", ml_dtypes.bfloat16, "float32", "float64"]
INTEGERS = ["int8", "uint8", "int32", "int64", "bool"]
SHAPES = [((1,), 0), ((9,), 0), ((7, 13), 1), ((4, 8), 1), ((7, 13), 0), ((3, 5, 70), 1),
          ((2, 33, 256), 1), ((5, 0), 0)]  # fmt: skip
ADDED_IN = {"float16": np.float32, "bfloat16": np.float32, "float32": np.float64,
            "float64": np.float64}  # fmt: skip


def sample(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Small numbers; for floats, a few that are not finite."""
    generator = np.random.default_rng(len(shape))
    wide = generator.standard_normal(shape) * 2
    kind = np.dtype(dtype)
    if kind.kind in "fV":
        wide[generator.random(shape) < 0.02] = np.nan
        return wide.astype(kind)
    return np.round(np.abs(wide) if kind.kind in "ub" else wide).astype(kind)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize(("shape", "dim"), SHAPES, ids=str)
@pytest.mark.parametrize("multiply", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_accumulate(dtype: Any, shape: Any, dim: int, multiply: bool, back: bool) -> None:
    """One after the other in the wider type, each result rounded once: the same bits."""
    data = sample(shape, dtype)
    if not data.size:
        assert not kernels.fits(data, data.dtype)
        return
    result = data.dtype if data.dtype.kind in "fV" else np.dtype(np.int64)
    wide = data.astype(ADDED_IN.get(data.dtype.name, np.int64))
    ufunc = np.multiply if multiply else np.add
    if back:
        wide = np.flip(wide, dim)
    with np.errstate(all="ignore"):
        expected = ufunc.accumulate(wide, dim).astype(result)
    expected = np.flip(expected, dim) if back else expected
    found = kernels.accumulate(data, dim, result, multiply, back)
    assert found.dtype == expected.dtype
    assert np.array_equal(found.astype(wide.dtype), expected.astype(wide.dtype), equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("back", [False, True])
def test_a_long_row(dtype: str, back: bool) -> None:
    """Parts of a long row begin with the totals of those before them."""
    data = sample((300_007,), dtype)
    data = np.nan_to_num(data)
    result = np.dtype(np.float32 if dtype == "float32" else np.int64)
    wide = data.astype(np.float64 if dtype == "float32" else np.int64)
    expected = np.cumsum(wide[::-1])[::-1] if back else np.cumsum(wide)
    found = kernels.accumulate(data, 0, result, back=back)
    assert np.allclose(found, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize(("shape", "dim"), SHAPES[:-1], ids=str)
@pytest.mark.parametrize("least", [False, True])
def test_extremes(dtype: Any, shape: Any, dim: int, least: bool) -> None:
    """The best so far and the last index where it stands; NaN beats every number."""
    data = sample(shape, dtype)
    rows = np.moveaxis(data, dim, -1).reshape(-1, shape[dim])
    values, indices = np.empty(rows.shape, data.dtype), np.empty(rows.shape, np.int64)
    for row, line in enumerate(rows.astype(np.float64)):
        best, where = line[0], 0
        for place, here in enumerate(line):
            if (here <= best if least else here >= best) or np.isnan(here):
                best, where = here, place
            values[row, place], indices[row, place] = rows[row, where], where
    found = kernels.extremes(data, dim, least)
    moved = [np.moveaxis(part, dim, -1).reshape(rows.shape) for part in found]
    assert np.array_equal(moved[1], indices)
    assert moved[0].tobytes() == values.tobytes()


def test_strides() -> None:
    """Views are read as they are."""
    data = sample((40, 30), "float32")[::2, ::-1].T
    with np.errstate(all="ignore"):
        expected = np.cumsum(data.astype(np.float64), 0).astype(np.float32)
    found = kernels.accumulate(data, 0, data.dtype)
    assert np.array_equal(found, expected, equal_nan=True)
