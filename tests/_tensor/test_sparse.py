"""Sparse tensors against dense ones: what a sparse tensor stands for is its dense copy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import flambeau as torch

SEEDS = range(20)


def draw(seed: int, size: tuple[int, ...] = (4, 3, 2), sparse_dim: int | None = None) -> Any:
    """A random sparse tensor of float64, whose places may repeat."""
    rng = np.random.default_rng(seed)
    sparse_dim = int(rng.integers(1, len(size) + 1)) if sparse_dim is None else sparse_dim
    nnz = int(rng.integers(0, 9))
    indices = np.array([rng.integers(0, n, nnz) for n in size[:sparse_dim]])
    values = rng.normal(size=(nnz, *size[sparse_dim:]))
    return torch.sparse_coo_tensor(torch.tensor(indices), torch.tensor(values), size)


def dense(tensor: Any) -> np.ndarray:
    """The elements, added up by NumPy."""
    result = np.zeros(tuple(tensor.shape))
    np.add.at(result, tuple(tensor._indices().numpy()), tensor._values().detach().numpy())
    return result


def assert_stands_for(tensor: Any, expected: np.ndarray) -> None:
    """Whether a sparse tensor has these elements, and says the truth about being coalesced."""
    assert tensor.layout is torch.sparse_coo
    np.testing.assert_allclose(dense(tensor), expected, atol=1e-12)
    np.testing.assert_allclose(tensor.to_dense().detach().numpy(), expected, atol=1e-12)
    if tensor.is_coalesced():
        places = list(zip(*tensor.indices().tolist(), strict=True))
        assert places == sorted(set(places))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tensor_is_its_dense_copy(seed: int) -> None:
    tensor = draw(seed)
    expected = dense(tensor)
    assert_stands_for(tensor, expected)
    assert_stands_for(tensor.coalesce(), expected)
    assert tensor.coalesce().is_coalesced()
    for dim in range(1, 4):
        again = torch.tensor(expected).to_sparse(dim)
        assert again.is_coalesced()
        assert (again.sparse_dim(), again.dense_dim()) == (dim, 3 - dim)
        assert_stands_for(again, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_arithmetic(seed: int) -> None:
    dim = seed % 3 + 1
    first, second = draw(seed, sparse_dim=dim), draw(seed + 100, sparse_dim=dim)
    a, b = dense(first), dense(second)
    assert_stands_for(first + second, a + b)
    assert_stands_for(first.coalesce() - second.coalesce(), a - b)
    assert_stands_for(first * second, a * b)
    assert_stands_for(first.coalesce() * second.coalesce(), a * b)
    assert_stands_for(first * torch.tensor(b), a * b)
    assert_stands_for(-first / 4 * 3, -a / 4 * 3)
    assert_stands_for(first**2, a**2)
    assert_stands_for(first.sin(), np.sin(a))
    assert_stands_for(first.clone().add_(second, alpha=-2), a - 2 * b)
    np.testing.assert_allclose((torch.tensor(a) + second).numpy(), a + b)
    np.testing.assert_allclose(torch.tensor(a).add_(second, alpha=3).numpy(), a + 3 * b)
    np.testing.assert_allclose(torch.tensor(a).sub_(second).numpy(), a - b)


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_shapes_and_masks(seed: int) -> None:
    tensor = draw(seed)
    expected = dense(tensor)
    for dim in (None, 0, 1, -1, (0, 2), (0, 1, 2)):
        found = torch.sparse.sum(tensor, dim)
        found = found.to_dense() if found.is_sparse else found
        np.testing.assert_allclose(found.numpy(), expected.sum(dim), atol=1e-12)
    flat = draw(seed, (4, 5), 2)
    assert_stands_for(flat.t(), dense(flat).T)
    assert_stands_for(flat.unsqueeze(0), dense(flat)[None])
    assert_stands_for(torch.cat([flat, flat], 1), np.concatenate([dense(flat)] * 2, 1))
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(4, 5))
    masked = torch.tensor(values).sparse_mask(flat.coalesce())
    assert_stands_for(masked, np.where(dense(flat) != 0, values, 0))


@pytest.mark.parametrize("seed", SEEDS)
def test_products(seed: int) -> None:
    left, right = draw(seed, (4, 5), 2), draw(seed + 100, (5, 3), 2)
    a, b = dense(left), dense(right)
    np.testing.assert_allclose((left @ torch.tensor(b)).numpy(), a @ b, atol=1e-12)
    np.testing.assert_allclose((torch.tensor(a) @ right).numpy(), a @ b, atol=1e-12)
    np.testing.assert_allclose(left.mv(torch.tensor(b[:, 0])).numpy(), a @ b[:, 0], atol=1e-12)
    assert_stands_for(torch.sparse.mm(left, right), a @ b)


# ---- gradients: those of the dense copy, read at the places


def gradients(tensor: Any, factor: Any) -> tuple[Any, Any]:
    leaf = tensor.detach().requires_grad_()
    factor = factor.clone().requires_grad_()
    loss = (torch.sparse.mm(leaf * 2 + leaf, factor) ** 2).sum() + leaf.to_dense().sin().sum()
    loss.backward()
    return leaf.grad, factor.grad


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients(seed: int) -> None:
    tensor = draw(seed, (4, 3), 2)
    factor = torch.tensor(np.random.default_rng(seed).normal(size=(3, 2)))
    of_sparse, of_factor = gradients(tensor, factor)
    whole = tensor.to_dense().requires_grad_()
    other = factor.clone().requires_grad_()
    (((whole * 3) @ other) ** 2).sum().add(whole.sin().sum()).backward()
    np.testing.assert_allclose(of_factor.numpy(), other.grad.numpy(), atol=1e-10)
    present = dense(tensor) != 0
    assert of_sparse.is_sparse
    np.testing.assert_allclose(dense(of_sparse), np.where(present, whole.grad.numpy(), 0))


def test_gradients_of_values() -> None:
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    tensor = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 2]], values, (2, 3))
    assert "SparseCooTensor" in repr(tensor)
    (tensor.to_dense() ** 2).sum().backward()
    assert values.grad.tolist() == [6.0, 6.0, 6.0]
    (grad,) = torch.autograd.grad((tensor.to_dense() ** 2).sum(), values)
    assert grad.tolist() == [6.0, 6.0, 6.0]


def test_an_embedding_has_one_entry_for_each_row_looked_up() -> None:
    weight = torch.ones(5, 2, requires_grad=True)
    rows = torch.tensor([[4, 0], [4, 2]])
    torch.nn.functional.embedding(rows, weight, padding_idx=0, sparse=True).sum().backward()
    assert weight.grad._indices().tolist() == [[4, 4, 2]]
    torch.nn.functional.embedding(rows, weight).sum().backward()
    assert not weight.grad.is_sparse
    assert weight.grad.tolist() == [[1, 1], [0, 0], [2, 2], [0, 0], [4, 4]]


# ---- errors


def test_dense_operators_refuse_by_name() -> None:
    tensor = draw(1)
    for call, name in ((lambda: tensor.exp(), "exp"), (lambda: torch.softmax(tensor, 0), "softmax"),
                       (lambda: torch.ones(2, 2) == tensor, "eq.Tensor"),
                       (lambda: tensor.clamp_(0), "clamp")):  # fmt: skip
        with pytest.raises(NotImplementedError, match=f"'aten::_?{name}.*'SparseCPU'"):
            call()
    with pytest.raises(NotImplementedError, match="stack"):
        torch.stack([tensor, tensor])
    with pytest.raises(RuntimeError, match=r"Use add\(dense, sparse\) instead"):
        tensor + torch.ones(4, 3, 2)


def test_results_do_not_go_to_out() -> None:
    flat, out = draw(1, (2, 3), 2), torch.zeros(2, 2, dtype=torch.float64)
    with pytest.raises(NotImplementedError, match=r"aten::mm\.out"):
        torch.mm(flat, torch.ones(3, 2, dtype=torch.float64), out=out)
    assert out.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("indices", [[[0, 3]], [[0, -1]]])
def test_places_out_of_range_are_found_when_used(indices: Any) -> None:
    tensor = torch.sparse_coo_tensor(indices, [1.0, 2.0], (3,))
    for use in (tensor.to_dense, tensor.coalesce, lambda: torch.ones(3) + tensor,
                lambda: tensor + tensor, lambda: torch.ones(3).sparse_mask(tensor)):  # fmt: skip
        with pytest.raises(RuntimeError, match="found negative index|is inconsistent with indices"):
            use()
    with pytest.raises(RuntimeError, match="found negative index|is inconsistent with indices"):
        torch.sparse_coo_tensor(indices, [1.0, 2.0], (3,), check_invariants=True)


def test_an_in_place_write_to_a_leaf_is_refused() -> None:
    leaf = draw(1).requires_grad_()
    for write in (lambda: leaf.mul_(2), lambda: leaf.add_(leaf.detach()), leaf.zero_):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            write()


def test_copies() -> None:
    tensor = torch.eye(3).to_sparse()
    for made in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), tensor.clone()):
        made.mul_(0)
        assert np.abs(dense(tensor)).sum() > 0
        assert made.shape == tensor.shape
    assert tensor.detach()._values().data_ptr() == tensor._values().data_ptr()


def test_an_accumulated_gradient_is_nobody_elses() -> None:
    weight = torch.ones(3, 2, requires_grad=True)
    out = torch.nn.functional.embedding(torch.tensor([1, 2]), weight, sparse=True)
    seed = torch.ones(2, 2)
    out.backward(seed)
    seed.zero_()
    assert weight.grad.to_dense().sum().item() == 4


@pytest.mark.parametrize("seed", SEEDS)
def test_iterating_gives_the_parts_of_the_first_dim(seed: int) -> None:
    tensor = draw(seed).requires_grad_()
    parts = list(tensor)
    assert len(parts) == 4
    for part, expected in zip(parts, dense(tensor), strict=True):
        found = part.to_dense() if part.is_sparse else part
        np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-12)
    loss = sum((k + 1) * torch.sparse.sum(p) if p.is_sparse else (k + 1) * p.sum()
               for k, p in enumerate(parts))  # fmt: skip
    loss.backward()
    slope = tensor.grad.to_dense() if tensor.grad.is_sparse else tensor.grad
    for k, row in enumerate(slope):
        assert set(row.flatten().tolist()) <= {0.0, k + 1.0}
    assert slope.any() or not tensor._nnz()


def test_rows_of_a_compressed_matrix_and_columns_of_a_sparse_one() -> None:
    matrix = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    for rows in (list(matrix.to_sparse_csr()), matrix.to_sparse().t().unbind(1)):
        assert [row.layout for row in rows] == [torch.sparse_coo] * 2
        assert [row.to_dense().tolist() for row in rows] == matrix.tolist()
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        list(torch.tensor(1.0).to_sparse())
