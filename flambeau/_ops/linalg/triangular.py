"""Triangular systems over batches: blocked substitution, so that large ones run in matmul."""

import numpy as np

from flambeau._ops.launching.modules import launcher
from flambeau._ops.linalg.checks import (
    Array,
    adjoint,
    broadcast_batches,
    check_equation,
    check_kernel,
    check_matrix,
    check_square,
    transposed,
    type_name,
)
from flambeau._ops.table.dims import wrap_dim
from flambeau._runtime import choice

# Up to this many rows substitution, above it halves and matrix products.
BLOCK = 16


def solve_triangular(
    a: Array, b: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    """X with A X = B (or X A = B) for triangular A; the other triangle of A is never read.

    Shapes (*, n, n) and (*, n, k) or (*, k, n); batches broadcast.  A zero on the diagonal gives
    infinities, as in torch.
    """
    name = "linalg.solve_triangular"
    check_square(a, name)
    check_matrix(b, name, "B")
    check_equation(a, b, name, left)
    check_kernel(a, "triangular_solve_cpu")
    # As in torch, B follows the dtype of A here.
    b = b.astype(a.dtype, copy=False)
    return substitute(a, b, upper=upper, left=left, unit=unitriangular)


def triangular_solve(
    b: Array, a: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    """The older torch.triangular_solve: (solution, copy of A)."""
    name = "torch.triangular_solve"
    for letter, array in (("b", b), ("A", a)):
        if array.ndim < 2:
            raise RuntimeError(
                f"{name}: Expected {letter} to have at least 2 dimensions, "
                f"but it has {array.ndim} dimensions instead"
            )
    check_old_style(b, a, "triangular_solve")
    check_kernel(a, "triangular_solve_cpu")
    wide_a, wide_b = broadcast_batches(a, b)
    matrix = transposed(wide_a) if transpose else wide_a
    solution = substitute(matrix, wide_b, upper=upper != transpose, left=True, unit=unitriangular)
    return solution, wide_a.copy()


def check_old_style(b: Array, a: Array, name: str) -> None:
    """Checks that the functions from before torch.linalg share, in their words."""
    if b.dtype != a.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {type_name(b)} "
            f"and A of type {type_name(a)} instead."
        )
    rows, columns = a.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )
    wrap_dim(-2, b.ndim)
    if b.shape[-2] != rows:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {rows} by {rows} "
            f"but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )


def substitute(a: Array, b: Array, *, upper: bool, left: bool = True, unit: bool = False) -> Array:
    """``solve_triangular`` without the checks; every case is turned into A X = B, A lower."""
    if not left:
        solution = substitute(transposed(a), transposed(b), upper=not upper, unit=unit)
        return transposed(solution)
    a, b = broadcast_batches(a, b)
    if compiled(b, b.size * a.shape[-1]):
        return launcher("linalg.launch").substitute(a, b, upper, unit)  # type: ignore[no-any-return]
    if not upper:
        return _forward(a, b.copy(), unit)
    # Negative strides would keep matmul from BLAS, so the reversed matrix is written out.
    reversed_matrix = np.ascontiguousarray(a[..., ::-1, ::-1])
    return _forward(reversed_matrix, b[..., ::-1, :].copy(), unit)[..., ::-1, :]


def compiled(a: Array, work: int) -> bool:
    """Whether a kernel of linear algebra does so many multiplications with numbers of this type."""
    return bool(work) and choice.compiled("linalg", work) and a.dtype.kind == "f"


def _forward(a: Array, x: Array, unit: bool) -> Array:
    """Forward substitution in place: x holds B and becomes the solution."""
    with np.errstate(all="ignore"):
        _forward_halves(a, x, unit)
    return x


def _forward_halves(a: Array, x: Array, unit: bool) -> None:
    size = a.shape[-1]
    if size <= BLOCK:
        _forward_block(a, x, unit)
        return
    middle = size // 2
    _forward_halves(a[..., :middle, :middle], x[..., :middle, :], unit)
    x[..., middle:, :] -= a[..., middle:, :middle] @ x[..., :middle, :]
    _forward_halves(a[..., middle:, middle:], x[..., middle:, :], unit)


def _forward_block(a: Array, x: Array, unit: bool) -> None:
    for row in range(a.shape[-1]):
        current = x[..., row : row + 1, :]
        if row:
            current -= a[..., row : row + 1, :row] @ x[..., :row, :]
        if not unit:
            current /= a[..., row : row + 1, row : row + 1]


def solve_from_cholesky(b: Array, factor: Array, upper: bool) -> Array:
    """X with A X = B from A = L L^H (or U^H U), without checks."""
    lower = adjoint(factor) if upper else factor
    half = substitute(lower, b, upper=False)
    return substitute(adjoint(lower), half, upper=True)
