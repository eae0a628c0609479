"""`torch.sparse.softmax`, `log_softmax`, `spdiags`, and other small functions against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="conformance compares with PyTorch itself")

import flambeau  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")

LIBRARIES = (torch, flambeau)


def drawn(library: Any, seed: int, dense_dims: int) -> Any:
    """A sparse tensor with some elements, some of them in one place."""
    chance = np.random.default_rng(seed)
    shape = tuple(int(n) for n in chance.integers(1, 5, 3))
    count = int(chance.integers(0, 8))
    places = np.array([chance.integers(0, n, count) for n in shape[: 3 - dense_dims]])
    values = chance.normal(0, 3, (count, *shape[3 - dense_dims :]))
    return library.sparse_coo_tensor(library.tensor(places), library.tensor(values), shape)


def weighted(result: Any, library: Any) -> Any:
    weights = library.arange(1.0, 1 + result.numel(), dtype=library.float64)
    return (result * weights.reshape(result.shape)).sum()


def by_dense_ones(name: str, seed: int, dense_dims: int, dim: int) -> Any:
    """The gradient, from a dense tensor that is minus infinity where nothing is. That of sparse
    ones is wrong in PyTorch for some dims: it does not sum to zero."""
    x = drawn(torch, seed, dense_dims).coalesce()
    ones = torch.sparse_coo_tensor(x.indices(), torch.ones_like(x.values()), x.shape)
    is_there = ones.to_dense() > 0
    dense = x.to_dense().requires_grad_()
    result = getattr(torch, name)(dense.masked_fill(~is_there, -float("inf")), dim)
    weighted(result.masked_fill(~is_there, 0), torch).backward()
    return dense.grad.nan_to_num(0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dense_dims", [0, 1, 2])
def test_softmax(name: str, dense_dims: int) -> None:
    for seed in range(20):
        for dim in range(-3, 3):
            expected = getattr(torch.sparse, name)(drawn(torch, seed, dense_dims), dim)
            x = drawn(flambeau, seed, dense_dims).requires_grad_()
            result = getattr(flambeau.sparse, name)(x, dim)
            weighted(result.to_dense(), flambeau).backward()
            result = result.detach()
            same(result.indices(), expected.indices(), (seed, dim))
            same(result.values(), expected.values(), (seed, dim))
            same(x.grad.to_dense(), by_dense_ones(name, seed, dense_dims, dim), (seed, dim))


def same(actual: Any, expected: Any, about: Any) -> None:
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), atol=1e-9, err_msg=str(about))


def test_softmax_in_another_type() -> None:
    for library in LIBRARIES:
        x = library.tensor([[0.0, 1.0], [2.0, 3.0]]).to_sparse()
        assert library.sparse.softmax(x, 1, dtype=library.float64).dtype is library.float64
        with pytest.raises(NotImplementedError, match="\"softmax\" not implemented for 'Long'"):
            library.sparse.softmax(x.long(), 1)
        with pytest.raises(NotImplementedError, match="Could not run 'aten::_sparse_softmax'"):
            library.sparse.softmax(x.to_dense(), 1)


DIAGONALS: list[tuple[Any, Any, Any]] = [
    ((3, 3), [0, -1, 2], (3, 3)), ((2, 3), [0, 1], (3, 4)), ((1, 3), [1], (3, 3)),
    ((3,), 1, (3, 3)), ((1, 5), [7], (3, 3)), ((2, 3), [0, 0], (3, 3)), ((2, 3), [0], (3, 3)),
    ((1, 3), [0.0], (3, 3)), ((1, 3), [0], (3, 3, 3)), ((2, 5), [-2, 1], (4, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(DIAGONALS)))
def test_diagonals(case: int) -> None:
    size, offsets, shape = DIAGONALS[case]
    found = []
    for library in LIBRARIES:
        values = library.arange(1.0, 1 + np.prod(size)).reshape(size)
        try:
            result = library.sparse.spdiags(values, library.tensor(offsets), shape).to_dense()
            found.append(result.tolist())
        except RuntimeError as error:
            found.append(str(error).splitlines()[0])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["spmm", "dsmm"])
def test_products(name: str) -> None:
    for library in LIBRARIES:
        left, right = library.tensor([[0.0, 2.0], [1.0, 0.0]]), library.tensor([[1.0], [3.0]])
        for one in (left, left.to_sparse()):
            assert getattr(library, name)(one, right).tolist() == [[6.0], [1.0]]


def test_other_names() -> None:
    for library in LIBRARIES:
        x = library.arange(8.0).reshape(1, 4, 2)
        shuffled = library.native_channel_shuffle(x, 2)
        assert shuffled.tolist() == [[[0, 1], [4, 5], [2, 3], [6, 7]]]
        assert library.nn.functional.native_channel_shuffle(x, 2).equal(shuffled)
        assert library.special.logsumexp(x, (1, 2)).equal(library.logsumexp(x, (1, 2)))
