"""Products with conjugated factors, which are multiplied as they lie in memory.

BLAS conjugates while it multiplies. NumPy never asks it to, so it is called here by its own name;
where it is not found, the factor is copied.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache, lru_cache
from typing import Any

import numpy as np

from flambeau._ops.products import blas
from flambeau._runtime.cpu import address


class Conjugated(np.ndarray):
    """The memory of a matrix or vector that stands for its conjugate in a product."""


PLAIN = np.ndarray
FEW = 4096
"""Factors of so many elements are conjugated into memory that is kept for it (`SPARE`): BLAS by its
own name takes longer (benchmarks/conjugates.py)."""
SPARE: list[np.ndarray] = []
"""Memory for factors of few elements: an array for each thread that ever multiplied beside others.
Who multiplies takes one away meanwhile."""
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
    return data.view(Conjugated)


@cache
def numbers(dtype: np.dtype[Any]) -> tuple[np.ndarray, int, int]:
    """One and zero of a type, and where they lie."""
    both = np.array([1, 0], dtype)
    return both, both.ctypes.data, both.ctypes.data + both.itemsize


def values(data: np.ndarray) -> np.ndarray:
    """What an array stands for."""
    plain = data.view(np.ndarray)
    return np.conjugate(plain) if data.__class__ is Conjugated else plain


def matrices(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`left @ right` of two matrices of one complex type that fit; either may be meant as its
    conjugate."""
    turned = left.__class__ is Conjugated, right.__class__ is Conjugated
    if True in turned:
        return of_memory(left.view(PLAIN), right.view(PLAIN), *turned)
    if left.size * right.shape[1] < blas.SHARED:
        return left.dot(right)
    return blas.multiply(left, right)


def of_memory(left: np.ndarray, right: np.ndarray, first: bool, second: bool) -> np.ndarray:
    """The product of two matrices of one complex type that fit, conjugated as the two words say."""
    if first is second:
        result = matrices(left, right)
        return np.conjugate(result, out=result) if first else result
    if (left if first else right).size <= FEW or not right.size:
        return _of_few(left, right, first)
    if product_of(left.dtype) is None:
        return matrices(*(np.conjugate(left), right) if first else (left, np.conjugate(right)))
    result = np.empty((left.shape[0], right.shape[1]), left.dtype)
    _one(left, right, result, (first, second))
    return result


def _of_few(left: np.ndarray, right: np.ndarray, first: bool) -> np.ndarray:
    """The same where one factor of few elements is conjugated: the first, or the other one."""
    turned = left if first else right
    memory = SPARE.pop() if SPARE else turned
    fits = memory.strides == turned.strides and memory.shape == turned.shape
    if not fits or memory is turned or memory.dtype is not turned.dtype:
        memory = np.empty_like(turned)
    np.conjugate(turned, memory)
    result = matrices(memory, right) if first else matrices(left, memory)
    SPARE.append(memory)
    return result


def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`left @ right` where one of them, or both, stand for their conjugates."""
    if left.__class__ is right.__class__:
        result = np.asarray(blas.multiply(left.view(PLAIN), right.view(PLAIN)))
        return np.conjugate(result, out=result)
    first = left.__class__ is Conjugated
    fits = left.dtype == right.dtype and left.size and right.size
    few = (left if first else right).size <= FEW
    if not fits or few or product_of(left.dtype) is None:
        return blas.multiply(values(left), values(right))
    left, right = left.view(PLAIN), right.view(PLAIN)
    if left.ndim + right.ndim == 3:  # noqa: PLR2004
        return _with_vector(left, right, first)
    rows = left[None, :] if left.ndim == 1 else left
    columns = right[:, None] if right.ndim == 1 else right
    if rows.shape[-1] != columns.shape[-2]:
        return blas.multiply(left, right)  # which refuses
    result = _batches(rows, columns, (first, not first))
    if left.ndim == 1:
        result = result[..., 0, :]
    return result[..., 0] if right.ndim == 1 else result


def _with_vector(left: np.ndarray, right: np.ndarray, first: bool) -> np.ndarray:
    """The product of a matrix and a vector, of which the first or the other is conjugated. Of a
    conjugated matrix, it is the conjugate of that of the matrix as it lies and of the conjugated
    vector, which alone is copied.
    """
    matrix_first = left.ndim > 1
    if matrix_first:
        result = np.asarray(blas.multiply(left, np.conjugate(right)))
    else:
        result = np.asarray(blas.multiply(np.conjugate(left), right))
    return np.conjugate(result, out=result) if first is matrix_first else result


def _call(function: Any, work: int, arguments: tuple[Any, ...]) -> None:
    """`work`: multiply-adds."""
    if blas.SHARED <= work < blas.HEAVY:
        blas.alone(function, *arguments)
    else:
        function(*arguments)


def _batches(left: np.ndarray, right: np.ndarray, turned: tuple[bool, bool]) -> np.ndarray:
    """The products of matrices, whose batches broadcast."""
    if right.ndim == 2 and left.ndim > 2 and left.flags.c_contiguous:
        flat = left.reshape(math.prod(left.shape[:-1]), left.shape[-1])
        return _batches(flat, right, turned).reshape(*left.shape[:-1], right.shape[1])
    if left.ndim == right.ndim == 2:
        result = np.empty((left.shape[0], right.shape[1]), left.dtype)
        _one(left, right, result, turned)
        return result
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    result = np.empty((*batch, left.shape[-2], right.shape[-1]), left.dtype)
    left = np.broadcast_to(left, (*batch, *left.shape[-2:]))
    right = np.broadcast_to(right, (*batch, *right.shape[-2:]))
    for place in np.ndindex(batch):
        _one(left[place], right[place], result[place], turned)
    return result


def _one(
    left: np.ndarray, right: np.ndarray, result: np.ndarray, turned: tuple[bool, bool]
) -> None:
    """The product of two matrices, conjugated as `turned` says, written to row-major memory."""
    depth, columns = right.shape
    rows, size = left.shape[0], left.itemsize
    word_left, step_left = _read(left.shape, left.strides, size, turned[0])
    word_right, step_right = _read(right.shape, right.strides, size, turned[1])
    if not step_left:
        left, step_left = np.ascontiguousarray(left), depth
    if not step_right:
        right, step_right = np.ascontiguousarray(right), columns
    _, alpha, beta = numbers(left.dtype)
    arguments = (
        ROW_MAJOR, word_left, word_right, rows, columns, depth, alpha, address(left), step_left,
        address(right), step_right, beta, address(result), columns or 1,
    )  # fmt: skip
    _call(product_of(left.dtype), rows * depth * columns, arguments)


@lru_cache(1024)
def _read(
    shape: tuple[int, int], strides: tuple[int, int], size: int, conjugated: bool
) -> tuple[int, int]:
    """How BLAS is to read a matrix, and the step between its lines; 0 where these are none, so that
    a copy in rows is read."""
    (rows, columns), (across, along) = shape, strides
    for transposed in (False, True):
        if columns == 1 or along == size:  # in lines
            step, rest = divmod(across, size)
            if rows == 1 or (step >= columns and not rest):  # which lie apart
                return WORDS[transposed, conjugated], max(step, columns)
        rows, columns, across, along = columns, rows, along, across
    return WORDS[False, conjugated], 0
