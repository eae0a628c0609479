"""QR and products of Householder reflectors, as operators with gradients.

QR's adjoint is that of Walter and Lehmann (2010), for wide matrices that of Liao et al. (2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.settings import warn_once
from flambeau._ops.elementwise.arithmetic import conj, underived
from flambeau._ops.linalg import by_name as kernels
from flambeau._ops.linalg.systems import (
    adjoint,
    adjoint_times,
    column_major,
    column_major_all,
    diagonal_of,
    named,
    padded,
    times_adjoint,
)
from flambeau._ops.reductions.sums import write
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.outputs import castable

# ---- QR


def _qr_backward(grads: Any, Q: Any, R: Any, mode: str) -> Any:
    """(gQ + Q M) R^-H with M Hermitian from the lower triangle of R gR^H - gQ^H Q."""
    of_q, of_r = grads
    rows, columns = R._data.shape[-2:] if mode == "r" else (Q._data.shape[-2], R._data.shape[-1])
    _check_qr(mode, rows, columns)
    if rows >= columns:
        return _qr_tall(of_q, of_r, Q, R)
    wide = columns - rows
    right, of_right = R.narrow(-1, rows, wide), of_r.narrow(-1, rows, wide)
    # A = (X | Y): Y = Q V, so that its gradient passes through Q.
    of_y = ops.matmul(Q, of_right)
    y = ops.matmul(Q, right)
    of_q = of_q + times_adjoint(y, of_right)
    of_x = _qr_tall(of_q, of_r.narrow(-1, 0, rows), Q, R.narrow(-1, 0, rows))
    return ops.cat([of_x, of_y], -1)


def _check_qr(mode: str, rows: int, columns: int) -> None:
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
            "use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and rows > columns:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )


def _qr_tall(of_q: Any, of_r: Any, Q: Any, R: Any) -> Any:
    inner = ops.tril(times_adjoint(R, of_r) - adjoint_times(of_q, Q))
    strict = ops.tril(inner, -1)
    diagonal = diagonal_of(inner)
    real = diagonal.real if diagonal._data.dtype.kind == "c" else diagonal
    symmetric = strict + adjoint(strict) + ops.diag_embed(real)
    right = of_q + ops.matmul(Q, symmetric)
    return ops.linalg.solve_triangular(adjoint(R), right, upper=False, left=False)


@kernel(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    batch=(2,),
    autocast="cpu=float32",
    namespace="linalg",
    public="qr",
    out=True,
    backward={"A": _qr_backward},
)
def linalg_qr(a: np.ndarray, mode: str) -> tuple[np.ndarray, ...]:
    """(Q, R) with A = Q R; mode is "reduced", "complete" or "r" (Q is empty).

    Shapes for A (*, m, n), with k = min(m, n), or m if "complete": Q (*, m, k), R (*, k, n).

    >>> import flambeau as torch
    >>> q, r = torch.linalg.qr(torch.ones(3, 2))
    >>> q.shape, r.shape
    (torch.Size([3, 2]), torch.Size([2, 2]))
    """
    q, r = kernels.qr(a, mode)
    return column_major(q), column_major(r)


@composite("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", autocast="cpu=float32")
def qr(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """(Q, R): the older form of `linalg.qr`.

    Shapes for A (*, m, n), with k = min(m, n): Q (*, m, k), R (*, k, n).

    >>> import flambeau as torch
    >>> q, r = torch.linalg.qr(torch.tensor([[3., 1.], [4., 2.]]))  # the way of today
    >>> r.abs()
    tensor([[5.0000, 2.2000],
            [0.0000, 0.4000]])
    """
    warn_once(OLD_QR)
    result = named(qr, *ops.linalg.qr(input, "reduced" if some else "complete"))
    return write(qr, out, result)


OLD_QR = (
    "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch "
    "release.\nThe boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R"
    " = torch.qr(A, some)\nshould be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some "
    "else 'complete')"
)


@kernel("geqrf(Tensor self) -> (Tensor a, Tensor tau)", autocast="cpu=float32", out=True,
        out_type=castable("torch.geqrf"), backward={
    "self": underived("geqrf"),
})  # fmt: skip
def geqrf(a: np.ndarray) -> tuple[np.ndarray, ...]:
    """(reflectors below R, tau), as LAPACK's geqrf.

    Shapes: from (*, m, n) to the same and (*, min(m, n)).

    >>> import flambeau as torch
    >>> torch.geqrf(torch.tensor([[3., 1.], [4., 2.]])).a.shape
    torch.Size([2, 2])
    """
    return column_major_all(kernels.geqrf(a))


# ---- Householder reflectors


def _reflected(v: Any, tau: Any, matrix: Any) -> Any:
    """(I - tau v v^H) matrix."""
    return matrix - tau * ops.matmul(v, adjoint_times(v, matrix))


def _reflections_backward(grad: Any, vectors: list[Any], taus: list[Any],
                          matrix: Any) -> tuple[list[Any], list[Any], Any]:  # fmt: skip
    """Gradients of the vectors, the factors and the matrix of H_1 ... H_k matrix.

    With K = (H_1 ... H_{i-1})^H G and R = H_{i+1} ... H_k matrix, H_i has the gradient K R^H.
    """
    rights = [matrix] if vectors else []
    for v, tau in zip(vectors[:0:-1], taus[:0:-1], strict=True):
        rights.append(_reflected(v, tau, rights[-1]))
    of_vectors, of_taus = [], []
    for v, tau, right in zip(vectors, taus, reversed(rights), strict=True):
        to_v = ops.matmul(grad, adjoint_times(right, v))
        from_v = ops.matmul(right, adjoint_times(grad, v))
        of_taus.append(-adjoint_times(v, to_v))
        of_vectors.append(-conj(tau) * to_v - tau * from_v)
        grad = _reflected(v, conj(tau), grad)
    return of_vectors, of_taus, grad


def _reflectors(matrix: Any, tau: Any) -> tuple[list[Any], list[Any]]:
    """The vectors, (*, m, 1) each, and their factors, (*, 1, 1) each."""
    count = tau._data.shape[-1]
    rows = matrix._data.shape[-2]
    unit = ops.eye(rows, count, dtype=matrix.dtype, device=matrix.device)
    columns = ops.tril(matrix.narrow(-1, 0, count), -1) + unit
    vectors = [columns.narrow(-1, i, 1) for i in range(count)]
    taus = [tau.narrow(-1, i, 1).unsqueeze(-1) for i in range(count)]
    return vectors, taus


def _gathered(of_vectors: list[Any], of_taus: list[Any], shape: Any, grad: Any) -> Any:
    """Gradients of the reflectors' matrix and of tau."""
    if not of_vectors:
        return ops.new_zeros(grad, shape), ops.new_zeros(grad, (*shape[:-2], 0))
    of_matrix = ops.tril(ops.cat(of_vectors, -1), -1)
    return padded(of_matrix, shape), ops.cat(of_taus, -1).squeeze(-2)


