"""Sparse tensors beside PyTorch's: parts, values, texts, gradients, files and errors."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

LIBRARIES = (flambeau, reference)
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state"),
]
DTYPES = ("float32", "float64", "int64", "int32", "complex64", "bool", "float16", "bfloat16")


class Draw:
    """Random sparse tensors, the same in both libraries."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def size(self, dims: int) -> tuple[int, ...]:
        return tuple(int(n) for n in self.rng.integers(1, 5, dims))

    def parts(self, size: tuple[int, ...], sparse_dim: int, nnz: int) -> Any:
        indices = [self.rng.integers(0, n, nnz) for n in size[:sparse_dim]]
        values = self.rng.normal(size=(nnz, *size[sparse_dim:])).round(2)
        return np.array(indices, np.int64).reshape(sparse_dim, nnz), values

    def pair(self, size: Any = None, sparse_dim: int | None = None, dtype: str = "float64",
             nnz: int | None = None, coalesce: bool = False) -> list[Any]:  # fmt: skip
        size = self.size(int(self.rng.integers(1, 4))) if size is None else size
        sparse_dim = int(self.rng.integers(1, len(size) + 1)) if sparse_dim is None else sparse_dim
        nnz = int(self.rng.integers(0, 7)) if nnz is None else nnz
        indices, values = self.parts(size, sparse_dim, nnz)
        made = []
        for library in LIBRARIES:
            entries = (library.tensor(values) * 3).to(getattr(library, dtype))
            tensor = library.sparse_coo_tensor(library.tensor(indices), entries, size)
            made.append(tensor.coalesce() if coalesce else tensor)
        return made


def plain(value: Any) -> Any:
    """What can be compared of a result of either library."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if not hasattr(value, "layout"):
        return value
    if value.is_sparse:
        parts = plain(value._indices()), plain(value._values())
        return [*parts, tuple(value.size()), value.is_coalesced()]
    dense = value.detach()
    is_half = dense.dtype.is_floating_point and dense.dtype.itemsize < 4
    return [str(dense.dtype), (dense.float() if is_half else dense).numpy()]


def assert_same(ours: Any, theirs: Any, rtol: float = 1e-12) -> None:
    """Compare nested lists of arrays and plain values."""
    if isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other, rtol)
    elif isinstance(ours, np.ndarray):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)
    else:
        assert ours == theirs


def outcome(function: Callable[..., Any], library: Any, *args: Any) -> Any:
    """The result, or the kind and text of the error up to torch's explanations."""
    try:
        return plain(function(library, *args))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        kind = next(k for k in (NotImplementedError, RuntimeError, TypeError, ValueError,
                                IndexError) if isinstance(error, k))  # fmt: skip
        text = str(error).partition("\n")[0].partition(" This could be because")[0]
        return [kind.__name__, text.partition(" Tensor.to_dense() makes")[0]]


def compare(function: Callable[..., Any], *pairs: Any, rtol: float = 1e-12) -> None:
    """Call with the tensors of either library and compare what comes out."""
    ours, theirs = (
        outcome(function, library, *(pair[i] for pair in pairs))
        for i, library in enumerate(LIBRARIES)
    )
    assert_same(ours, theirs, rtol)


# ---- making

