"""Tensors of compressed layouts (CSR, CSC, BSR, BSC): parts, values, gradients, files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from tests.random_seeds import generator

LAYOUTS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
PARTS = ("crow_indices", "col_indices", "ccol_indices", "row_indices", "values")

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def numbers() -> np.random.Generator:
    """A source of random numbers, another one in each run."""
    return np.random.default_rng(generator().getrandbits(64))


def parts(tensor: Any) -> Any:
    """What a tensor is, as plain data."""
    if tensor.layout in (reference.strided, flambeau.strided):
        return str(tensor.dtype), tuple(tensor.shape), tensor.detach().tolist()
    if tensor.is_sparse:
        tensor = tensor.detach().coalesce()
        found = [("indices", tensor.indices().tolist()), ("values", tensor.values().tolist())]
    else:
        rows = str(tensor.layout).endswith("r")
        names = [n for n in PARTS if n == "values" or n.startswith(("cr", "col")) is rows]
        found = [(n, getattr(tensor.detach(), n)().tolist()) for n in names]
    return str(tensor.dtype), str(tensor.layout), tuple(tensor.shape), found


def close(ours: Any, theirs: Any) -> None:
    """Equal parts, numbers nearly so."""
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), (ours, theirs)
        for one, other in zip(ours, theirs, strict=True):
            close(one, other)
    elif isinstance(theirs, (float, complex)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    else:
        assert ours == theirs


def both(program: Any, *arrays: np.ndarray) -> None:
    """A program of tensors gives the same under both libraries: their parts, or the class and words
    of an error."""
    answers = []
    for library in (flambeau, reference):
        try:
            found = program(library, *map(library.tensor, arrays))
            found = found if isinstance(found, (tuple, list)) else [found]
            answers.append([parts(f) if isinstance(f, library.Tensor) else f for f in found])
        except (RuntimeError, IndexError, TypeError) as error:
            answers.append([type(error).__name__, str(error).partition("\n")[0]])
    close(*answers)


def drawn(random: np.random.Generator, *shape: int, dtype: str = "float32") -> np.ndarray:
    """Numbers of which about half are 0."""
    values = random.integers(-3, 4, shape) * (random.random(shape) < 0.6)
    return values.astype(dtype)


def in_layout(dense: Any, layout: str, block: tuple[int, int]) -> Any:
    """A tensor in a layout; the block's size where that has one."""
    return getattr(dense, f"to_{layout}")(*[block] if layout[-3] == "b" else [])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64", "bool"])
def test_from_dense_and_back(layout: str, dtype: str) -> None:
    random = numbers()
    for _ in range(5):
        block = tuple(random.integers(1, 4, 2).tolist())
        shape = [int(n) * b for n, b in zip(random.integers(0, 4, 2), block, strict=True)]
        data = drawn(random, *shape, dtype=dtype)

        def program(t: Any, data: Any = data, block: Any = block) -> Any:
            x = in_layout(t.tensor(data), layout, block)
            return [x, x.to_dense(), x.to_sparse(), x._nnz(), x.sparse_dim(), x.dense_dim(), x.t(),
                    x.t().to_dense(), x.numel(), x.is_sparse, x.is_sparse_csr, repr(x)]  # fmt: skip

        both(program)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_and_dense_dims(layout: str) -> None:
    random = numbers()
    pattern = drawn(random, 4, 6) + (random.random((4, 6)) < 0.5)
    batch = np.stack([pattern * k for k in (1, 2, 3, 4)]).reshape(2, 2, 4, 6).astype("float32")
    both(lambda t: (x := in_layout(t.tensor(batch), layout, (2, 3)), x.to_dense()))
    hybrid = np.stack([pattern, 2 * pattern], -1).astype("float32")

    def program(t: Any) -> Any:
        x = t.tensor(hybrid)
        block = [(2, 3)] if layout[-3] == "b" else []
        x = getattr(x, f"to_{layout}")(*block, dense_dim=1)
        return [x, x.to_dense(), x.dense_dim()]

    both(program)
    uneven = np.zeros((2, 3, 3), "float32")
    uneven[0, 0, 0] = 1
    both(lambda t: t.tensor(uneven).to_sparse_csr())


