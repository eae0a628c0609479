"""Cholesky factors over batches, and solving and inverting with them."""

import numpy as np

from flambeau._ops.launching.modules import launcher
from flambeau._ops.linalg.checks import (
    Array,
    adjoint,
    check_floating,
    check_kernel,
    check_square,
    raise_first_failure,
)
from flambeau._ops.linalg.triangular import check_old_style, compiled, solve_from_cholesky

SMALL = 32
"""Up to this many rows a kernel factors batches; LAPACK the others."""

_NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite "
    "(the leading minor of order {info} is not positive-definite)."
)
_SINGULAR = (
    "The diagonal element {info} is zero, the inversion could not be completed because the "
    "input matrix is singular."
)


def cholesky_ex(a: Array, *, upper: bool = False) -> tuple[Array, Array]:
    """(L, info) with A = L L^H, or (U, info) with A = U^H U; only that triangle of A is read.

    info, int32 of shape (*), is the order of the first minor that is not positive-definite.
    """
    name = "linalg.cholesky"
    check_square(a, name)
    check_floating(a, name)
    check_kernel(a, "cholesky_cpu")
    lower, info = _lower_factor(adjoint(a) if upper else a)
    return (adjoint(lower) if upper else lower), info


def _lower_factor(a: Array) -> tuple[Array, Array]:
    if a.shape[-1] <= SMALL and compiled(a, a.size):
        found = launcher("linalg.launch").cholesky(a)
        if found is None:
            return _factor_by_columns(a)
        return found, np.zeros(a.shape[:-2], np.int32)
    try:
        factor = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return _factor_by_columns(a)
    if np.isnan(np.diagonal(factor, axis1=-2, axis2=-1)).any():
        return _factor_by_columns(a)  # NumPy lets NaN pass
    return factor, np.zeros(a.shape[:-2], np.int32)


def _factor_by_columns(a: Array) -> tuple[Array, Array]:
    """Left-looking, by columns; a matrix that fails keeps its columns from there on."""
    factor = np.tril(a)
    info = np.zeros(a.shape[:-2], np.int32)
    with np.errstate(all="ignore"):
        for column in range(a.shape[-1]):
            current = factor[..., column:, column].copy()
            done = factor[..., column:, :column] @ adjoint(
                factor[..., column : column + 1, :column]
            )
            current -= done[..., 0]
            head = current[..., 0].real
            broken = (info == 0) & ~(head > 0)
            info[broken] = column + 1
            root = np.sqrt(head)[..., None]
            alive = (info == 0)[..., None]
            factor[..., column:, column] = np.where(
                alive, current / root, factor[..., column:, column]
            )
            factor[..., column, column] = np.where(broken, head, factor[..., column, column])
    return factor, info


def cholesky(a: Array, *, upper: bool = False) -> Array:
    """L with A = L L^H, or U with A = U^H U; LinAlgError unless A is positive-definite."""
    factor, info = cholesky_ex(a, upper=upper)
    raise_first_failure(info, "linalg.cholesky", _NOT_POSITIVE)
    return factor


def cholesky_solve(b: Array, factor: Array, upper: bool = False) -> Array:
    """X with A X = B from A's Cholesky factor."""
    for letter, array in (("b", b), ("u", factor)):
        if array.ndim < 2:
            raise RuntimeError(
                f"{letter} should have at least 2 dimensions, "
                f"but has {array.ndim} dimensions instead"
            )
    check_old_style(b, factor, "cholesky_solve")
    check_kernel(factor, "cholesky_solve_cpu")
    return solve_from_cholesky(b, factor, upper)


def cholesky_inverse(factor: Array, upper: bool = False) -> Array:
    """A^-1 from A's Cholesky factor; LinAlgError for a zero on the diagonal."""
    name = "cholesky_inverse"
    check_square(factor, name)
    check_kernel(factor, "cholesky_inverse_out_cpu")
    zero = np.diagonal(factor, axis1=-2, axis2=-1) == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if zero.shape[-1] else zero.sum(-1)
    raise_first_failure(np.asarray(info), name, _SINGULAR)
    return solve_from_cholesky(np.eye(factor.shape[-1], dtype=factor.dtype), factor, upper)
