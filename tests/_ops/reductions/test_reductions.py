"""Reductions: accuracy of long sums, NaN, ties, empty tensors, and names of nodes."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import flambeau as torch
from tests.random_seeds import generator


@pytest.mark.parametrize(
    ("shape", "dim"),
    [((1_000_000,), None), ((500_000, 2), 0), ((2_000, 500), 0), ((200, 50, 50), (0, 2))],
)
def test_long_sums_keep_single_precision(shape: tuple[int, ...], dim: object) -> None:
    data = np.random.default_rng(0).random(shape, dtype=np.float32)
    exact = data.astype(np.float64).sum(dim)
    error = np.abs(torch.from_numpy(data).sum(dim).numpy() - exact) / exact
    assert error.max() < 2e-7


@pytest.mark.parametrize("reduce", [torch.sum, torch.mean, torch.nansum])
@pytest.mark.parametrize(
    "shape", [(20_000, 4, 3), (9_000, 3, 7), (3_000, 7, 17), (4_000, 2, 63), (700, 3, 130)]
)
def test_short_runs_of_memory_keep_single_precision(
    shape: tuple[int, ...], reduce: Callable[..., torch.Tensor]
) -> None:
    """However many there are, shorter than a vector or longer: no lane adds up many numbers."""
    data = np.random.default_rng(0).random(shape, dtype=np.float32)
    exact = getattr(np, reduce.__name__)(data.astype(np.float64), (0, 2))
    error = np.abs(reduce(torch.from_numpy(data), (0, 2)).numpy() - exact) / exact
    assert error.max() < 2e-7


@pytest.mark.parametrize("length", [500, 1_500, 4_000, 40_000])
def test_rows_of_any_length_keep_single_precision(length: int) -> None:
    data = np.random.default_rng(0).random((400, length), dtype=np.float32)
    exact = data.astype(np.float64).sum(1)
    error = np.abs(torch.from_numpy(data).sum(1).numpy() - exact) / exact
    assert error.max() < 2e-7


def test_a_sum_that_was_computed_before_is_the_same_again() -> None:
    """The short way that the first one makes, over all threads, gives the same bits and layout."""
    rng = generator("sums again")
    threads = torch.get_num_threads()
    try:
        for _ in range(40):
            torch.set_num_threads(rng.choice([1, 2, 3]))
            call, shape = _drawn_sum(rng)
            data = torch.randn(shape).to(rng.choice([torch.float32, torch.float64, torch.half]))
            first, second = call(data), call(data)
            assert torch.equal(first, second)
            assert first.stride() == second.stride()
            assert first.dtype is second.dtype
            other = torch.randn(shape).to(data.dtype)
            assert torch.allclose(call(other), call(other.double()).to(data.dtype), rtol=1e-2)
    finally:
        torch.set_num_threads(threads)


def _drawn_sum(rng: random.Random) -> tuple[Callable[..., torch.Tensor], tuple[int, ...]]:
    """A sum or mean over some dims of an array that has long rows or columns."""
    long, short = rng.randint(30_000, 200_000), rng.randint(1, 12)
    shape = rng.choice([(long,), (short, long), (long, short), (short, long // 8, 4)])
    dims = tuple(sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape)))))
    reduce, keepdim = rng.choice([torch.sum, torch.mean]), rng.random() < 0.3
    return (lambda data: reduce(data.abs(), dims, keepdim)), shape


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


LAYOUTS = {
    "rows": lambda x: x,
    "turned": lambda x: x.transpose(0, -1),
    "steps": lambda x: x[..., ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_extremes_are_numpys_in_every_layout(layout: str, dim: int) -> None:
    x = LAYOUTS[layout](torch.from_numpy(np.random.default_rng(0).standard_normal((5, 8, 6))))
    data = x.numpy()
    values, indices = x.max(dim)
    assert np.array_equal(values.numpy(), data.max(dim))
    assert np.array_equal(indices.numpy(), data.argmax(dim))
    assert np.array_equal(x.amin(dim, keepdim=True).numpy(), data.min(dim, keepdims=True))
    assert np.array_equal(x.argmin(dim).numpy(), data.argmin(dim))
    assert np.array_equal(
        x.median(dim).values.numpy(), np.sort(data, dim).take((x.shape[dim] - 1) // 2, dim)
    )
    assert (x.max().item(), x.min().item()) == (data.max(), data.min())


def test_nan_is_every_extreme_and_the_median_unless_it_is_left_out() -> None:
    x = torch.tensor([[3.0, float("nan"), 1.0], [2.0, 5.0, 4.0]])
    assert all(np.isnan(y.item()) for y in (x.max(), x.min(), x.median(), x.quantile(0.5)))
    assert x.nanmedian().item() == 3
    assert x.nanquantile(0.5).item() == 3
    assert x[1].median().item() == 4
    assert np.isnan(torch.full((3,), float("nan")).nanmedian().item())
    with pytest.raises(RuntimeError, match="range of .nan, nan. is not finite"):
        torch.histc(x)


def test_histograms_are_numpys() -> None:
    data = np.random.default_rng(1).standard_normal(1000)
    counts, _ = np.histogram(data, 100)
    assert np.array_equal(torch.histc(torch.from_numpy(data)).numpy(), counts)
    counts, edges = np.histogram(data, 7, (-1, 2))
    assert np.array_equal(torch.histc(torch.from_numpy(data), 7, -1, 2).numpy(), counts)
    found = torch.histogram(torch.from_numpy(data), 7, range=(-1, 2)).bin_edges.numpy()
    np.testing.assert_allclose(found, edges, rtol=1e-15)


def test_equal_tensors_have_the_same_shape_and_no_nan() -> None:
    x = torch.tensor([1.0, 2.0, float("nan")])
    assert torch.equal(x[:2], x[:2].clone())
    assert torch.equal(torch.zeros(0, 3), torch.zeros(0, 3))
    assert not torch.equal(x, x)
    assert not torch.equal(x[:2], x[1:])
    assert not torch.equal(x[:2], x[:2].reshape(2, 1))


def test_dist_counts_the_type_of_a_tensor_without_dims_less() -> None:
    one = torch.tensor(1.0, dtype=torch.float64)
    many = torch.ones(2, 3)
    assert torch.dist(one, many).dtype is torch.dist(many, one).dtype is torch.float32
    assert torch.dist(one, many.bfloat16()).dtype is torch.bfloat16
    assert torch.dist(many, many.double()).dtype is torch.float64
    assert torch.dist(one, torch.tensor(1.0)).dtype is torch.float64