NO_WAY = [
    ("sparse_csc", "sparse_bsr"), ("sparse_csr", "sparse_bsc"), ("sparse_bsr", "sparse_bsc"),
    ("sparse_bsc", "sparse_bsr"), ("sparse_bsr", "sparse_csr"), ("sparse_bsr", "sparse_csc"),
    ("sparse_bsc", "sparse_csr"), ("sparse_bsc", "sparse_csc"),
]  # fmt: skip
"""Pairs of layouts of which torch cannot make the second from the first."""


@pytest.mark.parametrize("source, target", [
    (one, other) for one in ("sparse", *LAYOUTS) for other in LAYOUTS if (one, other) not in NO_WAY
])  # fmt: skip
def test_between_layouts(source: str, target: str) -> None:
    data = drawn(numbers(), 4, 6)
    both(lambda t: in_layout(in_layout(t.tensor(data), source, (2, 3)), target, (2, 3)))


UNARY = "abs neg sin tanh sqrt relu sgn isnan floor expm1 conj angle trunc double asinh".split()


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_functions_of_elements(name: str, layout: str) -> None:
    data = np.abs(drawn(numbers(), 4, 4))
    both(lambda t: getattr(in_layout(t.tensor(data), layout, (2, 2)), name)())
    if name in ("abs", "neg", "sin", "floor"):
        both(lambda t: getattr(in_layout(t.tensor(data), layout, (2, 2)), f"{name}_")())


def test_sums_and_products_of_elements() -> None:
    random = numbers()
    for _ in range(4):
        shape = random.integers(1, 6, 2)
        arrays = drawn(random, *shape), drawn(random, *shape)
        both(of_elements, *arrays)
        both(lambda t, a, b: (a.to_sparse_csr() + b.to_sparse_csr()).to_dense(), *arrays)
    for dim in (0, 1, (0, 1)):
        both(lambda t, a, b, dim=dim: a.to_sparse_csr().sum(dim, keepdim=True).to_dense(), *arrays)
    both(lambda t, a, b: a.to_sparse_csr().sum(0), *arrays)
    both(lambda t, a, b: a.to_sparse_csr() + 1, *arrays)


def of_elements(t: Any, a: Any, b: Any) -> Any:
    x = a.to_sparse_csr()
    return [
        x, b.to_sparse_csr() * 2, x * x, x + x, x + b, b + x, x * b, 3 * x, x.sum(),
        x.clone().mul_(2), t.zeros_like(x), t.ones_like(x), b.sparse_mask(x), x.select(0, 0),
        x[0, 0],
    ]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS[:3])  # torch has no product of the fourth
def test_products_of_matrices(layout: str) -> None:
    random = numbers()
    for _ in range(4):
        n, k, m = (2 * random.integers(1, 5, 3)).tolist()
        arrays = [drawn(random, *shape) for shape in ((n, k), (k, m), (k,), (n, m))]
        both(lambda t, a, b, v, c: in_layout(a, layout, (2, 2)) @ b, *arrays)
        if layout == "sparse_csr":
            both(of_matrices, *arrays)


def of_matrices(t: Any, a: Any, b: Any, v: Any, c: Any) -> Any:
    x = a.to_sparse_csr()
    reduced = [t.sparse.mm(x, b, how) for how in ("sum", "mean", "amax", "amin")]
    return [
        x, x @ v, t.addmm(c, x, b, beta=2, alpha=3), b.t() @ x.t(),
        t.nn.functional.linear(b.t(), x), (x @ b.to_sparse_csr()).to_dense(), *reduced,
        t.sparse.sampled_addmm(c.to_sparse_csr(), a, b, beta=0.5, alpha=2),
    ]  # fmt: skip


