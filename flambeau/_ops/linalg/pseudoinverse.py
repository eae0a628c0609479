"""What rests on singular values: the pseudoinverse, the rank, least squares, condition numbers.

Adjoint of the pseudoinverse: Golub and Pereyra (1973).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._ops.linalg import by_name as kernels
from flambeau._ops.linalg.checks import is_vector
from flambeau._ops.linalg.systems import (
    adjoint,
    adjoint_times,
    expanded,
    fresh_all,
    named,
    times_adjoint,
)
from flambeau._ops.reductions.sums import write
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import UNKNOWN, composite, internal, kernel
from flambeau._ops.table.outputs import castable
from flambeau._tensor.tensor import Tensor, on_device_of, wrap

INFINITY = math.inf


# ---- pseudoinverse and rank


def pinv_gradient(grad: Any, A: Any, pinv: Any) -> Any:
    """-P^H G P^H + (I - A P) G^H P P^H + P^H P G^H (I - P A) with P the pseudoinverse."""
    turned = adjoint(grad)
    above = times_adjoint(ops.matmul(turned, pinv), pinv)
    beside = ops.matmul(adjoint_times(pinv, pinv), turned)
    above = above - ops.matmul(A, ops.matmul(pinv, above))
    beside = beside - ops.matmul(ops.matmul(beside, pinv), A)
    return above + beside - adjoint_times(pinv, times_adjoint(grad, pinv))


def _pinv_backward(grad: Any, A: Any, result: Any) -> Any:
    return pinv_gradient(grad, A, result)


@internal(
    "_pinv_factors(Tensor A, Tensor? atol, Tensor? rtol, bool hermitian) -> (Tensor, Tensor)",
)
def pinv_factors(a: np.ndarray, atol: Any, rtol: Any, hermitian: bool) -> tuple[np.ndarray, ...]:
    """Two matrices whose product is the pseudoinverse, with tolerances as arrays."""
    return fresh_all(kernels.pinv_factors(a, atol=atol, rtol=rtol, hermitian=hermitian))


@composite(
    "_linalg_pinv(Tensor A, Tensor? atol, Tensor? rtol, bool hermitian) -> Tensor",
    node="LinalgPinvBackward0",
    saved_names={"A": "self"},
    function=False,
    constants={"atol": "linalg_pinv", "rtol": "linalg_pinv"},
    backward={"A": _pinv_backward},
)
def pinv_product(A: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """The pseudoinverse; the product is autocast's, as any."""
    return ops.matmul(*ops._pinv_factors(A, atol, rtol, hermitian))


def _tolerance(value: Any, name: str, tensor: Any) -> Any:
    """A tolerance as a tensor; `name` is for the error of complex ones."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        if value.is_complex():
            raise RuntimeError(
                f"{name} tensor of complex type is not supported. Got {value.dtype.scalar_name}"
            )
        return value
    return on_device_of(wrap(np.asarray(value, np.float64)), tensor)


@composite("linalg_pinv(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, "
           "bool hermitian=False) -> Tensor", namespace="linalg", public="pinv",
           method=False, out_type=castable("linalg.pinv"), several=True)  # fmt: skip
def linalg_pinv(input: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,
                rtol: Any = None, out: Any = None) -> Any:  # fmt: skip
    """The Moore-Penrose inverse; singular values up to max(atol, rtol * largest) count as 0.

    From shape (*, m, n) to (*, n, m).

    >>> import flambeau as torch
    >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    name = "torch.linalg.pinv: " + ("rtol" if rcond is None else "rcond")
    rtol = _tolerance(rtol if rcond is None else rcond, name, input)
    result = ops._linalg_pinv(
        input, _tolerance(atol, "torch.linalg.pinv: atol", input), rtol, hermitian
    )
    return write(linalg_pinv, out, result)


@composite("pinverse(Tensor self, float rcond=1e-15) -> Tensor", autocast="cpu=float32")
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """The Moore-Penrose inverse: `linalg.pinv` with a relative tolerance.

    From shape (*, m, n) to (*, n, m).

    >>> import flambeau as torch
    >>> torch.pinverse(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return ops.linalg.pinv(input, rtol=rcond)


@kernel(
    "_linalg_matrix_rank(Tensor A, Tensor? atol, Tensor? rtol, bool hermitian) -> Tensor",
    function=False,
)
def rank_kernel(a: np.ndarray, atol: Any, rtol: Any, hermitian: bool) -> np.ndarray:
    """How many singular values exceed the tolerance."""
    return np.asarray(kernels.matrix_rank(a, atol=atol, rtol=rtol, hermitian=hermitian))


@composite("linalg_matrix_rank(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, "
           "bool hermitian=False) -> Tensor",
           autocast="cpu=float32", namespace="linalg", public="matrix_rank",
           method=False)  # fmt: skip
def matrix_rank(input: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None,
                rtol: Any = None, out: Any = None) -> Any:  # fmt: skip
    """How many singular values (eigenvalues) exceed max(atol, rtol * largest).

    From shape (*, m, n) to (*).

    >>> import flambeau as torch
    >>> torch.linalg.matrix_rank(torch.ones(3, 3))
    tensor(1)
    """
    if tol is not None:
        atol, rtol = tol, 0.0
    name = "torch.linalg.matrix_rank: "
    atol, rtol = _tolerance(atol, name + "atol", input), _tolerance(rtol, name + "rtol", input)
    result = ops._linalg_matrix_rank(input, atol, rtol, hermitian)
    return write(matrix_rank, out, result)


# ---- least squares


def _lstsq_backward(grads: Any, self: Any, b: Any, solution: Any, wanted: Any) -> Any:
    """The gradient of P b, and of the residuals |A X - b|^2."""
    of_x, of_residuals = grads[0], grads[1]
    vector = self._data.ndim - b._data.ndim == 1 or b._data.ndim == 1
    if vector:
        of_x, b, solution = of_x.unsqueeze(-1), b.unsqueeze(-1), solution.unsqueeze(-1)
    pinv = ops.linalg.pinv(self)
    of_a = pinv_gradient(times_adjoint(of_x, b), self, pinv) if wanted[0] else None
    of_b = adjoint_times(pinv, of_x)
    if of_residuals is not None and of_residuals._data.size:
        error = 2 * (ops.matmul(self, solution) - b) * of_residuals.unsqueeze(-2)
        of_a = None if of_a is None else of_a + times_adjoint(error, solution)
        of_b = of_b - error
    return of_a, of_b.squeeze(-1) if vector else of_b


def _in_longer_columns(solution: np.ndarray, rows: int, vector: bool) -> np.ndarray:
    """The solution as the head of columns with A's length: LAPACK writes X where B stood."""
    columns = solution if vector else solution.swapaxes(-2, -1)
    *others, count = columns.shape
    memory = np.zeros((*others, max(rows, count)), solution.dtype)
    head = memory[..., :count]
    head[...] = columns
    return head if vector else head.swapaxes(-2, -1)


