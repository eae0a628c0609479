"""Matrix products by compiled kernels: against NumPy in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flambeau as torch

pytest.importorskip("llvmlite")

from flambeau._ops.products import blas, gemm
from flambeau._runtime import choice

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
TOLERANCES = {
    np.dtype(np.float32): 2e-6,
    np.dtype(np.float64): 1e-14,
    np.dtype(np.float16): 2e-3,
    BFLOAT16: 1e-2,
}
"""Error allowed per |a| @ |b|, which bounds what rounding can do."""
DTYPES = pytest.mark.parametrize("dtype", TOLERANCES, ids=str)


def matrix(rng: Any, shape: tuple[int, ...], dtype: Any, layout: int) -> np.ndarray:
    """Random numbers, row-major, transposed, with gaps in both dims, or within wider rows."""
    *batch, rows, columns = shape
    if layout == 1:
        return rng.standard_normal((*batch, columns, rows)).astype(dtype).swapaxes(-1, -2)
    if layout == 2:
        return rng.standard_normal((*batch, 2 * rows, 3 * columns)).astype(dtype)[..., ::2, ::3]
    if layout == 3:
        return rng.standard_normal((*batch, rows, columns + 5)).astype(dtype)[..., 2:-3]
    return rng.standard_normal(shape).astype(dtype)


def check(result: np.ndarray, left: np.ndarray, right: np.ndarray, added: Any = 0.0,
          alpha: float = 1.0) -> None:  # fmt: skip
    """`alpha * left @ right + added`, as exactly as the dtype allows."""
    wide, other = left.astype(np.float64), right.astype(np.float64)
    wanted = alpha * (wide @ other) + added
    scale = abs(alpha) * (abs(wide) @ abs(other)) + abs(np.asarray(added)) + 1e-30
    assert result.shape == wanted.shape
    assert result.flags.c_contiguous
    error = abs(result.astype(np.float64) - wanted) / scale
    assert not error.size or error.max() <= TOLERANCES[result.dtype]


@pytest.fixture(params=[True, False], ids=["direct", "packed"])
def path(request: Any, monkeypatch: Any) -> None:
    """Both ways to multiply, for any size."""
    monkeypatch.setattr(gemm, "DIRECT", 1 << 62 if request.param else -1)
    gemm.PLANS.clear()
    yield
    gemm.PLANS.clear()


SIZES = [(1, 1, 1), (5, 0, 3), (2, 1, 40), (6, 8, 16), (7, 9, 17), (13, 130, 5), (64, 33, 50),
         (12, 1100, 32), (31, 700, 19), (100, 400, 130)]  # fmt: skip


@DTYPES
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_matrices_of_any_layout(path: None, size: Any, dtype: Any):
    rng = np.random.default_rng(0)
    rows, depth, columns = size
    for layout in range(16):
        left = matrix(rng, (rows, depth), dtype, layout % 4)
        right = matrix(rng, (depth, columns), dtype, layout // 4)
        check(gemm.gemm(left, right), left, right)


def test_products_of_random_sizes(path: None):
    rng = np.random.default_rng(1)
    for _ in range(60):
        rows, depth, columns = (int(n) for n in rng.integers(0, 90, 3))
        left = matrix(rng, (rows, depth), np.float32, int(rng.integers(4)))
        right = matrix(rng, (depth, columns), np.float32, int(rng.integers(4)))
        check(gemm.gemm(left, right), left, right)


@DTYPES
@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((2, 3), (3,)), ((1, 3), (2, 1)), ((2, 1, 3), (2, 4, 1)), ((), (5,)),
     ((0,), (0,)), ((9,), ())],
    ids=str,
)  # fmt: skip
def test_batches_broadcast(path: None, left: Any, right: Any, dtype: Any):
    rng = np.random.default_rng(2)
    a = matrix(rng, (*left, 9, 20), dtype, 1)
    b = matrix(rng, (*right, 20, 18), dtype, 0)
    check(gemm.gemm(a, b), a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_right_operand_of_many_products(dtype: Any):
    rng = np.random.default_rng(12)
    for depth, columns in ((1, 1), (0, 4), (9, 17), (400, 33), (1100, 50)):
        for layout in range(4):
            right = matrix(rng, (depth, columns), dtype, layout)
            repeated = gemm.Repeated(right)
            bias = rng.standard_normal(columns).astype(dtype)
            for rows in (0, 1, 6, 32, 70):
                left = matrix(rng, (rows, depth), dtype, layout)
                check(repeated.after(left), left, right)
                check(repeated.after(left, gemm.Finish(bias=bias)), left, right, added=bias)


def test_batches_of_permuted_heads():
    rng = np.random.default_rng(3)
    heads = rng.standard_normal((2, 24, 3, 32)).astype(np.float32).transpose(0, 2, 1, 3)
    check(gemm.gemm(heads, heads.swapaxes(-1, -2)), heads, heads.swapaxes(-1, -2))


@DTYPES
def test_what_is_added(path: None, dtype: Any):
    rng = np.random.default_rng(4)
    for rows, depth, columns in [(7, 40, 33), (48, 900, 32), (1, 3, 1)]:
        left = matrix(rng, (rows, depth), dtype, 0)
        right = matrix(rng, (depth, columns), dtype, 1)
        per_column = rng.standard_normal(columns).astype(dtype)
        per_row = rng.standard_normal(rows).astype(dtype)
        other = rng.standard_normal((rows, columns)).astype(dtype)
        wide = other.astype(np.float64)
        check(gemm.gemm(left, right, gemm.Finish(bias=per_column)), left, right,
              per_column.astype(np.float64))  # fmt: skip
        check(gemm.gemm(left, right, gemm.Finish(bias=per_row, bias_of_row=True)), left, right,
              per_row.astype(np.float64)[:, None])  # fmt: skip
        check(gemm.gemm(left, right, gemm.finish_of(other, 2.0, 0.5)), left, right, 2 * wide, 0.5)
        spread = np.broadcast_to(other[:1], other.shape)
        check(gemm.gemm(left, right, gemm.finish_of(spread, 2.0, 1.0)), left, right, 2 * wide[:1])


def test_other_of_a_batch():
    rng = np.random.default_rng(5)
    left, right = matrix(rng, (4, 9, 20), np.float32, 0), matrix(rng, (4, 20, 17), np.float32, 1)
    other = matrix(rng, (4, 9, 17), np.float32, 1)
    result = gemm.gemm(left, right, gemm.finish_of(other, 0.5, 1.0))
    check(result, left, right, 0.5 * other.astype(np.float64))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinities_reach_only_their_row(path: None, value: float):
    rng = np.random.default_rng(7)
    left, right = matrix(rng, (20, 31), np.float32, 0), matrix(rng, (31, 37), np.float32, 0)
    clean = gemm.gemm(left, right)
    left[18, 3] = value
    result = gemm.gemm(left, right)
    assert not np.isfinite(result[18]).any()
    np.testing.assert_array_equal(np.delete(result, 18, 0), np.delete(clean, 18, 0))


def test_bits_do_not_depend_on_the_number_of_threads(path: None):
    rng = np.random.default_rng(8)
    left, right = matrix(rng, (300, 500), np.float32, 0), matrix(rng, (500, 200), np.float32, 1)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(gemm.gemm(left, right))
    finally:
        torch.set_num_threads(before)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_half_types_are_rounded_once():
    rng = np.random.default_rng(9)
    left, right = matrix(rng, (40, 1000), BFLOAT16, 0), matrix(rng, (1000, 24), BFLOAT16, 1)
    single = gemm.gemm(left, right, result=np.dtype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(gemm.gemm(left, right), single.astype(BFLOAT16))


# ---- the rows


@pytest.fixture
def always(monkeypatch: Any) -> None:
    """Every product is the kernels'."""
    for work in ("gemm", "gemm thin", "gemm halves"):
        monkeypatch.setitem(choice.LIMITS, work, 0)
    monkeypatch.setattr(blas, "SMALL", 0)


