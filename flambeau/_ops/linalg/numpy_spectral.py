"""Singular values, eigenvalues, and what rests on them: pinv, rank, least squares; over batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau._ops.linalg.checks import (
    HALF_TYPES,
    LAPACK_TYPES,
    Array,
    adjoint,
    broadcast_batches,
    check_broadcast,
    check_floating,
    check_kernel,
    check_matrix,
    check_square,
    is_vector,
    raise_first_failure,
    real_dtype,
    type_name,
)
from flambeau._ops.linalg.triangular import substitute
from flambeau._ops.table.pointwise import broadcast_shape

_NOT_FINITE = (
    "The algorithm failed to converge because the input matrix contained non-finite values."
)
_NOT_CONVERGED = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too "
    "many repeated singular values (error code: {info})."
)
_COMPLEX = {
    np.dtype(np.float32): np.dtype(np.complex64),
    np.dtype(np.float64): np.dtype(np.complex128),
}


def svd(a: Array, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """(U, S, Vh) with A = U diag(S) Vh; S is real and falls."""
    _check_svd(a)
    if not a.size and a.dtype in HALF_TYPES:
        return tuple(part.astype(a.dtype) for part in svd(a.astype(np.float32), full_matrices))  # type: ignore[return-value]
    known, infinite = _without_infinite(a)
    result = _converging(lambda: np.linalg.svd(known, full_matrices=full_matrices), a)
    return tuple(_nan_at(infinite, part) for part in result)  # type: ignore[return-value]


def svdvals(a: Array) -> Array:
    """The singular values, falling, shape (*, min(m, n))."""
    _check_svd(a)
    if not a.size and a.dtype in HALF_TYPES:
        return svdvals(a.astype(np.float32)).astype(a.dtype)
    known, infinite = _without_infinite(a)
    values = _converging(lambda: np.linalg.svd(known, compute_uv=False), a)
    return _nan_at(infinite, values)


def _without_infinite(a: Array) -> tuple[Array, Any]:
    """The matrices with zeros in the place of those that hold infinities, with which LAPACK would
    go on forever; which these are, or None."""
    infinite = np.isinf(a).any((-2, -1))
    if not infinite.any():
        return a, None
    return np.where(infinite[..., None, None], np.zeros((), a.dtype), a), infinite


def _nan_at(infinite: Any, result: Array) -> Array:
    """The results, which are nan for matrices that hold infinities, as in torch."""
    if infinite is not None:
        result[infinite] = np.nan
    return result


def _check_svd(a: Array) -> None:
    check_matrix(a, "linalg.svd")
    check_floating(a, "linalg.svd")
    if a.size:  # no kernel runs over nothing
        check_kernel(a, "linalg_svd_cpu")


def _converging(compute: Callable[[], Any], a: Array) -> Any:
    """What `compute` returns, or torch's error for the matrices that did not converge."""
    failed = np.isnan(a).any((-2, -1)).astype(np.int32)
    raise_first_failure(np.asarray(failed), "linalg.svd", _NOT_FINITE)
    try:
        return compute()
    except np.linalg.LinAlgError:
        failed = (~np.isfinite(a).all((-2, -1))).astype(np.int32)
        raise_first_failure(np.asarray(failed), "linalg.svd", _NOT_FINITE)
        everywhere = np.ones(a.shape[:-2], np.int32)
        return raise_first_failure(everywhere, "linalg.svd", _NOT_CONVERGED)


def _check_eigh(a: Array, uplo: str) -> None:
    check_square(a, "linalg.eigh")
    if uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")
    check_kernel(a, "linalg_eigh_cpu")


def _finite_or_identity(a: Array) -> tuple[Array, Array]:
    """Matrices with a nan or infinity replaced by the identity, and which ones were whole."""
    finite = np.isfinite(a).all((-2, -1))
    if finite.all():
        return a, np.asarray(finite)
    identity = np.eye(a.shape[-1], dtype=a.dtype)
    return np.where(finite[..., None, None], a, identity), np.asarray(finite)


def eigh(a: Array, uplo: str = "L") -> tuple[Array, Array]:
    """(eigenvalues rising and real, eigenvectors in columns); only one triangle is read."""
    _check_eigh(a, uplo)
    whole, finite = _finite_or_identity(a)
    values, vectors = np.linalg.eigh(whole, uplo.upper())
    if finite.all():
        return values, vectors
    nan = real_dtype(a.dtype).type(np.nan)
    return np.where(finite[..., None], values, nan), np.where(finite[..., None, None], vectors, nan)


