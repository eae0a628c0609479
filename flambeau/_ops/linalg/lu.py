"""LU with partial pivoting over batches, and what rests on it: solve, inv, det.

Gaussian elimination by columns inside panels, matrix products outside of them (Golub and
Van Loan, Matrix Computations, 3.4).  Pivots count from one, as LAPACK's.
"""

import math
from typing import Any

import numpy as np
from numpy.linalg import _umath_linalg  # type: ignore[attr-defined]

from flambeau._ops.launching.modules import launcher
from flambeau._ops.linalg.checks import (
    Array,
    adjoint,
    broadcast_batches,
    check_equation,
    check_floating,
    check_kernel,
    check_matrix,
    check_same_dtype,
    check_square,
    is_vector,
    raise_first_failure,
    transposed,
)
from flambeau._ops.linalg.triangular import compiled, substitute

LAPACK: Any = _umath_linalg
"""What `np.linalg` calls after checks of its own, which take longer than a small matrix does."""
PANEL = 32
# One matrix at a time costs about a sixth of a step over the whole batch, and reads memory in
# order, which counts for large matrices.
_FEW_MATRICES = 6
_LARGE_MATRIX = 128
_SINGULAR = (
    "U[{info},{info}] is zero and using it on lu_solve would result in a division by zero. "
    "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
    "linalg.lu_factor_ex(A, pivot)"
)
_NOT_INVERTIBLE = (
    "The diagonal element {info} is zero, the inversion could not be completed because the "
    "input matrix is singular."
)


def lu_factor_ex(
    a: Array, pivot: bool = True, name: str = "torch.lu_factor"
) -> tuple[Array, Array, Array]:
    """(LU, pivots, info) of shapes (*, m, n), (*, min(m, n)) int32 and (*) int32."""
    if a.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(a.shape)} instead"
        )
    if not pivot and a.size:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    if a.size:  # no kernel runs over nothing
        check_kernel(a, "lu_cpu")
    batch = a.shape[:-2]
    work = np.array(a, order="C").reshape(-1, *a.shape[-2:]) if a.size else _no_matrices(a)
    pivots = _eliminate(work)
    diagonal = np.diagonal(work, axis1=-2, axis2=-1)
    zero = diagonal == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if zero.shape[-1] else zero.sum(-1)
    shape = (*batch, pivots.shape[-1])
    return work.reshape(a.shape), pivots.reshape(shape), info.astype(np.int32).reshape(batch)


def _no_matrices(a: Array) -> Array:
    return np.empty((math.prod(a.shape[:-2]), *a.shape[-2:]), a.dtype)


def _eliminate(work: Array) -> Array:
    """Factor (batch, m, n) in place; the pivots, int32 (batch, min(m, n))."""
    batch, rows, columns = work.shape
    count = min(rows, columns)
    pivots = np.empty((batch, count), np.int32)
    if rows < _LARGE_MATRIX and columns <= count and compiled(work, work.size * count):
        _eliminate_all(work, pivots)
        return pivots
    with np.errstate(all="ignore"):
        if batch <= _FEW_MATRICES or rows >= _LARGE_MATRIX:
            for matrix, chosen in zip(work, pivots, strict=True):
                _eliminate_one(matrix, chosen)
            return pivots
        for start in range(0, count, PANEL):
            stop = min(start + PANEL, count)
            for column in range(start, stop):
                pivots[:, column] = _eliminate_column(work, column, stop)
            _update_right(work, start, stop)
    return pivots


def _eliminate_all(work: Array, pivots: Array) -> None:
    """All columns of small matrices, by the kernel."""
    columns = np.ascontiguousarray(transposed(work))
    launcher("linalg.launch").eliminate(columns, pivots, 0, pivots.shape[1])
    work[...] = transposed(columns)


def _eliminate_column(work: Array, column: int, stop: int) -> Array:
    chosen = _pivot_size(work[:, column:, column]).argmax(-1) + column
    _swap_rows(work, column, chosen)
    head = work[:, column, column].copy()
    # A zero pivot leaves its column as it is; the column is all zero then.
    head[head == 0] = 1
    work[:, column + 1 :, column] /= head[:, None]
    if column + 1 < stop:
        factors = work[:, column + 1 :, column, None]
        work[:, column + 1 :, column + 1 : stop] -= (
            factors * work[:, column, None, column + 1 : stop]
        )
    return chosen + 1


