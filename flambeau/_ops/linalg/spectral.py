"""Singular values and eigenvalues, Vandermonde's matrix, decompositions of low rank.

Adjoints: Giles (2008) for the real decompositions, Wan and Zhang (Automatic differentiation for
complex valued SVD, 2019) for complex ones, Boeddeker et al. (2017) for eigenvectors. Vectors are
fixed only up to a phase, so that complex losses must not depend on it; that is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.linalg import by_name as kernels
from flambeau._ops.linalg.systems import (
    adjoint,
    adjoint_times,
    column_major,
    diagonal_of,
    fresh,
    named,
    times_adjoint,
)
from flambeau._ops.reductions.sums import write
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import InAten, composite, internal, kernel
from flambeau._ops.table.outputs import EXACT, castable
from flambeau._ops.table.pointwise import wants_grad


def _differences(values: Any) -> Any:
    """values_j - values_i, with ones on the diagonal."""
    size = values._data.shape[-1]
    identity = ops.eye(size, dtype=values.dtype, device=values.device)
    return values.unsqueeze(-2) - values.unsqueeze(-1) + identity


def _check_phase(diagonal: Any, name: str, what: str) -> None:
    """An error where the loss depends on the phase of vectors."""
    data = diagonal._data
    size = np.abs(data.imag)
    if (size > 1e-2 * (1 + np.abs(data.real))).any():
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by "
            "e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined."
        )


# ---- singular values


def _svd_backward(given: Any, U: Any, S: Any, Vh: Any) -> Any:
    """U (skew(U^H gU)/E S + S skew(V^H gV)/E + gS) V^H and the parts outside of U and V."""
    of_u, of_s, of_vh = given
    count = S._data.shape[-1]
    left, right = U.narrow(-1, 0, count), Vh.narrow(-2, 0, count)
    if of_u is None and of_vh is None:  # E is 0 where singular values are equal
        return ops.matmul(left * of_s.unsqueeze(-2), right)
    of_u = ops.zeros_like(left) if of_u is None else of_u.narrow(-1, 0, count)
    of_vh = ops.zeros_like(right) if of_vh is None else of_vh.narrow(-2, 0, count)
    of_s = ops.zeros_like(S) if of_s is None else of_s
    return _singular_gradient((of_u, of_s, of_vh), left, S, right)


def _singular_gradient(grads: Any, U: Any, S: Any, Vh: Any) -> Any:
    """That of all three factors, with as many vectors as there are singular values."""
    of_u, of_s, of_vh = grads
    count = S._data.shape[-1]
    left = adjoint_times(U, of_u)
    right = times_adjoint(Vh, of_vh)
    skew_left, skew_right = left - adjoint(left), right - adjoint(right)
    squares = _differences_of_squares(S)
    inner = skew_left / squares * S.unsqueeze(-2) + S.unsqueeze(-1) * (skew_right / squares)
    middle = of_s
    if U._data.dtype.kind == "c":
        _check_phase(diagonal_of(left) + diagonal_of(right), "svd_backward", "singular vectors")
        middle = of_s + diagonal_of(skew_left) / (2 * S)
    inner = _with_diagonal(inner, middle)
    grad = ops.matmul(ops.matmul(U, inner), Vh)
    if U._data.shape[-2] > count:
        outside = of_u / S.unsqueeze(-2)
        grad = grad + ops.matmul(outside - ops.matmul(U, adjoint_times(U, outside)), Vh)
    if Vh._data.shape[-1] > count:
        outside = of_vh / S.unsqueeze(-1)
        grad = grad + ops.matmul(U, outside - ops.matmul(times_adjoint(outside, Vh), Vh))
    return grad


def _differences_of_squares(values: Any) -> Any:
    """S_j^2 - S_i^2 as (S_j - S_i)(S_j + S_i), ones on the diagonal."""
    sums = values.unsqueeze(-2) + values.unsqueeze(-1)
    size = values._data.shape[-1]
    identity = ops.eye(size, dtype=values.dtype, device=values.device)
    return (values.unsqueeze(-2) - values.unsqueeze(-1)) * sums + identity


def _with_diagonal(matrix: Any, diagonal: Any) -> Any:
    """The matrix with another diagonal."""
    return matrix - ops.diag_embed(diagonal_of(matrix)) + ops.diag_embed(diagonal)


@kernel(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None)"
    " -> (Tensor U, Tensor S, Tensor Vh)",
    batch=(2,),
    autocast="cpu=float32",
    namespace="linalg",
    public="svd",
    out=True,
    also_saved=("full_matrices", "S_shape"),
    saved_names={"S_shape": None},
    saved_facts={"S_sym_argsize_minus_1": lambda values: values["S_shape"][-1]},
    backward={"A": _svd_backward},
)
def linalg_svd(a: np.ndarray, full_matrices: bool, driver: str | None) -> tuple[np.ndarray, ...]:
    """(U, S, Vh) with A = U diag(S) Vh and S falling.

    Shapes for A (*, m, n) and k = min(m, n): U (*, m, m), S (*, k), Vh (*, n, n); without
    `full_matrices` U (*, m, k) and Vh (*, k, n). S is real. `driver` is for GPUs.

    >>> import flambeau as torch
    >>> u, s, vh = torch.linalg.svd(torch.ones(3, 2), full_matrices=False)
    >>> u.shape, s.shape, vh.shape
    (torch.Size([3, 2]), torch.Size([2]), torch.Size([2, 2]))
    """
    if a.ndim > 1 and a.dtype.kind in "fVc":
        _check_driver(driver)
    left, values, right = kernels.svd(a, full_matrices)
    return column_major(left), fresh(values), column_major(right)


def _check_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA "
                           "inputs with cuSOLVER backend.")  # fmt: skip


def _svdvals_backward(grad: Any, A: Any) -> Any:
    left, _, right = ops.linalg.svd(A, False)
    return ops.matmul(left * grad.unsqueeze(-2), right)


@internal(
    "_linalg_svdvals(Tensor A) -> Tensor",
    batch=(2,),
    aten=lambda A: InAten("linalg_svdvals", (A,)),
    node="LinalgSvdBackward0",
    backward={"A": _svdvals_backward},
)
def singular_values(a: np.ndarray) -> np.ndarray:
    """The singular values without the vectors, for what records no graph."""
    return fresh(kernels.svdvals(a))


@composite("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
           out_writer="_linalg_svd", autocast="cpu=float32",
           namespace="linalg", public="svdvals", out_type=EXACT)  # fmt: skip
def svdvals(A: Any, *, driver: str | None = None, out: Any = None) -> Any:
    """The singular values, falling.

    Where gradients are asked for, the vectors are computed, too, and saved instead of A.

    >>> import flambeau as torch
    >>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    if A._data.ndim > 1 and A._data.dtype.kind in "fVc":
        _check_driver(driver)
    values = ops.linalg.svd(A, False)[1] if wants_grad((A,)) else ops._linalg_svdvals(A)
    return write(svdvals, out, values)


