"""A matrix times a vector by compiled kernels: against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch

pytest.importorskip("llvmlite")

from flambeau._ops.products import blas
from flambeau._ops.products.gemv import gemv
from flambeau._runtime import choice


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [(1, 1), (1, 500), (300, 1), (7, 33), (65, 64), (400, 700)])
@pytest.mark.parametrize("layout", ["rows", "columns", "wide rows", "wide columns"])
def test_any_layout(size: Any, dtype: Any, threads: int, layout: str) -> None:
    rng = np.random.default_rng(0)
    count, depth = size
    wide = rng.standard_normal((count + 3, depth + 5)).astype(dtype)
    matrix = wide[:count, 2 : depth + 2] if "wide" in layout else wide[:count, :depth].copy()
    if "columns" in layout:
        turned = np.ascontiguousarray(wide.T)
        matrix = turned.T[:count, 2 : depth + 2]
    x = rng.standard_normal(2 * depth).astype(dtype)[::2]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = gemv(matrix, x)
    finally:
        torch.set_num_threads(before)
    bound = abs(matrix.astype(np.float64)) @ abs(x.astype(np.float64))
    error = abs(found - matrix.astype(np.float64) @ x)
    assert found.dtype == dtype
    assert (error <= 4 * np.finfo(dtype).eps * bound).all()


def test_gaps_and_negative_steps_are_left_to_numpy() -> None:
    x = np.ones(4, np.float32)
    assert gemv(np.ones((4, 8), np.float32)[:, ::2], x) is None
    assert gemv(np.ones((4, 4), np.float32)[:, ::-1], x) is None
    assert gemv(np.lib.stride_tricks.as_strided(x, (2, 4), (0, 4)), x) is None


@pytest.mark.parametrize("limit", [0, choice.NEVER])
def test_operators_that_multiply_by_a_vector(monkeypatch: Any, limit: int) -> None:
    monkeypatch.setitem(choice.LIMITS, "gemv", limit)
    rng = np.random.default_rng(1)
    data, x = rng.standard_normal((40, 50)), rng.standard_normal(50)
    matrix, vector = torch.from_numpy(data), torch.from_numpy(x)
    wanted = data @ x
    for found in (matrix.mv(vector), matrix @ vector, vector @ matrix.t(),
                  torch.nn.functional.linear(vector, matrix)):  # fmt: skip
        assert found.shape == (40,)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
    np.testing.assert_allclose(blas.multiply(x[None], data.T), wanted[None], rtol=1e-12)
    np.testing.assert_allclose(blas.multiply(data, x[:, None]), wanted[:, None], rtol=1e-12)
    empty = torch.ones(3, 0, dtype=torch.float64) @ torch.ones(0, dtype=torch.float64)
    assert empty.tolist() == [0, 0, 0]