def eigvalsh(a: Array, uplo: str = "L") -> Array:
    """The eigenvalues of a symmetric or Hermitian matrix, rising."""
    _check_eigh(a, uplo)
    whole, finite = _finite_or_identity(a)
    values = np.linalg.eigvalsh(whole, uplo.upper())
    return np.where(finite[..., None], values, values.dtype.type(np.nan))


def _check_eig(a: Array, name: str) -> np.dtype:
    if a.dtype.kind not in "fVc":
        raise RuntimeError(f"Unknown Complex ScalarType for {type_name(a)}")
    check_square(a, name)
    check_kernel(a, "linalg_eig_out_cpu")
    if not np.isfinite(a).all():
        raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")
    return _COMPLEX.get(a.dtype, a.dtype)


def eig(a: Array) -> tuple[Array, Array]:
    """(eigenvalues, eigenvectors in columns of length one), both complex."""
    dtype = _check_eig(a, "linalg.eig")
    values, vectors = np.linalg.eig(a)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def eigvals(a: Array) -> Array:
    """The eigenvalues of a general matrix, complex."""
    dtype = _check_eig(a, "linalg.eigvals")
    return np.linalg.eigvals(a).astype(dtype, copy=False)


def _default_rtol(a: Array, atol: Array | float | None, rtol: Array | float | None) -> Array:
    """eps * max(m, n), unless rtol is given or a positive atol stands in for it."""
    if rtol is not None:
        return np.asarray(rtol)
    epsilon = np.finfo(real_dtype(a.dtype)).eps * max(a.shape[-2:])
    if atol is None:
        return np.asarray(epsilon)
    return np.where(np.asarray(atol) > 0, 0.0, epsilon)


def _threshold(a: Array, sizes: Array, atol: Array | float | None, rtol: Array) -> Array:
    largest = sizes.max(-1, initial=0)
    absolute, relative = np.asarray(0.0 if atol is None else atol), rtol * largest
    broadcast_shape([absolute.shape, relative.shape])
    limit = np.maximum(absolute, relative)
    return limit.astype(sizes.dtype)[..., None]


def pinv_factors(
    a: Array,
    *,
    atol: Array | float | None = None,
    rtol: Array | float | None = None,
    hermitian: bool = False,
) -> tuple[Array, Array]:
    """(*, n, k) and (*, k, m), whose product is the Moore-Penrose inverse; values <= max(atol,
    rtol * largest) count as zero."""
    if a.ndim < 2 or a.dtype not in LAPACK_TYPES:
        shape = ", ".join(map(str, a.shape))
        raise RuntimeError(
            f"linalg.pinv({type_name(a)}{{[{shape}]}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    if a.size == 0:
        shapes = (a.shape[-1], 0), (0, a.shape[-2])
        return tuple(np.empty((*a.shape[:-2], *shape), a.dtype) for shape in shapes)  # type: ignore[return-value]
    rtol = _default_rtol(a, atol, rtol)
    if hermitian:
        values, left = eigh(a)
        right = left
    else:
        left, values, right_adjoint = svd(a, full_matrices=False)
        right = adjoint(right_adjoint)
    size = np.abs(values)
    kept = size > _threshold(a, size, atol, rtol)
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1), 0).astype(values.dtype)
    return right * inverse[..., None, :], adjoint(left)


def pinv(a: Array, **options: Any) -> Array:
    """The product of both, the Moore-Penrose inverse (*, n, m)."""
    left, right = pinv_factors(a, **options)
    return left @ right