def _householder_backward(grad: Any, input: Any, tau: Any) -> Any:
    if not tau._data.size:
        return None, None
    vectors, taus = _reflectors(input, tau)
    shape = input._data.shape
    matrix = ops.eye(*shape[-2:], dtype=input.dtype, device=input.device).expand(shape)
    of_vectors, of_taus, _ = _reflections_backward(grad, vectors, taus, matrix)
    return _gathered(of_vectors, of_taus, shape, grad)


@kernel(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    also_saved=("result",),
    batch=(2, 1), autocast="cpu=float32",
    namespace="linalg",
    public="householder_product",
    out=True,
    out_type=castable("torch.linalg.householder_product"),
    backward={("input", "tau"): lambda grad, input, tau, wanted: (
        _householder_backward(grad, input, tau)
    )},
)  # fmt: skip
def householder_product(a: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The first columns of H_1 ... H_k, H_i = I - tau_i v_i v_i^H: Q from `geqrf`'s results.

    Shapes: reflectors (*, m, n), tau (*, k), result (*, m, n).

    >>> import flambeau as torch
    >>> a = torch.tensor([[3., 1.], [4., 2.]])
    >>> torch.linalg.householder_product(*torch.geqrf(a)).abs()
    tensor([[0.6000, 0.8000],
            [0.8000, 0.6000]])
    """
    return column_major(kernels.householder_product(a, tau))


@composite("orgqr(Tensor self, Tensor input2) -> Tensor", autocast="cpu=float32",
           out_type=castable("torch.linalg.householder_product"))  # fmt: skip
def orgqr(input: Any, input2: Any, *, out: Any = None) -> Any:
    """`linalg.householder_product` by its LAPACK name.

    Shapes: reflectors (*, m, n), tau (*, k), result (*, m, n).

    >>> import flambeau as torch
    >>> a = torch.tensor([[3., 1.], [4., 2.]])
    >>> torch.orgqr(*torch.geqrf(a)).abs()
    tensor([[0.6000, 0.8000],
            [0.8000, 0.6000]])
    """
    return write(orgqr, out, ops.linalg.householder_product(input, input2))


def _ormqr_backward(grad: Any, self: Any, input2: Any, input3: Any, left: bool,
                    transpose: bool, wanted: Any) -> Any:  # fmt: skip
    of_other = ops.ormqr(self, input2, grad, left, not transpose) if wanted[2] else None
    if not (wanted[0] or wanted[1]) or not input2._data.size:
        return None, None, of_other
    if not left:  # C Q is the adjoint of Q^H C^H
        grad, input3 = adjoint(grad), adjoint(input3)
    vectors, taus = _reflectors(self, input2)
    turned = transpose == left
    if turned:  # Q^H = H_k^H ... H_1^H
        vectors, taus = vectors[::-1], [conj(tau) for tau in taus[::-1]]
    of_vectors, of_taus, _ = _reflections_backward(grad, vectors, taus, input3)
    if turned:
        of_vectors, of_taus = of_vectors[::-1], [conj(tau) for tau in of_taus[::-1]]
    return (*_gathered(of_vectors, of_taus, self._data.shape, grad), of_other)


@kernel(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False)"
    " -> Tensor",
    autocast="cpu=float32",
    out=True,
    out_type="torch.ormqr: Expected input and result to have the same dtype, but input has dtype"
    "{want} and result has dtype {have}",
    also_saved=("result",),
    backward={("self", "input2", "input3"): _ormqr_backward},
)
def ormqr(a: np.ndarray, tau: np.ndarray, other: np.ndarray, left: bool,
          transpose: bool) -> np.ndarray:  # fmt: skip
    """Q C, C Q, Q^H C or C Q^H with the whole Q of `geqrf`'s results.

    Shapes: reflectors (*, m, k), tau (*, k), C with m rows (from the left) or columns.

    >>> import flambeau as torch
    >>> a, c = torch.tensor([[3., 1.], [4., 2.]]), torch.eye(2)
    >>> torch.ormqr(*torch.geqrf(a), c).abs()
    tensor([[0.6000, 0.8000],
            [0.8000, 0.6000]])
    """
    return column_major(kernels.ormqr(a, tau, other, left, transpose))
