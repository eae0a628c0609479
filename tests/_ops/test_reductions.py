"""Reductions: accuracy of long sums, NaN, ties, empty tensors, and names of nodes."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize(
    ("shape", "dim"),
    [((1_000_000,), None), ((500_000, 2), 0), ((2_000, 500), 0), ((200, 50, 50), (0, 2))],
)
def test_long_sums_keep_single_precision(shape: tuple[int, ...], dim: object) -> None:
    data = np.random.default_rng(0).random(shape, dtype=np.float32)
    exact = data.astype(np.float64).sum(dim)
    error = np.abs(torch.from_numpy(data).sum(dim).numpy() - exact) / exact
    assert error.max() < 2e-7


def test_the_node_is_named_after_the_overload() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    names = [
        type(y.grad_fn).__name__
        for y in (x.sum(), x.sum(0), x.mean(), x.mean(1), x.prod(), x.prod(0), x.max())
    ]
    assert names == [
        "SumBackward0", "SumBackward1", "MeanBackward0", "MeanBackward1", "ProdBackward0",
        "ProdBackward1", "MaxBackward1",
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_nan_is_sorted_last_and_ties_keep_their_order(dtype: torch.dtype) -> None:
    x = torch.tensor([2.0, float("nan"), -0.0, 0.0, float("inf"), -3.0, 2.0], dtype=dtype)
    assert torch.sort(x).indices.tolist() == [5, 2, 3, 0, 6, 4, 1]
    assert torch.sort(x, descending=True).indices.tolist() == [1, 4, 0, 6, 2, 3, 5]
    assert torch.topk(x, 1).indices.tolist() == [1]
    assert x.argmax().item() == 1


def test_wide_integers_are_ordered_exactly() -> None:
    x = torch.tensor([2**62, 2**62 - 1, -(2**63), 5])
    assert torch.sort(x).indices.tolist() == [2, 3, 1, 0]
    assert torch.sort(x, descending=True).indices.tolist() == [0, 1, 3, 2]


def test_empty_reductions() -> None:
    empty = torch.zeros(0, 3)
    assert empty.sum().item() == 0
    assert empty.prod().item() == 1
    assert np.isnan(empty.mean().item())
    with pytest.raises(RuntimeError, match=r"max\(\): Expected reduction dim to be specified"):
        empty.max()
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        empty.max(0)


def test_product_of_zeros_has_the_gradient_of_the_other_factors() -> None:
    x = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == [0.0, 6.0, 0.0]


def test_running_products_with_zeros_have_gradients() -> None:
    x = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.cumprod(0).sum().backward()
    assert x.grad.tolist() == [1.0, 8.0, 0.0]


def test_the_larger_of_two_integers_without_dims() -> None:
    one, other = torch.tensor(3, dtype=torch.int32), torch.tensor(6, dtype=torch.int32)
    assert torch.max(one, other).item() == one.max(other).item() == 6
    assert torch.min(one, other).item() == one.min(other).item() == 3
    assert torch.max(torch.ones(2, 3), 1).indices.tolist() == [0, 0]