def test_addmm_in_place_and_out(always: None):
    rng = np.random.default_rng(10)
    data, left, right = (matrix(rng, s, np.float32, 0) for s in ((20, 30), (20, 25), (25, 30)))
    wide = data.astype(np.float64)
    total = torch.tensor(data)
    total.addmm_(torch.tensor(left), torch.tensor(right), beta=0.5, alpha=2.0)
    check(total.numpy(), left, right, 0.5 * wide, 2.0)
    target = torch.empty(20, 30)
    torch.mm(torch.tensor(left), torch.tensor(right), out=target)
    check(target.numpy(), left, right)


def test_addmm_without_beta_ignores_nan(always: None):
    left, right = torch.ones(8, 3), torch.ones(3, 20)
    result = torch.addmm(torch.full((20,), float("nan")), left, right, beta=0)
    assert result.tolist() == [[3.0] * 20] * 8


@pytest.mark.parametrize("shape", [(12, 30), (2, 7, 30), (2, 0, 30), (30,)], ids=str)
def test_linear_and_its_gradients(always: None, shape: Any):
    rng = np.random.default_rng(11)
    input = torch.tensor(rng.standard_normal(shape), requires_grad=True)
    weight = torch.tensor(rng.standard_normal((17, 30)), requires_grad=True)
    bias = torch.tensor(rng.standard_normal(17), requires_grad=True)
    result = torch.nn.functional.linear(input, weight, bias)
    x, w = input.detach().numpy(), weight.detach().numpy()
    np.testing.assert_allclose(result.detach().numpy(), x @ w.T + bias.detach().numpy(), 1e-12)
    grad = rng.standard_normal(result.shape)
    result.backward(torch.tensor(grad))
    flat = grad.reshape(-1, 17)
    np.testing.assert_allclose(input.grad.numpy(), grad @ w, 1e-11)
    np.testing.assert_allclose(weight.grad.numpy(), flat.T @ x.reshape(-1, 30), 1e-11, 1e-13)
    np.testing.assert_allclose(bias.grad.numpy(), flat.sum(0), 1e-11)
