"""Extreme eigenpairs of large symmetric matrices: LOBPCG (Knyazev, 2001).

Each step looks for the best pairs in the span of the present vectors X, their residuals and the
directions of the last step (Rayleigh and Ritz). The three parts are made orthonormal first, as
Duersch, Shao, Yang and Gu (2018) advise, so that nearly dependent ones are dropped, not divided by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._ops.linalg.systems import adjoint_times, fresh, times_adjoint
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, internal
from flambeau._tensor.tensor import Tensor

DROPPED = 64  # Directions shorter than so many roundings of the longest one are noise.


class LOBPCG:
    """The state of a search, as a tracker sees it."""

    def __init__(self, A: Any, B: Any, X: Any, iK: Any, sizes: dict[str, int], tol: float,
                 largest: bool, method: str, tracker: Any) -> None:  # fmt: skip
        self.A, self.B, self.iK = A, B, iK
        self.iparams, self.fparams = sizes, {"tol": tol}
        self.bparams, self.method, self.tracker = {"largest": largest}, method, tracker
        self.ivars = {"istep": 0, "iterations_left": sizes["niter"], "converged_count": 0}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, Any] = {}
        self.fvars["A_norm"] = _norm(_times(A, X)) / _norm(X)
        self.fvars["B_norm"] = _norm(_times(B, X)) / _norm(X)
        self.X = X
        self.E: Any = None
        self.R: Any = None
        self.S: Any = X

    def run(self) -> tuple[Any, Any]:
        """(eigenvalues, eigenvectors): the first k."""
        directions = None
        self._choose(self.X, None)
        while not self._finished():
            residuals = self.R if self.iK is None else self.iK.matmul(self.R)
            directions = self._choose(residuals, directions)
        k = self.iparams["k"]
        return self.E[:k], self.X[:, :k]

    def _choose(self, residuals: Any, directions: Any) -> Any:
        """The best pairs in the span of X and what else is known; the step's directions."""
        basis = _orthonormal(self.X, None, self.B)
        count = basis._data.shape[-1]
        for part in (residuals, directions):
            if part is not None and part is not self.X:
                basis = ops.cat([basis, _orthonormal(part, basis, self.B)], -1)
        values, vectors = ops.linalg.eigh(adjoint_times(basis, _times(self.A, basis)))
        if self.bparams["largest"]:
            values, vectors = values.flip(-1), vectors.flip(-1)
        n = self.iparams["n"]
        vectors = vectors[:, :n]
        self.S, self.E, self.X = basis, values[:n], ops.matmul(basis, vectors)
        if basis._data.shape[-1] == count:
            return None
        return ops.matmul(basis[:, count:], vectors[count:])

    def _finished(self) -> bool:
        """Whether enough pairs fulfil the equation, or no step is left."""
        self.R = _times(self.A, self.X) - _times(self.B, self.X) * self.E
        scale = self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"]
        errors = ops.linalg.vector_norm(self.R, dim=0) / ops.linalg.vector_norm(self.X, dim=0)
        self.tvars["rerr"] = errors / scale
        self._count()
        if self.tracker is not None:
            self.tracker(self)
        done = self.ivars["converged_count"] >= self.iparams["n"]
        if done or not self.ivars["iterations_left"]:
            return True
        self.ivars["istep"] += 1
        self.ivars["iterations_left"] -= 1
        return False

    def _count(self) -> None:
        """How many pairs have converged, without a gap from the first."""
        within = (self.tvars["rerr"]._data <= self.fparams["tol"]).tolist()
        self.ivars["converged_count"] = (within + [False]).index(False)
        self.ivars["converged_end"] = self.iparams["n"]


def _times(matrix: Any, right: Any) -> Any:
    """`matrix @ right`, where None is the identity."""
    return right if matrix is None else matrix.matmul(right)


def _norm(tensor: Any) -> float:
    return float(ops.linalg.vector_norm(tensor))


def _orthonormal(columns: Any, basis: Any, B: Any) -> Any:
    """A basis of what the columns span beside `basis`; u and v are orthogonal where u^H B v = 0.

    Twice, since rounding leaves some of the first projection's.
    """
    for _ in range(2):
        if basis is not None:
            columns = columns - ops.matmul(basis, adjoint_times(basis, _times(B, columns)))
        columns = _independent(columns, B)
    return columns


def _independent(columns: Any, B: Any) -> Any:
    """Orthonormal combinations of columns by their Gram matrix, without those that vanish."""
    lengths = ops.linalg.vector_norm(columns, dim=0, keepdim=True)
    columns = columns[:, (lengths > 0)[0]] / lengths[lengths > 0]
    if not columns._data.size:
        return columns
    values, vectors = ops.linalg.eigh(adjoint_times(columns, _times(B, columns)))
    limit = DROPPED * np.finfo(values._data.dtype).eps * values._data.max()
    kept = values > limit
    return ops.matmul(columns, vectors[:, kept]) / values[kept].sqrt()


# ---- gradients