def _has_known_residuals(a: np.ndarray, b: np.ndarray, rcond: Any, driver: str) -> str | None:
    """Residuals are there where the rank is full, which only "gels" takes for granted."""
    is_known = a.ndim < 2 or a.shape[-2] <= a.shape[-1] or driver in ("gels", "gelsy")
    return None if is_known else UNKNOWN


@internal(
    "_linalg_lstsq(Tensor self, Tensor b, float? rcond, str driver)"
    " -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    node="LinalgLstsqBackward0",
    shown="linalg_lstsq",
    nondifferentiable=("rank", "singular_values"),
    shape=_has_known_residuals,
    backward={("self", "b"): _lstsq_backward},
)
def lstsq_kernel(a: np.ndarray, b: np.ndarray, rcond: Any, driver: str) -> tuple[np.ndarray, ...]:
    """The four results of `linalg.lstsq`."""
    found = kernels.lstsq(a, b, rcond, driver)
    solution = _in_longer_columns(found.solution, a.shape[-2], is_vector(a, b))
    return (solution, *fresh_all((found.residuals, found.rank, found.singular_values)))


@composite(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None)"
    " -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    bare=True,
    autocast="cpu=float32",
    namespace="linalg",
    public="lstsq",
    method=False,
    out_type=castable("torch.linalg.lstsq"),
)
def lstsq(input: Any, b: Any, rcond: float | None = None, *, driver: str | None = None,
          out: Any = None) -> Any:  # fmt: skip
    """X that minimises |A X - B|: by QR ("gels") or the SVD ("gelsy", "gelsd", "gelss").

    Shapes: A (*, m, n), B (*, m, k) or (*, m), X (*, n, k) or (*, n).

    >>> import flambeau as torch
    >>> torch.linalg.lstsq(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[1.0],
    ...     [4.0]])).solution
    tensor([[1.],
            [2.]])
    """
    result = ops._linalg_lstsq(input, b, rcond, driver or "gelsy")
    return write(lstsq, out, named(lstsq, *result))


# ---- condition numbers


@composite("linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
           autocast="cpu=float32", namespace="linalg", public="cond",
           method=False, out_type=castable("linalg.cond"), several=True,
           takes={1: (str,)})  # fmt: skip
def cond(input: Any, p: Any = None, *, out: Any = None) -> Any:
    """How far errors can grow when a system with A is solved: norm(A) * norm(A^-1) for a norm p.

    From shape (*, m, n) to (*); only p = 2, -2 and None take m other than n.

    >>> import flambeau as torch
    >>> torch.linalg.cond(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    if input._data.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        return write(cond, out, _singular_cond(input, p))
    if p not in ("fro", "nuc", 1, -1, INFINITY, -INFINITY):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    rows, columns = input._data.shape[-2:]
    if rows != columns and (input._data.size or isinstance(p, str)):
        raise RuntimeError(f"linalg.cond(ord={p}): A must be batches of square matrices, but they "
                           f"are {rows} by {columns} matrices")  # fmt: skip
    return write(cond, out, _norm_cond(input, p))


def _no_elements(A: Any) -> Any:
    real = ops.new_zeros(A, A._data.shape[:-2])
    return real.real if A._data.dtype.kind == "c" else real


def _singular_cond(A: Any, p: Any) -> Any:
    if not A._data.size:
        return _no_elements(A)
    values = ops.linalg.svdvals(A)
    largest, smallest = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
    ratio = smallest / largest if p == -2 else largest / smallest
    return ratio.squeeze(-1)


def _norm_cond(A: Any, p: Any) -> Any:
    if not A._data.size:
        return _no_elements(A)
    inverse, info = ops.linalg.inv_ex(A)
    singular = info != 0
    if not info._data.any():
        return ops.linalg.matrix_norm(A, p) * ops.linalg.matrix_norm(inverse, p)
    inverse = ops.masked_fill(inverse, expanded(singular), 0)  # what stands there is no number
    result = ops.linalg.matrix_norm(A, p) * ops.linalg.matrix_norm(inverse, p)
    return ops.masked_fill(result, singular, INFINITY)