def _swap_rows(work: Array, row: int, chosen: Array) -> None:
    moved = np.flatnonzero(chosen != row)
    if moved.size == 0:
        return
    source = chosen[moved]
    kept = work[moved, row]
    work[moved, row] = work[moved, source]
    work[moved, source] = kept


def _update_right(work: Array, start: int, stop: int) -> None:
    if stop >= work.shape[-1]:
        return
    corner = work[:, start:stop, start:stop]
    right = substitute(corner, work[:, start:stop, stop:], upper=False, unit=True)
    work[:, start:stop, stop:] = right
    if stop < work.shape[-2]:
        work[:, stop:, stop:] -= work[:, stop:, start:stop] @ right


def _eliminate_one(matrix: Array, pivots: Array) -> None:
    """The same for one matrix, on its transpose: columns are contiguous then."""
    columns = np.ascontiguousarray(matrix.T)
    for start in range(0, pivots.size, PANEL):
        stop = min(start + PANEL, pivots.size)
        _eliminate_panel(columns, pivots, start, stop)
        _swap_outside(columns, pivots, start, stop)
        if stop == columns.shape[0]:
            break
        corner = columns[start:stop, start:stop].T
        right = substitute(corner, columns[stop:, start:stop].T, upper=False, unit=True).T
        columns[stop:, start:stop] = right
        columns[stop:, stop:] -= right @ columns[start:stop, stop:]
    matrix[...] = columns.T


def _eliminate_panel(columns: Array, pivots: Array, start: int, stop: int) -> None:
    if compiled(columns, columns.shape[1] * (stop - start) ** 2):
        launcher("linalg.launch").eliminate(columns[None], pivots[None], start, stop)
        return
    panel = columns[start:stop]
    for row in range(start, stop):
        column = columns[row]
        chosen = row + int(_pivot_size(column[row:]).argmax())
        pivots[row] = chosen + 1
        if chosen != row:
            kept = panel[:, row].copy()
            panel[:, row] = panel[:, chosen]
            panel[:, chosen] = kept
        head = column[row]
        if head != 0:
            column[row + 1 :] /= head
        rest = columns[row + 1 : stop]
        rest[:, row + 1 :] -= rest[:, row, None] * column[row + 1 :]


def _swap_outside(columns: Array, pivots: Array, start: int, stop: int) -> None:
    """Carry the panel's row exchanges to the columns left and right of it, all at once."""
    if compiled(columns, columns.size):
        launcher("linalg.launch").exchange(columns, pivots, start, stop)
        return
    order = np.arange(columns.shape[1])
    for row in range(start, stop):
        other = pivots[row] - 1
        order[row], order[other] = order[other], order[row]
    moved = np.flatnonzero(order != np.arange(order.size))
    for outside in (columns[:start], columns[stop:]):
        outside[:, moved] = outside[:, order[moved]]


def _pivot_size(column: Array) -> Array:
    """What LAPACK compares: |x|, or |re| + |im|."""
    if column.dtype.kind == "c":
        return np.abs(column.real) + np.abs(column.imag)
    return np.abs(column)


def lu_factor(a: Array, pivot: bool = True) -> tuple[Array, Array]:
    """(LU, pivots); LinAlgError where U has a zero on its diagonal."""
    factors, pivots, info = lu_factor_ex(a, pivot)
    raise_first_failure(info, "torch.linalg.lu_factor", _SINGULAR, RuntimeError)
    return factors, pivots


