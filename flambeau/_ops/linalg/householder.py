"""QR and products of Householder reflectors, over batches.

A product H_1 ... H_k of reflectors I - tau_i v_i v_i^H is I - V T V^H with T upper triangular
(Schreiber and Van Loan 1989): applying it takes three matrix products.
"""

import numpy as np

from flambeau._ops.linalg.checks import (
    Array,
    adjoint,
    broadcast_batches,
    check_floating,
    check_kernel,
    check_matrix,
    transposed,
    type_name,
)
from flambeau._ops.table.dims import size_at

_QR_MODES = ("reduced", "complete", "r")


def qr(a: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """(Q, R); in mode "r" Q is an empty array."""
    if mode not in _QR_MODES:
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of "
            "'reduced' (default), 'r', or 'complete'"
        )
    check_matrix(a, "linalg.qr")
    check_floating(a, "linalg.qr")
    check_kernel(a, "geqrf_cpu")
    if mode == "r":
        return np.empty(0, a.dtype), np.linalg.qr(a, "r")
    result = np.linalg.qr(a, mode)
    return result[0], result[1]


def geqrf(a: Array) -> tuple[Array, Array]:
    """(reflectors below and R on and above the diagonal, tau), as LAPACK's geqrf."""
    if a.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_kernel(a, "geqrf_cpu")
    reflectors, tau = np.linalg.qr(a, "raw")
    return transposed(reflectors), tau


def _compact(reflectors: Array, tau: Array) -> tuple[Array, Array]:
    """(V, T) of shapes (*, m, k) and (*, k, k)."""
    count = tau.shape[-1]
    rows = reflectors.shape[-2]
    unit = np.eye(rows, count, dtype=reflectors.dtype)
    vectors = np.tril(reflectors[..., :count], -1) + unit
    products = adjoint(vectors) @ vectors
    triangle = np.zeros((*tau.shape, count), reflectors.dtype)
    for k in range(count):
        scale = tau[..., k, None]
        head = triangle[..., :k, :k] @ products[..., :k, k, None]
        triangle[..., :k, k] = -scale * head[..., 0]
        triangle[..., k, k] = tau[..., k]
    return vectors, triangle


def householder_product(a: Array, tau: Array) -> Array:
    """The first n columns of H_1 ... H_k; a is (*, m, n), tau (*, k), k <= n <= m."""
    name = "torch.linalg.householder_product"
    _check_householder(a, tau, name)
    check_kernel(a, "orgqr_cpu")
    vectors, triangle = _compact(a, tau)
    rows, columns = a.shape[-2:]
    right = triangle @ adjoint(vectors[..., :columns, :])
    return np.eye(rows, columns, dtype=a.dtype) - vectors @ right


def _check_householder(a: Array, tau: Array, name: str) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if a.shape[-2] < a.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if tau.ndim and a.shape[-1] < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if tau.ndim != a.ndim - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {tau.ndim} and input.ndim is equal to {a.ndim}"
        )
    if tau.dtype != a.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {type_name(tau)} does not match input dtype {type_name(a)}"
        )


def ormqr(a: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False) -> Array:
    """Q C, C Q, Q^H C or C Q^H with the full Q = H_1 ... H_k of geqrf's output."""
    _check_ormqr(a, tau, other, left)
    check_kernel(a, "ormqr_cpu")
    vectors, triangle = _compact(a, tau)
    vectors, triangle, other = broadcast_batches(vectors, triangle, other)
    middle = adjoint(triangle) if transpose else triangle
    if left:
        return other - vectors @ (middle @ (adjoint(vectors) @ other))
    return other - ((other @ vectors) @ middle) @ adjoint(vectors)


def _check_ormqr(a: Array, tau: Array, other: Array, left: bool) -> None:
    side = -2 if left else -1
    for role, array in (("input", a), ("other", other)):
        if array.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {role} must have at least 2 dimensions.")
    if other.shape[side] != a.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if size_at(tau, -1) != min(other.shape[side], a.shape[-1]):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    for role, array, fewer, words in (
        ("tau", tau, 1, "one dimension less than"),
        ("other", other, 0, "the same number of dimensions as"),
    ):
        if array.ndim != a.ndim - fewer:
            raise RuntimeError(
                f"torch.ormqr: Expected {role} to have {words} input, but got {role}.ndim equal to "
                f"{array.ndim} and input.ndim is equal to {a.ndim}"
            )
    for role, batch in (("tau", tau.shape[:-1]), ("other", other.shape[:-2])):
        if batch != a.shape[:-2]:
            raise RuntimeError(
                f"torch.ormqr: Expected batch dimensions of {role} to be equal to "
                f"input.shape[:-2], but got {list(batch)}"
            )
    for role, array in (("tau", tau), ("other", other)):
        if array.dtype != a.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {role} to have the same dtype, but input has "
                f"dtype{type_name(a)} and {role} has dtype {type_name(array)}"
            )
