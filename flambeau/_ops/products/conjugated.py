"""Products with conjugated factors, which are multiplied as they lie in memory.

BLAS conjugates while it multiplies. NumPy never asks it to, so it is called here by its own name;
where it is not found, the factor is copied.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any

import numpy as np

from flambeau._ops.products import blas
from flambeau._runtime.cpu import address


class Conjugated(np.ndarray):
    """The memory of a matrix or vector that stands for its conjugate in a product."""


FEW = 4096
"""Factors of so many elements are copied: 2 us, and BLAS by its own name takes twice that
(benchmarks/conjugates.py)."""
ROW_MAJOR = 101
WORDS = {(False, False): 111, (True, False): 112, (True, True): 113, (False, True): 114}
"""(transposed, conjugated) -> BLAS's number for it. The last is OpenBLAS's own."""
LETTERS = {np.dtype(np.complex64): "c", np.dtype(np.complex128): "z"}
NAME = "scipy_cblas_{}gemm64_"
"""What products are called in the OpenBLAS of NumPy's wheels."""
WORD, SIZE, POINTER = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
ARRAY = [POINTER, SIZE]
TYPES = [WORD, WORD, WORD, SIZE, SIZE, SIZE, POINTER, *ARRAY, *ARRAY, POINTER, *ARRAY]
"""Those of the parameters."""


@cache
def product_of(dtype: np.dtype[Any]) -> Any:
    """BLAS's product of matrices of a type; None where there is none."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
        function = getattr(library, NAME.format(LETTERS[dtype]))
    except (AttributeError, KeyError, OSError, TypeError):
        return None
    function.argtypes = TYPES
    function.restype = None
    return function


def factor(data: np.ndarray) -> np.ndarray:
    """What stands for the conjugate of a matrix or vector in a product."""
    return np.conjugate(data) if data.size <= FEW else data.view(Conjugated)


@cache
def numbers(dtype: np.dtype[Any]) -> tuple[np.ndarray, int, int]:
    """One and zero of a type, and where they lie."""
    both = np.array([1, 0], dtype)
    return both, both.ctypes.data, both.ctypes.data + both.itemsize


def values(data: np.ndarray) -> np.ndarray:
    """What an array stands for."""
    plain = data.view(np.ndarray)
    return np.conjugate(plain) if data.__class__ is Conjugated else plain


def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`left @ right` where one of them, or both, stand for their conjugates."""
    if left.__class__ is right.__class__:
        result = np.asarray(blas.multiply(left.view(np.ndarray), right.view(np.ndarray)))
        return np.conjugate(result, out=result)
    turned = left if left.__class__ is Conjugated else right
    fits = left.dtype == right.dtype and left.size and right.size
    if not fits or turned.size <= FEW or product_of(left.dtype) is None:
        return blas.multiply(values(left), values(right))
    if left.ndim + right.ndim == 3:  # noqa: PLR2004
        return _with_vector(left, right)
    rows = left[None, :] if left.ndim == 1 else left
    columns = right[:, None] if right.ndim == 1 else right
    if rows.shape[-1] != columns.shape[-2]:
        return blas.multiply(values(left), values(right))  # which refuses
    result = _batches(rows, columns)
    if left.ndim == 1:
        result = result[..., 0, :]
    return result[..., 0] if right.ndim == 1 else result


def _with_vector(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product of a matrix and a vector. Of a conjugated matrix, it is the conjugate of that of
    the matrix as it lies and of the conjugated vector, which alone is copied.
    """
    one, two = left.view(np.ndarray), right.view(np.ndarray)
    matrix_first = left.ndim > 1
    if matrix_first:
        result = np.asarray(blas.multiply(one, np.conjugate(two)))
    else:
        result = np.asarray(blas.multiply(np.conjugate(one), two))
    turned = (left if matrix_first else right).__class__ is Conjugated
    return np.conjugate(result, out=result) if turned else result


def _call(function: Any, work: int, arguments: tuple[Any, ...]) -> None:
    """`work`: multiply-adds."""
    if blas.SHARED <= work < blas.HEAVY:
        blas.alone(function, *arguments)
    else:
        function(*arguments)


def _batches(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The products of matrices, whose batches broadcast."""
    if right.ndim == 2 and left.ndim > 2 and left.flags.c_contiguous:
        flat = left.reshape(math.prod(left.shape[:-1]), left.shape[-1])
        return _batches(flat, right).reshape(*left.shape[:-1], right.shape[1])
    if left.ndim == right.ndim == 2:
        result = np.empty((left.shape[0], right.shape[1]), left.dtype)
        _one(left, right, result)
        return result
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    result = np.empty((*batch, left.shape[-2], right.shape[-1]), left.dtype)
    left = np.broadcast_to(left, (*batch, *left.shape[-2:]), subok=True)
    right = np.broadcast_to(right, (*batch, *right.shape[-2:]), subok=True)
    for place in np.ndindex(batch):
        _one(left[place], right[place], result[place])
    return result


def _one(left: np.ndarray, right: np.ndarray, result: np.ndarray) -> None:
    """The product of two matrices, written to row-major memory."""
    (rows, depth), columns = left.shape, right.shape[1]
    (one, words_left, step_left), (two, words_right, step_right) = map(_operand, (left, right))
    _, alpha, beta = numbers(left.dtype)
    arguments = (
        ROW_MAJOR, words_left, words_right, rows, columns, depth, alpha,
        address(one), step_left, address(two), step_right, beta, address(result),
        max(columns, 1),
    )  # fmt: skip
    _call(product_of(left.dtype), rows * depth * columns, arguments)


def _operand(data: np.ndarray) -> tuple[np.ndarray, int, int]:
    """A matrix as BLAS takes it: its memory, how it is to be read, and the step between lines."""
    conjugated = data.__class__ is Conjugated
    (rows, columns), (across, along), size = data.shape, data.strides, data.itemsize
    for transposed in (False, True):
        if columns == 1 or along == size:  # in lines
            step, rest = divmod(across, size)
            if rows == 1 or (step >= columns and not rest):  # which lie apart
                return data, WORDS[transposed, conjugated], max(step, columns)
        rows, columns, across, along = columns, rows, along, across
    return np.ascontiguousarray(data), WORDS[False, conjugated], columns