def _pairs_backward(grads: Any, A: Any, E: Any, X: Any) -> Any:
    """x g x^H for eigenvalues; for vectors (E - A)^+ gX x^H, Hermitian as A is.

    With x x^H added, E - A can be inverted; on what is orthogonal to x that changes nothing.
    """
    of_values, of_vectors = grads
    grad = times_adjoint(X * of_values.unsqueeze(-2), X)
    columns = X.mT.unsqueeze(-1)
    turned = of_vectors.mT.unsqueeze(-1)
    turned = turned - columns * adjoint_times(columns, turned)
    identity = ops.eye(A._data.shape[-1], dtype=A.dtype, device=A.device)
    matrix = (A + A.mH) * 0.5  # so that second derivatives are symmetric, too
    shifted = E.unsqueeze(-1).unsqueeze(-1) * identity - matrix.unsqueeze(-3)
    solved = ops.linalg.solve(shifted + times_adjoint(columns, columns), turned)
    grad = grad + times_adjoint(solved, columns).sum(-3)
    return (grad + grad.mH) * 0.5


@internal(
    "_lobpcg_pairs(Tensor A, Tensor values, Tensor vectors) -> (Tensor E, Tensor X)",
    node="LOBPCGAutogradFunctionBackward",
    backward={"A": lambda grads, A, E, X: _pairs_backward(grads, A, E, X)},
)
def lobpcg_pairs(a: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, ...]:
    """Eigenpairs that were found, as functions of the matrix."""
    return fresh(values).copy(), fresh(vectors).copy()


# ---- the public function


def _check(A: Any, B: Any, X: Any, k: int, n: int) -> None:
    shape = A.shape
    if shape[-2] != shape[-1]:
        raise AssertionError(f"A must be square, got shape {shape}")
    if B is not None and B.shape != shape:
        raise AssertionError(f"A and B must have same shape, got {shape} vs {B.shape}")
    if shape[-1] < 3 * max(k, n):
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={shape[-1]}) is "
            f"smaller than 3 x the number of requested eigenpairs (={n})"
        )
    if X is not None and X.shape[-2] != shape[-1]:
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(shape[-1], n)}")


def _check_gradients(A: Any, B: Any) -> None:
    if A.is_sparse and A.requires_grad:
        raise ValueError(
            "lobpcg.backward does not support sparse input yet. Note that lobpcg.forward does "
            "though."
        )
    if B is not None and (A.requires_grad or B.requires_grad):
        raise ValueError("lobpcg.backward does not support backward with B != I yet.")


def _detached(tensor: Any) -> Any:
    return tensor.detach() if isinstance(tensor, Tensor) else tensor


def _entry(tensor: Any, position: int) -> Any:
    """One matrix of a batch that was flattened."""
    if tensor is None or tensor.ndim == 2:
        return tensor
    return tensor.reshape(-1, *tensor.shape[-2:])[position]


@composite("lobpcg(Tensor A, int? k=None, Tensor? B=None, Tensor? X=None, int? n=None, "
           "Tensor? iK=None, int? niter=None, float? tol=None, bool? largest=None, "
           "str? method=None) -> (Tensor, Tensor)", method=False)  # fmt: skip
def lobpcg(A: Any, k: int | None = None, B: Any = None, X: Any = None, n: int | None = None,
           iK: Any = None, niter: int | None = None, tol: float | None = None,
           largest: bool | None = None, method: str | None = None, tracker: Any = None,
           ortho_iparams: Any = None, ortho_fparams: Any = None,
           ortho_bparams: Any = None) -> Any:  # fmt: skip
    """(E, X): the k largest (smallest) eigenvalues of A X = B X E and their vectors.

    A and B are symmetric, B positive-definite; where gradients are asked for, (A + A^T) / 2 is what
    counts, so that finite differences agree with them; X holds first guesses, iK nearly inverts A;
    `tracker` is called with the state after each step. "basic" and "ortho" are one method here,
    which needs none of the parameters of PyTorch's orthogonalization.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> values, vectors = torch.lobpcg(torch.diag(torch.arange(1., 10.)), k=1)
    >>> values.round()
    tensor([9.])
    """
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    _check(A, B, X, k, n)
    _check_gradients(A, B)
    if A.requires_grad:
        A = (A + A.mT) * 0.5
    matrix, other, guess, near = (_detached(tensor) for tensor in (A, B, X, iK))
    if tol is None:
        tol = float(np.finfo(A.dtype.numpy_dtype).eps) ** 0.5
    batch = list(A.shape[:-2])
    found = []
    for i in range(int(np.prod(batch))):
        start = _entry(guess, i)
        if start is None:
            start = ops.randn(A.shape[-1], n, dtype=A.dtype, device=A.device)
        sizes = {"m": A.shape[-1], "n": n, "k": k, "niter": 1000 if niter is None else niter}
        search = LOBPCG(_entry(matrix, i), _entry(other, i), start, _entry(near, i), sizes, tol,
                        largest is None or largest, method or "ortho", tracker)  # fmt: skip
        found.append(search.run())
    values = ops.stack([pair[0] for pair in found]).reshape([*batch, -1])
    vectors = ops.stack([pair[1] for pair in found]).reshape([*batch, A.shape[-1], -1])
    return ops._lobpcg_pairs(A, values, vectors) if A.requires_grad else (values, vectors)