GRADIENTS = {
    "to_dense": lambda t, x, d: x.to_dense() * 2,
    "sparse.mm": lambda t, x, d: t.sparse.mm(x, d),
    "mul": lambda t, x, d: (x * 3).to_dense(),
    "mul itself": lambda t, x, d: (x * x).to_dense(),
    "add": lambda t, x, d: (x + x).to_dense(),
    "relu": lambda t, x, d: x.relu().to_dense(),
    "values": lambda t, x, d: x.values() * 2,
    "mean": lambda t, x, d: t.sparse.mm(x, d, "mean"),
    "t": lambda t, x, d: x.t().to_dense(),
    "csc": lambda t, x, d: x.to_sparse_csc().to_dense(),
    "coo": lambda t, x, d: x.to_sparse().to_dense(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    random = numbers()
    a, b = drawn(random, 4, 5), drawn(random, 5, 3) + 0.5

    def program(t: Any) -> Any:
        x, d = t.tensor(a).to_sparse_csr().requires_grad_(), t.tensor(b, requires_grad=True)
        y = GRADIENTS[name](t, x, d)
        (y * y).sum().backward()
        return [x.grad, *([d.grad] if d.grad is not None else [])]

    both(program)


def test_gradients_of_values_that_one_is_made_of() -> None:
    def program(t: Any) -> Any:
        v = t.tensor([1.0, 2, 3], requires_grad=True)
        x = t.sparse_csr_tensor(t.tensor([0, 1, 3]), t.tensor([1, 0, 2]), v, (2, 3))
        t.sparse.mm(x, t.tensor([[1.0], [2], [3]])).square().sum().backward()
        return v.grad

    both(program)


BAD = {
    "last": ([0, 1, 2], [1, 0, 2], (2, 3)),
    "first": ([1, 2, 3], [1, 0, 0], (2, 3)),
    "range": ([0, 1, 3], [1, 0, 7], (2, 3)),
    "twice": ([0, 1, 3], [1, 0, 0], (2, 3)),
    "order": ([0, 1, 3], [1, 2, 0], (2, 3)),
    "count": ([0, 1, 3], [1, 0], (2, 3)),
    "rows": ([0, 1, 3], [1, 0, 2], (3, 3)),
    "floats": ([0.0, 1, 3], [1, 0, 2], (2, 3)),
    "good": ([0, 1, 3], [1, 0, 2], (2, 3)),
}
OF_SHAPES = ("count", "rows", "floats")
"""What is an error here without being asked for, too: such a tensor would have no meaning."""


@pytest.mark.parametrize("name, checked", [
    *[(name, True) for name in BAD], *[(name, False) for name in BAD if name not in OF_SHAPES],
])  # fmt: skip
def test_parts_that_contradict_one_another(name: str, checked: bool) -> None:
    pointers, others, size = BAD[name]
    both(lambda t: t.sparse_csr_tensor(pointers, others, [1.0, 2, 3], size,
                                       check_invariants=checked).values())  # fmt: skip


def test_constructors() -> None:
    blocks = [[[1.0, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]
    both(lambda t: (t.sparse_bsr_tensor([0, 1, 2], [0, 1], blocks),
                    t.sparse_bsc_tensor([0, 1, 2], [0, 1], blocks),
                    t.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2], dtype=t.float16),
                    t.sparse_compressed_tensor([0, 1], [0], [1], layout=t.sparse_csr),
                    t.zeros(2, 3, layout=t.sparse_csr),
                    t.zeros(2, 3, layout=t.sparse_csc)))  # fmt: skip
    both(lambda t: t.sparse_compressed_tensor([0, 1], [0], [1]))
    both(lambda t: t.ones(3, 4).to_sparse_bsr((2, 2)))
    both(lambda t: t.ones(2, 2).to_sparse(layout=t.sparse_bsr))
    both(lambda t: t.ones(2, 2).to_sparse(layout=t.sparse_csr, blocksize=(1, 1)))
    both(lambda t: t.ones(2, 2).to_sparse(layout=t.sparse_bsr, blocksize=(1, 2)))
    for name in ("ccol_indices", "row_indices", "indices", "coalesce", "stride", "is_contiguous"):
        both(lambda t, name=name: getattr(t.eye(2).to_sparse_csr(), name)())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files(layout: str) -> None:
    data = drawn(numbers(), 4, 4)
    written = {}
    for library in (flambeau, reference):
        file = io.BytesIO()
        library.save({"x": in_layout(library.tensor(data), layout, (2, 2))}, file)
        written[library] = file.getvalue()
    for writer in written:
        found = [parts(t.load(io.BytesIO(written[writer]))["x"]) for t in (flambeau, reference)]
        close(*found)


def test_products_with_sparse_results() -> None:
    random = numbers()
    a, b, c = drawn(random, 3, 4), drawn(random, 4, 2), drawn(random, 3, 2)
    both(lambda t: (t.hspmm(t.tensor(a).to_sparse(), t.tensor(b)),
                    t.smm(t.tensor(a).to_sparse(), t.tensor(b)),
                    t.sspaddmm(t.tensor(c).to_sparse(), t.tensor(a).to_sparse(), t.tensor(b),
                               beta=2, alpha=3)))  # fmt: skip
    both(lambda t: (t.tensor(a).to_sparse()[0], t.tensor(a).to_sparse().select(1, 2),
                    t.tensor(a).to_sparse()[1, 2]))  # fmt: skip