@composite("svd(Tensor self, bool some=True, bool compute_uv=True)"
           " -> (Tensor U, Tensor S, Tensor V)", autocast="cpu=float32")  # fmt: skip
def svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """(U, S, V) with A = U diag(S) V^H: the older form of `linalg.svd`.

    >>> import flambeau as torch
    >>> torch.svd(torch.tensor([[3., 0.], [0., 4.]])).S
    tensor([4., 3.])
    """
    if input._data.ndim < 2:
        raise RuntimeError("linalg.svd: input should have at least 2 dimensions, but has "
                           f"{input._data.ndim} dimensions instead")  # fmt: skip
    if compute_uv:
        left, values, right = ops.linalg.svd(input, not some)
        return write(svd, out, named(svd, left, values, ops.adjoint(right)))
    *batch, rows, columns = input._data.shape
    left = ops.new_zeros(input, (*batch, rows, rows))
    right = ops.new_zeros(input, (*batch, columns, columns)).mT
    return write(svd, out, named(svd, left, ops.linalg.svdvals(input), right))


# ---- Hermitian eigenvalues


def _eigh_backward(given: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    """V (skew(V^H gV) / (2 E) + gL) V^H: the Hermitian one of the equivalent gradients."""
    of_values, of_vectors = given
    if of_vectors is None:  # E is 0 where eigenvalues are equal
        return times_adjoint(eigenvectors * of_values.unsqueeze(-2), eigenvectors)
    of_values = ops.zeros_like(eigenvalues) if of_values is None else of_values
    inner = adjoint_times(eigenvectors, of_vectors)
    if inner._data.dtype.kind == "c":
        _check_phase(diagonal_of(inner), "linalg_eigh_backward", "eigenvectors")
    skew = (inner - adjoint(inner)) * 0.5
    inner = _with_diagonal(skew / _differences(eigenvalues), of_values)
    return ops.matmul(eigenvectors, times_adjoint(inner, eigenvectors))


def _eigh_tangent(tangent: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    """The diagonal of V^H T V, and V times what is beside it over differences of eigenvalues."""
    inner = adjoint_times(eigenvectors, ops.matmul(tangent, eigenvectors))
    diagonal = diagonal_of(inner)
    beside = _with_diagonal(inner / _differences(eigenvalues), ops.zeros_like(diagonal))
    real = ops.real(diagonal) if diagonal._data.dtype.kind == "c" else diagonal
    return real, ops.matmul(eigenvectors, beside)


@kernel(
    'linalg_eigh(Tensor A, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    python_names={"A": "input"},
    batch=(2,),
    autocast="cpu=float32",
    namespace="linalg",
    public="eigh",
    out=True,
    backward={"A": _eigh_backward},
    tangent=_eigh_tangent,
)
def eigh(a: np.ndarray, UPLO: str) -> tuple[np.ndarray, ...]:
    """(eigenvalues rising, eigenvectors in columns) of Hermitian matrices; one triangle is read.

    >>> import flambeau as torch
    >>> values, vectors = torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> values, vectors.shape
    (tensor([1., 2.]), torch.Size([2, 2]))
    """
    values, vectors = kernels.eigh(a, UPLO)
    return fresh(values), column_major(vectors)


def _eigvalsh_backward(grad: Any, A: Any, UPLO: str) -> Any:
    _, vectors = ops.linalg.eigh(A, UPLO)
    return times_adjoint(vectors * grad.unsqueeze(-2), vectors)


@internal(
    "_linalg_eigvalsh(Tensor A, str UPLO) -> Tensor",
    batch=(2,),
    aten=lambda A, UPLO: InAten("linalg_eigvalsh", (A, UPLO)),
    node="LinalgEighBackward0",
    backward={"A": _eigvalsh_backward},
)
def hermitian_eigenvalues(a: np.ndarray, UPLO: str) -> np.ndarray:
    """The eigenvalues without the vectors, for what records no graph."""
    return fresh(kernels.eigvalsh(a, UPLO))


@composite('linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor', out_writer="_linalg_eigh",
           python_names={"A": "input"}, autocast="cpu=float32",
           namespace="linalg", public="eigvalsh", method=False, out_type=EXACT)  # fmt: skip
def eigvalsh(input: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """The eigenvalues of Hermitian matrices, rising.

    Where gradients are asked for, the vectors are computed, too, and saved instead of the input.

    >>> import flambeau as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    recorded = wants_grad((input,))
    values = ops.linalg.eigh(input, UPLO)[0] if recorded else ops._linalg_eigvalsh(input, UPLO)
    return write(eigvalsh, out, values)


# ---- eigenvalues


def _eig_backward(given: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    """V^-H ((V^H gV - V^H V Re(diag(V^H gV))) / conj(E) + gL) V^H."""
    of_values, of_vectors = given
    if of_vectors is None:  # E is 0 where eigenvalues are equal
        return _from_eigenbasis(ops.diag_embed(of_values), eigenvectors)
    of_values = ops.zeros_like(eigenvalues) if of_values is None else of_values
    inner = adjoint_times(eigenvectors, of_vectors)
    diagonal = diagonal_of(inner)
    _check_phase(diagonal, "linalg_eig_backward", "eigenvectors")
    gram = adjoint_times(eigenvectors, eigenvectors)
    inner = (inner - gram * diagonal.real.unsqueeze(-2)) / conj(_differences(eigenvalues))
    return _from_eigenbasis(_with_diagonal(inner, of_values), eigenvectors)


def _from_eigenbasis(inner: Any, vectors: Any) -> Any:
    return ops.linalg.solve(adjoint(vectors), times_adjoint(inner, vectors))


@kernel(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    batch=(2,),
    autocast="cpu=float32",
    namespace="linalg",
    public="eig",
    method=False,
    out=True,
    out_type=castable("torch.linalg.eig"),
    backward={"self": _eig_backward},
)
def eig(a: np.ndarray) -> tuple[np.ndarray, ...]:
    """(eigenvalues, eigenvectors of length 1 in columns), both complex.

    From shape (*, n, n) to (*, n) and (*, n, n).

    >>> import flambeau as torch
    >>> torch.linalg.eig(torch.tensor([[0., -1.], [1., 0.]])).eigenvalues.abs()
    tensor([1., 1.])
    """
    values, vectors = kernels.eig(a)
    return fresh(values), column_major(vectors)


def _eigvals_backward(grad: Any, self: Any) -> Any:
    _, vectors = ops.linalg.eig(self)
    return _from_eigenbasis(ops.diag_embed(grad), vectors)


@internal(
    "_linalg_eigvals(Tensor self) -> Tensor",
    batch=(2,),
    node="LinalgEigBackward0",
    backward={"self": _eigvals_backward},
)
def general_eigenvalues(a: np.ndarray) -> np.ndarray:
    """The eigenvalues without the vectors, for what records no graph."""
    return fresh(kernels.eigvals(a))


@composite("linalg_eigvals(Tensor self) -> Tensor",
           out_writer="aten::linalg_eigvals", autocast="cpu=float32", namespace="linalg",
           public="eigvals", method=False,
           out_type=castable("torch.linalg.eigvals", "eigenvalues"))  # fmt: skip
def eigvals(input: Any, *, out: Any = None) -> Any:
    """The eigenvalues of general matrices, complex.

    Where gradients are asked for, the vectors are computed, too, and saved instead of the input.

    >>> import flambeau as torch
    >>> torch.linalg.eigvals(torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
    tensor([2.+0.j, 2.+0.j])
    """
    values = ops.linalg.eig(input)[0] if wants_grad((input,)) else ops._linalg_eigvals(input)
    return write(eigvals, out, values)


# ---- Vandermonde's matrix


@composite("linalg_vander(Tensor x, *, int? N=None) -> Tensor", namespace="linalg", public="vander",
           method=False)  # fmt: skip
def linalg_vander(x: Any, *, N: int | None = None) -> Any:
    """Powers 0 to N - 1 of x in a new last dim.

    >>> import flambeau as torch
    >>> torch.linalg.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    kernels.vander(x._data.reshape(-1)[:0], _columns(x, N))  # for its checks
    x = x.unsqueeze(0) if x._data.ndim == 0 else x
    return _powers(x, _columns(x, N))


def _powers(x: Any, count: int) -> Any:
    """1, x, x * x, ... in a new last dim: products, so that 0 to the power of 0 is 1."""
    first = ops.ones_like(x).unsqueeze(-1)
    powers = x.unsqueeze(-1).expand((*x._data.shape, count - 1)).cumprod(-1)
    return ops.cat([first, powers], -1)


def _columns(x: Any, N: int | None) -> int:
    if N is not None:
        return int(N)
    return x._data.shape[-1] if x._data.ndim else 1


@composite("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", method=False)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Powers of a vector's elements in columns, falling unless `increasing`.

    >>> import flambeau as torch
    >>> torch.vander(torch.tensor([1, 2, 3]), 2)
    tensor([[1, 1],
            [2, 1],
            [3, 1]])
    """
    if x._data.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x._data.size if N is None else int(N)
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    x = x.long() if x._data.dtype.kind in "iub" else x
    if not count:
        return ops.new_empty(x, (x._data.size, 0))
    if count == 1:  # nothing but ones
        x = x.detach()
    result = _powers(x, count)
    return result if increasing else result.flip(-1)


# ---- low rank, by random projection (Halko, Martinsson and Tropp, 2011, algorithms 4.4 and 5.1)


def _turned(A: Any) -> Any:
    """The conjugate transpose; sparse matrices are real or lose nothing by being written out."""
    if A.is_sparse:
        return adjoint(A.to_dense()) if A.is_complex() else A.transpose(-2, -1)
    return adjoint(A)


def _range_basis(A: Any, q: int, niter: int, M: Any) -> Any:
    """Orthonormal columns that nearly span the q strongest directions of A - M."""

    def times(right: Any) -> Any:
        return A.matmul(right) if M is None else A.matmul(right) - M.matmul(right)

    def adjoint_of(right: Any) -> Any:
        product = turned.matmul(right) if A.is_sparse else adjoint_times(A, right)
        return product if M is None else product - adjoint_times(M, right)

    turned: Any = _turned(A) if A.is_sparse else None
    start = ops.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    basis = ops.linalg.qr(times(start))[0]
    for _ in range(niter):
        basis = ops.linalg.qr(adjoint_of(basis))[0]
        basis = ops.linalg.qr(times(basis))[0]
    return basis


@composite("svd_lowrank(Tensor A, int q=6, int niter=2, Tensor? M=None)"
           " -> (Tensor, Tensor, Tensor)", method=False)  # fmt: skip
def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """(U, S, V) of the q largest singular values of A (or A - M), nearly, by random projection.

    Shapes for A (*, m, n): U (*, m, q), S (*, q), V (*, n, q).

    >>> import flambeau as torch
    >>> u, s, v = torch.svd_lowrank(torch.ones(4, 3), q=1)
    >>> u.shape, s.shape, v.shape
    (torch.Size([4, 1]), torch.Size([1]), torch.Size([3, 1]))
    """
    q = 6 if q is None else q
    if M is not None:
        M = M.expand(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    matrix = _turned(A) if wide else A
    shift = adjoint(M) if wide and M is not None else M
    basis = _range_basis(matrix, q, 2 if niter is None else niter, shift)
    small = adjoint(_turned(matrix).matmul(basis)) if A.is_sparse else adjoint_times(basis, matrix)
    if shift is not None:
        small = small - adjoint_times(basis, shift)
    left, values, right = ops.linalg.svd(small, False)
    left = ops.matmul(basis, left)
    right = ops.adjoint(right)
    return (right, values, left) if wide else (left, values, right)


@composite("pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2)"
           " -> (Tensor, Tensor, Tensor)", method=False)  # fmt: skip
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """Principal components: `svd_lowrank` of A with its columns centred.

    Shapes for A (*, m, n): U (*, m, q), S (*, q), V (*, n, q).

    >>> import flambeau as torch
    >>> u, s, v = torch.pca_lowrank(torch.eye(4), q=2)
    >>> u.shape, s.shape, v.shape
    (torch.Size([4, 2]), torch.Size([2]), torch.Size([4, 2]))
    """
    rows, columns = A.shape[-2:]
    if q is None:
        q = min(6, rows, columns)
    elif not 0 <= q <= min(rows, columns):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)="
                         f"{min(rows, columns)}")  # fmt: skip
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return ops.svd_lowrank(A, q, niter)
    if A.is_sparse:
        ones = ops.ones(rows, 1, dtype=A.dtype, device=A.device)
        means = A.transpose(-2, -1).matmul(ones).mT / rows
        return ops.svd_lowrank(A, q, niter, means)
    return ops.svd_lowrank(A - A.mean(-2, keepdim=True), q, niter)