def matrix_rank(
    a: Array,
    *,
    atol: Array | float | None = None,
    rtol: Array | float | None = None,
    hermitian: bool = False,
) -> Array:
    """How many singular values exceed max(atol, rtol * largest); int64 of shape (*)."""
    if a.ndim < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if a.dtype not in LAPACK_TYPES:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if not a.size:  # then tolerances don't count, not even by their shape
        return np.zeros(a.shape[:-2], np.int64)
    sizes = np.abs(eigvalsh(a)) if hermitian else svdvals(a)
    limit = _threshold(a, sizes, atol, _default_rtol(a, atol, rtol))
    return np.asarray((sizes > limit).sum(-1, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """The four results of ``lstsq``; what a driver does not give is an empty array."""

    solution: Array
    residuals: Array
    rank: Array
    singular_values: Array


_NOT_OF_FULL_RANK = (
    "The least squares solution could not be computed because the input matrix does not have full "
    "rank (error code: {info})."
)
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(a: Array, b: Array, rcond: float | None = None, driver: str = "gelsy") -> LeastSquares:
    """X that minimises |A X - B|, by QR (gels, full rank) or by the SVD (the other drivers).

    Shapes (*, m, n) and (*, m, k) or (*, m); batches broadcast.
    """
    _check_lstsq(a, b, driver)
    vector = is_vector(a, b)
    batch = a.shape[:-2]
    a, right = broadcast_batches(a, b[..., None] if vector else b)
    if driver == "gels":
        solution = _solve_by_qr(a, right)
        rank, sizes = np.empty(0, np.int64), np.empty(0, real_dtype(a.dtype))
        full = True
    else:
        if driver == "gelsd" and rcond is not None and not 0 < rcond < 1:
            rcond = float(np.finfo(real_dtype(a.dtype)).eps)  # as LAPACK's
        solution, rank, sizes = _solve_by_svd(a, right, rcond)
        full = bool((rank == a.shape[-1]).all())
        rank, sizes = _of_each(rank, batch, 0), _of_each(sizes, batch, 1)
    residuals = np.empty(0, real_dtype(a.dtype))
    if a.shape[-2] > a.shape[-1] and driver != "gelsy" and full:
        residuals = np.square(np.abs(a @ solution - right)).sum(-2)
    if driver == "gelsy":
        sizes = np.empty(0, real_dtype(a.dtype))
    if vector:
        solution = solution[..., 0]
    return LeastSquares(solution, residuals, rank, sizes)


def _of_each(values: Array, batch: tuple[int, ...], dims: int) -> Array:
    """What was found of matrices (in so many dims) that were repeated, of each of them once."""
    repeats = values.ndim - dims - len(batch)
    return values[(0,) * repeats + tuple(slice(0, size) for size in batch)]


def _check_lstsq(a: Array, b: Array, driver: str) -> None:
    name = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{type_name(a)} and other's dtype {type_name(b)}"
        )
    if not 0 <= a.ndim - b.ndim <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and "
            "(input.dim() - other.dim()) <= 1"
        )
    vector = is_vector(a, b)
    side = -1 if vector else -2
    if b.shape[side] != a.shape[-2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({side})")
    check_broadcast(a.shape[:-2], b.shape[: -1 if vector else -2])
    if driver not in _DRIVERS:
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    if a.dtype not in LAPACK_TYPES:
        raise RuntimeError("This function doesn't handle types other than float and double")


def _solve_by_qr(a: Array, b: Array) -> Array:
    is_tall = a.shape[-2] >= a.shape[-1]
    factor, upper = np.linalg.qr(a if is_tall else adjoint(a))
    solved = _regular(upper, ~a.any((-2, -1)))
    if is_tall:
        found = substitute(upper + solved, adjoint(factor) @ b, upper=True)
    else:
        found = factor @ substitute(adjoint(upper) + solved, b, upper=False)
    return np.where(solved.any((-2, -1), keepdims=True), 0, found) if solved.any() else found


def _regular(upper: Array, is_nothing: Array) -> Array:
    """What makes the triangles of zeros, whose solution is 0, regular.

    Raises LinAlgError where another one has a 0 on its diagonal.
    """
    zeros = np.diagonal(upper, axis1=-2, axis2=-1) == 0
    first = np.where(zeros.any(-1) & ~is_nothing, zeros.argmax(-1) + 1, 0) if zeros.size else zeros
    raise_first_failure(np.asarray(first), "torch.linalg.lstsq", _NOT_OF_FULL_RANK)
    return np.eye(upper.shape[-1], dtype=upper.dtype) * is_nothing[..., None, None]


def _solve_by_svd(a: Array, b: Array, rcond: float | None) -> tuple[Array, Array, Array]:
    left, sizes, right = svd(a, full_matrices=False)
    if rcond is None:
        rcond = float(np.finfo(sizes.dtype).eps * max(a.shape[-2:]))
    kept = sizes > rcond * sizes.max(-1, initial=0)[..., None]
    inverse = np.where(kept, 1.0 / np.where(kept, sizes, 1), 0).astype(sizes.dtype)
    projected = inverse[..., None] * (adjoint(left) @ b)
    rank = np.asarray(kept.sum(-1, dtype=np.int64))
    return adjoint(right) @ projected, rank, sizes
