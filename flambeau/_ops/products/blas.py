"""Products of arrays: a compiled kernel where it is the faster one, else NumPy's BLAS."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from flambeau._core.dtype import NUMPY_HALVES as HALVES
from flambeau._core.settings import Determinism, get_num_threads
from flambeau._ops.launching.precision import widen
from flambeau._runtime import choice
from flambeau._runtime.blas_threads import alone, always_alone

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
INT8 = np.dtype(np.int8)
PLAIN = np.ndarray
FLOATS = frozenset({FLOAT32, FLOAT64, *HALVES})
SMALL = min(choice.LIMITS["gemm"], 200_000)
"""Multiply-adds below which a product of single or double precision is neither a compiled kernel's
nor shared by BLAS's threads."""
SHARED = 4096
"""Multiply-adds from which on BLAS's threads may share a product of vectors or complex numbers."""
HEAVY = 1 << 27
"""Multiply-adds from which on its threads are worth what they cost the kernels that follow. The
last bits of products of complex numbers then depend on their number; with deterministic algorithms
such products are those of real numbers (`complexes`), which takes up to twice as long."""
THIN = 12
"""Rows or columns below which a product of single precision is left to NumPy's BLAS."""
LARGE = choice.limit("gemm")
"""Multiply-adds from which on all others are compiled kernels'."""


def compiled(dtype: np.dtype, rows: int, depth: int, columns: int, matrices: int = 1) -> Any:
    """The compiled products for matrices of these sizes, if they are the faster ones; else None."""
    if dtype not in FLOATS:
        return None
    work, size = "gemm", matrices * rows * depth * columns
    if dtype in HALVES:
        work = "gemm halves"
    elif 1 < rows < THIN <= columns and choice.compiled("gemm few rows", size):
        work = "gemm few rows"
    elif rows < THIN or columns < THIN:
        work, size = "gemm thin", size * (get_num_threads() - 1)
    return products() if choice.compiled(work, size) else None


@cache
def products() -> Any:
    """The compiled products, if llvmlite is there and the processor is fit for them; else None."""
    from flambeau._ops.products import gemm

    return gemm if choice.available() and gemm.usable() else None