MAKING = {
    "no size": lambda t: t.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0]),
    "float indices": lambda t: t.sparse_coo_tensor(t.tensor([[0.0, 1.5]]), [1, 2]),
    "scalar": lambda t: t.sparse_coo_tensor([[2]], t.tensor(5.0)),
    "size alone": lambda t: t.sparse_coo_tensor((2, 3)),
    "size by name": lambda t: t.sparse_coo_tensor(size=(2, 3), dtype=t.int8),
    "dtype": lambda t: t.sparse_coo_tensor([[0]], [1], (3,), dtype=t.float64),
    "no dims": lambda t: t.sparse_coo_tensor(t.zeros(0, 2).long(), [3.0, 4.0], ()).to_dense(),
    "one-dim indices": lambda t: t.sparse_coo_tensor([0, 1], [1.0, 2.0]),
    "three-dim indices": lambda t: t.sparse_coo_tensor([[[0, 1]]], [1.0, 2.0]),
    "other counts": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0], (3,)),
    "too many sizes": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 4)),
    "dense sizes": lambda t: t.sparse_coo_tensor([[0, 1]], t.ones(2, 3), (3, 4)),
    "negative": lambda t: t.sparse_coo_tensor([[0, -1]], [1.0, 2.0]),
    "negative, size": lambda t: t.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)),
    "negative, checked": lambda t: t.sparse_coo_tensor(
        [[0, -1]], [1.0, 2.0], (3,), check_invariants=True
    ),
    "too large, checked": lambda t: t.sparse_coo_tensor(
        [[0, 5]], [1.0, 2.0], (3,), check_invariants=True
    ),
    "not coalesced, checked": lambda t: t.sparse_coo_tensor(
        [[1, 0]], [1.0, 2.0], (3,), is_coalesced=True, check_invariants=True
    ),
    "said to be coalesced": lambda t: t.sparse_coo_tensor([[1, 0]], [1.0, 2.0], is_coalesced=True),
    "integers": lambda t: t.sparse_coo_tensor([[0]], [1], requires_grad=True),
    "overflow": lambda t: t.sparse_coo_tensor((2**40, 2**40)),
    "zeros": lambda t: t.zeros(3, 2, layout=t.sparse_coo, dtype=t.float64),
    "empty": lambda t: t.empty((3,), layout=t.sparse_coo),
    "new_zeros": lambda t: t.eye(2).to_sparse().new_zeros(3, 4),
    "zeros_like": lambda t: t.zeros_like(t.ones(2, 3).to_sparse(1)),
    "indices": lambda t: t.sparse_coo_tensor([[0, 0]], [1.0, 2.0]).indices(),
    "values": lambda t: t.sparse_coo_tensor([[0, 0]], [1.0, 2.0]).values(),
    "of dense": lambda t: t.ones(2).coalesce(),
    "nnz of dense": lambda t: t.ones(2)._nnz(),
    "to_sparse(0)": lambda t: t.ones(2).to_sparse(0),
    "to_sparse(3)": lambda t: t.ones(2, 2).to_sparse(3),
    "number": lambda t: t.tensor(3.0).to_sparse(),
    "sparse again": lambda t: t.eye(2).to_sparse().to_sparse(1),
}


@pytest.mark.parametrize("name", MAKING)
def test_making(name: str) -> None:
    compare(lambda library: MAKING[name](library))


def test_checks_for_a_while() -> None:
    def inside(library: Any) -> Any:
        check = library.sparse.check_sparse_tensor_invariants
        before = check.is_enabled()
        try:
            with check():
                library.sparse_coo_tensor([[5]], [1.0], (3,))
        finally:
            assert check.is_enabled() is before

    compare(inside)


@pytest.mark.parametrize("seed", range(20))
def test_to_sparse_and_back(seed: int) -> None:
    draw = Draw(seed)
    data = draw.rng.integers(0, 2, draw.size(int(draw.rng.integers(1, 4)))) * 1.5
    for dims in ((), *((dim,) for dim in range(1, data.ndim + 1))):
        compare(lambda library, d=dims: library.tensor(data).to_sparse(*d))
        compare(lambda library, d=dims: library.tensor(data).to_sparse(*d).to_dense())


# ---- operators