def permutation(pivots: Array, rows: int) -> Array:
    """The order (*, rows) of A's rows in L U: row k of L U is row order[k] of A."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.tile(np.arange(rows), (flat.shape[0], 1))
    each = np.arange(flat.shape[0])
    for row in range(flat.shape[1]):
        other = flat[:, row] - 1
        kept = order[:, row].copy()
        order[:, row] = order[each, other]
        order[each, other] = kept
    return order.reshape(*pivots.shape[:-1], rows)


def lu_unpack(
    factors: Array, pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array, Array, Array]:
    """(P, L, U) with A = P L U; what is not unpacked comes back as an empty array."""
    if factors.ndim < 2:
        raise RuntimeError("torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
                           f"{list(factors.shape)} instead")  # fmt: skip
    rows, columns = factors.shape[-2:]
    if unpack_pivots and pivots.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype."
        )
    matrix = lower = upper = np.empty(0, factors.dtype)
    if unpack_pivots:
        matrix = _permutation_matrix(pivots, min(rows, columns), rows, factors.dtype)
    if unpack_data:
        count = min(rows, columns)
        lower = np.tril(factors[..., :count], -1) + np.eye(rows, count, dtype=factors.dtype)
        upper = np.triu(factors[..., :count, :])
    return matrix, lower, upper


def _permutation_matrix(pivots: Array, count: int, rows: int, dtype: np.dtype) -> Array:
    outside = pivots.size and (pivots.min() < 1 or pivots.max() > rows)
    if outside or pivots.shape[-1] != count:
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?"
        )
    order = permutation(pivots, rows)
    return (np.arange(rows)[:, None] == order[..., None, :]).astype(dtype)


def lu(a: Array, pivot: bool = True) -> tuple[Array, Array, Array]:
    """(P, L, U) with A = P L U."""
    factors, pivots, _ = lu_factor_ex(a, pivot, name="linalg.lu")
    order, lower, upper = lu_unpack(factors, pivots)
    return order if pivot else np.empty(0, a.dtype), lower, upper


def lu_solve(
    factors: Array, pivots: Array, b: Array, *, left: bool = True, adjoint: bool = False
) -> Array:
    """X with A X = B (A^H X = B) from A's LU; batches broadcast.

    `left`: which equation errors name. `b` and the result are B and X if it is A X = B, and their
    adjoints if it is X A = B.
    """
    name = "linalg.lu_solve"
    check_floating(factors, "torch." + name)
    check_same_dtype(factors, b, name, "LU", "B")
    if pivots.dtype != np.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    check_matrix(b, name, "B")
    check_square(factors, "torch." + name)
    check_equation(factors, b if left else transposed(b), name, left)
    if pivots.shape[-1] != factors.shape[-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
        )
    check_kernel(factors, "linalg.lu_solve_cpu")
    _check_pivots(pivots, factors.shape[-1])
    return _solve_from_lu(factors, pivots, b, adjoint)


def _check_pivots(pivots: Array, rows: int) -> None:
    for outside, bound in (((pivots < 1).any(), "greater or equal to 1"),
                           ((pivots > rows).any(), "smaller or equal to LU.size(-2)")):  # fmt: skip
        if outside:
            raise RuntimeError(f"Pivots given to lu_solve must all be {bound}. Did you properly "
                               "pass the result of lu_factor?")  # fmt: skip


def _solve_from_lu(factors: Array, pivots: Array, b: Array, conjugate: bool) -> Array:
    factors, b = broadcast_batches(factors, b)
    order = permutation(pivots, factors.shape[-1])[..., None]
    order = np.broadcast_to(order, (*b.shape[:-1], 1))
    if conjugate:
        half = substitute(adjoint(factors), b, upper=False)
        middle = substitute(adjoint(factors), half, upper=True, unit=True)
        return np.take_along_axis(middle, np.argsort(order, axis=-2), axis=-2)
    half = substitute(factors, np.take_along_axis(b, order, axis=-2), upper=False, unit=True)
    return substitute(factors, half, upper=True)


def solve_ex(a: Array, b: Array, *, left: bool = True) -> tuple[Array, Array]:
    """(X, info) with A X = B or X A = B; info is the first zero pivot of U, int32 of shape (*)."""
    name = "linalg.solve"
    check_floating(a, name)
    check_same_dtype(a, b, name)
    check_matrix(a, name)
    vector = is_vector(a, b)
    matrix = b[..., None] if vector else b
    check_square(a, name)
    check_equation(a, matrix, name, left)
    check_kernel(a, "lu_cpu")
    result, info = _solve_matrix(a, matrix, left)
    return (result[..., 0] if vector else result), info


def _solve_matrix(a: Array, b: Array, left: bool) -> tuple[Array, Array]:
    wide_a, wide_b = broadcast_batches(a, b)
    try:
        with np.errstate(all="ignore", invalid="raise"):
            if left:
                result = lapack(LAPACK.solve, wide_a, wide_b)
            else:
                result = transposed(lapack(LAPACK.solve, transposed(wide_a), transposed(wide_b)))
    except FloatingPointError:
        factors, pivots, info = lu_factor_ex(a)
        if left:
            return _solve_from_lu(factors, pivots, b, False), info
        # X A = B is A^H X^H = B^H.
        return adjoint(_solve_from_lu(factors, pivots, adjoint(b), True)), info
    return result, np.zeros(a.shape[:-2], np.int32)


def lapack(function: Any, *arrays: Array) -> Array:
    """What LAPACK makes of matrices in double precision, in the type of the first, as in
    `np.linalg`. Where it fails, the result is NaN and an invalid operation is signalled.
    """
    letter = "D" if arrays[0].dtype.kind == "c" else "d"
    result = function(*arrays, signature=f"{letter * len(arrays)}->{letter}")
    return result.astype(arrays[0].dtype, copy=False)  # type: ignore[no-any-return]


def solve(a: Array, b: Array, *, left: bool = True) -> Array:
    """X with A X = B or X A = B; LinAlgError for singular A."""
    result, info = solve_ex(a, b, left=left)
    sentence = "The solver failed because the input matrix is singular."
    raise_first_failure(info, "torch.linalg.solve", sentence)
    return result


def inv_ex(a: Array) -> tuple[Array, Array]:
    """(inverse, info); info is the first zero pivot of U, int32 of shape (*)."""
    name = "linalg.inv"
    check_square(a, name)
    check_floating(a, name, half_too=False)
    try:
        with np.errstate(all="ignore", invalid="raise"):
            return lapack(LAPACK.inv, a), np.zeros(a.shape[:-2], np.int32)
    except FloatingPointError:
        factors, pivots, info = lu_factor_ex(a)
        identity = np.eye(a.shape[-1], dtype=a.dtype)
        return _solve_from_lu(factors, pivots, identity, False), info


def inv(a: Array) -> Array:
    """The inverse; LinAlgError for singular matrices."""
    result, info = inv_ex(a)
    raise_first_failure(info, "linalg.inv", _NOT_INVERTIBLE)
    return result


def det(a: Array) -> Array:
    """The determinants, shape (*)."""
    check_square(a, "linalg.det")
    check_floating(a, "linalg.det")
    check_kernel(a, "lu_cpu")
    if a.shape[-1] <= PANEL and a.ndim > 2 and compiled(a, a.size):  # noqa: PLR2004
        return _small_determinants(a)
    return np.asarray(lapack(LAPACK.det, a))


def _small_determinants(a: Array) -> Array:
    """The same by the kernel, in double precision too."""
    size = a.shape[-1]
    columns = transposed(a).astype(np.float64, order="C").reshape(-1, size, size)
    pivots = np.empty(columns.shape[:2], np.int32)
    launcher("linalg.launch").eliminate(columns, pivots, 0, size)
    with np.errstate(all="ignore"):
        product = np.multiply.reduce(np.diagonal(columns, axis1=1, axis2=2), -1)
        exchanges = np.count_nonzero(pivots != np.arange(1, size + 1), -1)
        np.negative(product, out=product, where=exchanges % 2 == 1)
        return product.astype(a.dtype).reshape(a.shape[:-2])


def slogdet(a: Array, name: str = "linalg.slogdet") -> tuple[Array, Array]:
    """(sign, log |det|), shapes (*); the second is real."""
    check_square(a, name)
    check_floating(a, name, half_too=False)
    sign, logabsdet = np.linalg.slogdet(a)
    return np.asarray(sign), np.asarray(logabsdet)


def logdet(a: Array) -> Array:
    """log det, shape (*): nan for negative determinants of real matrices."""
    sign, logabsdet = slogdet(a, "logdet")
    with np.errstate(all="ignore"):
        if a.dtype.kind == "c":
            return np.log(sign) + logabsdet
        return np.where(sign < 0, a.dtype.type(np.nan), logabsdet)