def matrices(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`left @ right` of two matrices that fit, both of single or both of double precision."""
    rows, depth = left.shape
    columns = right.shape[1]
    if rows >= THIN <= columns and rows * depth * columns >= LARGE:
        kernels = None if choice.thread.by_numpy else products()
        if kernels is not None:
            return kernels.gemm(left, right)  # type: ignore[no-any-return]
    return multiply(left, right)


def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`left @ right` in new row-major memory; half types give float32."""
    if left.__class__ is not PLAIN or right.__class__ is not PLAIN:
        from flambeau._ops.products import conjugated

        return conjugated.multiply(left, right)
    if left.ndim == 1 or right.ndim == 1:
        return _with_vector(left, right)
    if left.ndim > 2 and right.ndim == 2 and left.size:
        rows = left.reshape(math.prod(left.shape[:-1]), left.shape[-1])
        return multiply(rows, right).reshape(*left.shape[:-1], right.shape[1])
    dtype, (rows, depth), columns = left.dtype, left.shape[-2:], right.shape[-1]
    matrices = 1
    if left.ndim > 2 or right.ndim > 2:
        matrices = max(math.prod(left.shape[:-2]), math.prod(right.shape[:-2]))
    if right.dtype == dtype and right.shape[-2] == depth:
        if (rows == 1 or columns == 1) and left.ndim == 2 == right.ndim:
            found = _gemv(right.T, left[0]) if rows == 1 else _gemv(left, right[:, 0])
            if found is not None:
                return found.reshape(rows, columns)  # type: ignore[no-any-return]
        kernels = compiled(dtype, rows, depth, columns, matrices)
        if kernels is not None:
            result = FLOAT32 if dtype in HALVES else None
            return kernels.gemm(left, right, result=result)  # type: ignore[no-any-return]
        is_large = matrices * rows * depth * columns >= HEAVY
        if dtype.kind == "c" and is_large and Determinism.enabled:
            from flambeau._ops.products import complexes

            found = complexes.multiply(left, right)
            if found is not None:
                return found
    left, right = widen(left), widen(right)
    if left.ndim == 2 == right.ndim and dtype.kind in "fcVW":
        return dot(left, right)
    return matmul(left, right)


def dot(left: np.ndarray, right: np.ndarray) -> Any:
    """`left.dot(right)` for vectors and matrices, by NumPy's BLAS and in this thread."""
    if _may_be_shared(left, right):
        return (always_alone if left.dtype.kind == "c" else alone)(left.dot, right)
    return left.dot(right)


def matmul(left: np.ndarray, right: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """`left @ right` in row-major memory, by NumPy's BLAS and in this thread."""
    if _may_be_shared(left, right):
        call = always_alone if left.dtype.kind == "c" else alone
        return call(np.matmul, left, right, out=out, order="C")  # type: ignore[no-any-return]
    return np.matmul(left, right, out=out, order="C")  # type: ignore[no-any-return]


def _may_be_shared(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether BLAS might compute a product with several threads, and had better not."""
    work = left.size * (right.shape[-1] if right.ndim > 1 else 1)
    if left.dtype.kind == "c" and Determinism.enabled:
        return work >= SHARED
    return (SMALL if left.dtype == FLOAT32 else SHARED) <= work < HEAVY


def _gemv(matrix: np.ndarray, x: np.ndarray) -> Any:
    """`matrix @ x` of [M, K] and [K] by a kernel, if that is for it; else None."""
    dtype = matrix.dtype
    if dtype != x.dtype or dtype not in (FLOAT32, FLOAT64) or not matrix.size:
        return None
    if matrix.shape[1] != x.size or not choice.compiled("gemv", matrix.size):
        return None
    from flambeau._ops.products.gemv import gemv

    return gemv(matrix, x)


def _with_vector(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A vector is a row on the left, a column on the right."""
    if left.ndim + right.ndim == 3:  # noqa: PLR2004
        found = _gemv(left, right) if left.ndim > 1 else _gemv(right.T, left)
        if found is not None:
            return found  # type: ignore[no-any-return]
    left, right = widen(left), widen(right)
    if right.ndim > 1 or left.ndim <= 2:
        return matmul(left, right)
    result = np.empty(left.shape[:-1], left.dtype)
    if result.size:
        rows = left.reshape(math.prod(left.shape[:-1]), left.shape[-1])
        matmul(rows, right, out=result.reshape(-1))
    return result


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`left @ right` in the type of the operands, rounded once."""
    dtype = left.dtype
    if dtype is FLOAT32 or dtype is FLOAT64:
        if left.ndim == 2 == right.ndim and left.size * right.shape[1] < SMALL:
            return left.dot(right)
        return multiply(left, right)
    if dtype in HALVES and left.ndim > 1 and right.ndim > 1 and right.dtype == dtype:
        (rows, depth), columns = left.shape[-2:], right.shape[-1]
        matrices = math.prod(left.shape[:-2])
        kernels = compiled(dtype, rows, depth, columns, matrices)
        if kernels is not None and right.shape[-2] == depth:
            return kernels.gemm(left, right)  # type: ignore[no-any-return]
    if dtype == INT8 == right.dtype and left.ndim > 1 < right.ndim:
        from flambeau._ops.products.integers import of_bytes

        return of_bytes(left, right, INT8)
    return np.asarray(multiply(left, right)).astype(dtype, copy=False)


def affine(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> Any:
    """`input @ weight + bias` over the last dim in one pass, [*, K], [K, N] and [N]; None where
    NumPy multiplies faster."""
    shape = input.shape
    depth, columns = weight.shape
    if input.size * columns < SMALL and input.dtype.itemsize > 2:
        return None
    rows = math.prod(shape[:-1])
    kernels = compiled(input.dtype, rows, depth, columns)
    if kernels is None or (bias is not None and bias.shape != (columns,)):
        return None
    flat = input if len(shape) == 2 else input.reshape(rows, depth)
    if bias is None:
        result = kernels.gemm(flat, weight)
    else:
        result = kernels.gemm(flat, weight, kernels.Finish(bias=np.ascontiguousarray(bias)))
    return result if len(shape) == 2 else result.reshape(*shape[:-1], columns)


def scaled_sum(data: np.ndarray, left: np.ndarray, right: np.ndarray, beta: Any,
               alpha: Any) -> Any:  # fmt: skip
    """`beta * data + alpha * (left @ right)` in one pass; None where NumPy is the faster one.

    `data` has the result's shape, or is [N] with one number per column.
    """
    matrices, (rows, depth) = math.prod(left.shape[:-2]), left.shape[-2:]
    kernels = compiled(left.dtype, rows, depth, right.shape[-1], matrices)
    if kernels is None or not data.dtype == left.dtype == right.dtype:
        return None
    return kernels.gemm(left, right, kernels.finish_of(data, float(beta), float(alpha)))


def column_sums(data: np.ndarray) -> np.ndarray:
    """The sums of a matrix's columns; half types give float32."""
    from flambeau._ops.reductions import sums as reductions

    kernels = reductions.compiled(data, (0,))
    if kernels is not None:
        total = kernels.total(data, (0,), False)
        if total is not None:
            wide = FLOAT32 if data.dtype in HALVES else data.dtype
            return total.astype(wide, copy=False)  # type: ignore[no-any-return]
    return np.add.reduce(widen(data), 0)  # type: ignore[no-any-return]