UNARY = {
    "clone": lambda t, s: s.clone(), "coalesce": lambda t, s: s.coalesce(),
    "to_dense": lambda t, s: s.to_dense(), "detach": lambda t, s: s.detach(),
    "neg": lambda t, s: -s, "abs": lambda t, s: t.abs(s), "relu": lambda t, s: t.relu(s),
    "times": lambda t, s: s * 2.5, "times from the left": lambda t, s: 3 * s,
    "through": lambda t, s: s / 2, "power": lambda t, s: s**2, "square": lambda t, s: s.square(),
    "power 0": lambda t, s: s**0, "sin": lambda t, s: s.sin(), "sign": lambda t, s: s.sign(),
    "isnan": lambda t, s: s.isnan(), "zero_": lambda t, s: s.clone().zero_(),
    "neg_": lambda t, s: s.clone().neg_(), "mul_": lambda t, s: s.clone().mul_(2),
    "div_": lambda t, s: s.clone().div_(4), "sin_": lambda t, s: s.clone().sin_(),
    "sum": lambda t, s: s.sum(), "norm": lambda t, s: s.norm(), "norm1": lambda t, s: s.norm(1),
    "double": lambda t, s: s.double(), "to": lambda t, s: s.to(t.float32),
    "reversed dims": lambda t, s: s.permute(list(range(s.ndim))[::-1]),
    "t": lambda t, s: s.t(), "transpose": lambda t, s: s.transpose(0, -1),
    "add one": lambda t, s: s + 1, "exp": lambda t, s: s.exp(), "equal": lambda t, s: s == s,
    "copy": lambda t, s: t.zeros_like(s).copy_(s), "numbers": lambda t, s: [
        s.sparse_dim(), s.dense_dim(), s._nnz(), s.numel(), s.dim(), tuple(s.shape), s.type(),
        s.stride(), s.element_size(), s.is_sparse, str(s.layout), s.is_contiguous(), len(s),
        s.is_floating_point(), s.is_complex(), s.requires_grad, s.is_leaf],
    "in place twice": lambda t, s: s.clone().add_(s).mul_(2),
    "grows": lambda t, s: s.clone().sparse_resize_([n + (i < s.sparse_dim()) for i, n in enumerate(
        s.shape)], s.sparse_dim(), s.dense_dim()),
    "shrinks": lambda t, s: s.clone().sparse_resize_([0] * s.ndim, s.sparse_dim(), s.dense_dim()),
    "numpy": lambda t, s: s.numpy(), "data_ptr": lambda t, s: s.data_ptr(),
    "view": lambda t, s: s.view(-1), "cat": lambda t, s: t.cat([s, s, s]),
    "cat with dense": lambda t, s: t.cat([s, s.to_dense()]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_one_tensor(name: str) -> None:
    for seed in range(12):
        for coalesce in (False, True):
            compare(UNARY[name], Draw(seed).pair(coalesce=coalesce))


BINARY = {
    "add": lambda t, a, b: a + b, "sub": lambda t, a, b: a - b,
    "scaled": lambda t, a, b: t.add(a, b, alpha=3), "mul": lambda t, a, b: a * b,
    "add_": lambda t, a, b: a.clone().add_(b, alpha=2), "mul_": lambda t, a, b: a.clone().mul_(b),
    "dense + sparse": lambda t, a, b: a.to_dense() + b,
    "sparse + dense": lambda t, a, b: a + b.to_dense(),
    "dense - sparse": lambda t, a, b: a.to_dense() - b,
    "dense.add_": lambda t, a, b: a.to_dense().add_(b, alpha=-2),
    "strided.add_": lambda t, a, b: a.to_dense().double().t().contiguous().t().add_(b),
    "dense * sparse": lambda t, a, b: a.to_dense() * b,
    "sparse * dense": lambda t, a, b: a * b.to_dense(),
    "mask": lambda t, a, b: a.to_dense().sparse_mask(b),
    "mask of sparse": lambda t, a, b: a.sparse_mask(b), "div": lambda t, a, b: a / b,
    "copy_": lambda t, a, b: a.clone().copy_(b), "sub_": lambda t, a, b: a.clone().sub_(b),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_two_tensors(name: str) -> None:
    for seed in range(25):
        draw = Draw(seed)
        size = draw.size(2)
        sparse_dim = int(draw.rng.integers(1, 3))
        first = draw.pair(size, sparse_dim, coalesce=bool(seed % 2))
        second = draw.pair(size, sparse_dim, coalesce=bool(seed % 3))
        compare(BINARY[name], first, second)


@pytest.mark.parametrize("name", ["add", "mul", "add_", "dense + sparse", "dense.add_", "div"])
def test_tensors_that_do_not_fit(name: str) -> None:
    for seed in range(6):
        draw = Draw(seed)
        compare(BINARY[name], draw.pair((3, 2), 2), draw.pair((2, 3), 2))
    compare(BINARY["add"], Draw(1).pair((3, 2), 2), Draw(2).pair((3, 2), 1))


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_types(first: str, second: str) -> None:
    """Distinct places: sums of half types round differently when places repeat.

    PyTorch adds no sparse tensors of float16, and adds and multiplies none of bool.
    """
    halves = {first, second} & {"float16", "bfloat16"}
    names = ["dense + sparse"]
    names += ["mul"] if {first, second} != {"bool"} else []
    names += ["add"] if "mul" in names and "float16" not in (first, second) else []
    for seed in range(3):
        draw = Draw(seed)
        pairs = [draw.pair((4, 3), 2, dtype, 4, coalesce=True) for dtype in (first, second)]
        for name in names:
            compare(BINARY[name], *pairs, rtol=1e-2 if halves else 1e-6)
        if not halves and "bool" not in (first, second):
            compare(BINARY["add_"], *pairs, rtol=1e-6)
            compare(BINARY["dense.add_"], *pairs, rtol=1e-6)


def test_sums_over_dims() -> None:
    for seed in range(20):
        draw = Draw(seed)
        pair = draw.pair(draw.size(3))
        for dim in (0, -1, (0, 1), (1, 2), (0, 2), (0, 1, 2), None, 3):
            compare(lambda t, s, d=dim: t.sparse.sum(s, d), pair)
        compare(lambda t, s: t.sparse.sum(s, 1, dtype=t.float32), pair, rtol=1e-6)
        compare(lambda t, s: s.sum(0, keepdim=True), pair)


PRODUCTS = {
    "mm": lambda t, a, b: t.mm(a, b.to_dense()), "@": lambda t, a, b: a @ b.to_dense(),
    "sparse.mm": lambda t, a, b: t.sparse.mm(a, b.to_dense()),
    "matmul": lambda t, a, b: t.matmul(a, b.to_dense()),
    "dense @ sparse": lambda t, a, b: a.to_dense() @ b,
    "both sparse": lambda t, a, b: t.sparse.mm(a, b),
    "mv": lambda t, a, b: a.mv(b.to_dense()[:, 0]),
    "addmm": lambda t, a, b: t.sparse.addmm(
        t.ones(a.shape[0], b.shape[1]).double(), a, b.to_dense(), beta=2, alpha=0.5),
    "other type": lambda t, a, b: t.mm(a, b.to_dense().float()),
    "does not fit": lambda t, a, b: t.mm(a, b.to_dense().new_ones(9, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    for seed in range(15):
        draw = Draw(seed)
        n, k, m = draw.size(3)
        pairs = draw.pair((n, k), 2, coalesce=bool(seed % 2)), draw.pair((k, m), 2, coalesce=True)
        compare(PRODUCTS[name], *pairs)


# ---- text


@pytest.mark.parametrize("dtype", DTYPES)
def test_texts(dtype: str) -> None:
    for seed in range(30):
        draw = Draw(seed)
        ours, theirs = draw.pair(dtype=dtype, nnz=int(draw.rng.choice([0, 1, 3, 400])))
        assert repr(ours) == repr(theirs)
        if dtype == "float32":
            for change in (lambda s: s.requires_grad_(), lambda s: s.requires_grad_() * 2,
                           lambda s: s.requires_grad_().coalesce() * 1):  # fmt: skip
                assert repr(change(ours.detach())) == repr(change(theirs.detach()))


# ---- gradients

OF_LEAVES = {
    "to_dense": lambda t, s: (s.to_dense() ** 2).sum(),
    "mm": lambda t, s: (t.sparse.mm(s, t.arange(12.0).view(-1, 4).double()) ** 2).sum(),
    "sum": lambda t, s: t.sparse.sum(s) * 2,
    "sum over a dim": lambda t, s: (t.sparse.sum(s, 0).to_dense() ** 2).sum(),
    "values": lambda t, s: (s.coalesce().values() ** 2).sum(),
    "arithmetic": lambda t, s: (((s * 3 - s / 2).t() + s.t()).to_dense() ** 2).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_LEAVES)
def test_gradients_of_sparse_leaves(name: str) -> None:
    def gradient(library: Any, tensor: Any) -> Any:
        leaf = tensor.detach().requires_grad_()
        OF_LEAVES[name](library, leaf).backward()
        return [leaf.grad.is_sparse, leaf.grad.to_dense()]

    for seed in range(8):
        compare(gradient, Draw(seed).pair((4, 3), 2, nnz=5), rtol=1e-9)


def test_gradients_of_values_and_dense_factors() -> None:
    def gradients(library: Any, tensor: Any) -> Any:
        values = tensor._values().clone().requires_grad_()
        dense = library.arange(6.0, dtype=library.float64).view(3, 2).requires_grad_()
        sparse = library.sparse_coo_tensor(tensor._indices(), values, (4, 3))
        (library.sparse.mm(sparse, dense) ** 2).sum().backward()
        return [values.grad, dense.grad, sparse.grad_fn is not None, sparse.is_leaf]

    for seed in range(8):
        compare(gradients, Draw(seed).pair((4, 3), 2, nnz=5), rtol=1e-9)


# ---- files


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_both_ways(zipped: bool, weights_only: bool) -> None:
    for seed in range(6):
        for index in (0, 1):
            tensor = Draw(seed).pair(coalesce=bool(seed % 2))[index]
            file = io.BytesIO()
            LIBRARIES[index].save({"s": tensor}, file, _use_new_zipfile_serialization=zipped)
            found = []
            for library in LIBRARIES:
                file.seek(0)
                found.append(plain(library.load(file, weights_only=weights_only)["s"]))
            assert_same(*found)
            assert_same(found[0], plain(tensor))
