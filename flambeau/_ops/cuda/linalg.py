"""Linear algebra on GPUs through cuSOLVER, a matrix after the other; without it the host computes.

A matrix is copied to column-major memory, is overwritten there, and is handed out as it lies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.types import NAMES
from flambeau._ops.cuda.table import on_gpu
from flambeau._ops.linalg.checks import raise_first_failure
from flambeau._ops.linalg.factors import _SINGULAR
from flambeau._ops.linalg.systems import _NOT_POSITIVE, SINGULAR
from flambeau._ops.table.namespace import ops
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.libraries import cusolver
from flambeau._runtime.cuda.libraries.finding import MissingLibrary
from flambeau._runtime.cuda.libraries.matrices import contiguous
from flambeau._runtime.cuda.memory import Current
from flambeau._tensor import device_array
from flambeau._tensor.tensor import wrap

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


def solver() -> Any:
    """cuSOLVER; None where it is not installed."""
    try:
        return cusolver.library(Current.device)
    except MissingLibrary:
        return None


def columns(data: Any) -> Any:
    """A copy whose memory, read in columns, is the matrices: [*, columns, rows] in rows."""
    return device_array.contiguous(data.swapaxes(-1, -2))


def new(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """New row-major memory."""
    return device_array.empty(shape, contiguous(shape).strides, dtype, Current.device)


def places(*arrays: Any) -> Any:
    """The addresses of the matrices (the last two dims) or vectors (the last one) of batches, one
    batch entry after the other. Arrays come with the number of their own dims."""
    entries = math.prod(arrays[0][0].shape[: arrays[0][0].ndim - arrays[0][1]])
    starts = []
    for array, own in arrays:
        step = math.prod(array.shape[array.ndim - own :]) * array.itemsize
        starts.append((address(array), step))
    for entry in range(entries):
        yield tuple(start + entry * step for start, step in starts)


def _square(data: Any) -> bool:
    return (data.ndim > 1 and data.shape[-1] == data.shape[-2] and data.size > 0
            and NAMES[data.dtype] in cusolver.REAL)  # fmt: skip


@on_gpu("linalg_cholesky_ex")
def cholesky_ex(a: Any, upper: bool, check_errors: bool) -> Any:
    """(L, info) with A = L L^H, or U^H U."""
    library = solver()
    if not _square(a) or library is None:
        return NotImplemented
    held, info = columns(a), new(a.shape[:-2], INT32)
    for at, of_info in places((held, 2), (info, 0)):
        library.cholesky(NAMES[a.dtype], a.shape[-1], at, upper, of_info)
    if check_errors:
        raise_first_failure(device_array.to_host(info), "linalg.cholesky_ex", _NOT_POSITIVE)
    keep = ops.tril if upper else ops.triu  # of the matrix turned round
    return keep(wrap(held))._data.swapaxes(-1, -2), info


def _factored(a: Any, library: Any) -> tuple[Any, Any, Any]:
    """The factors in columns, pivots in int64, and info."""
    count = min(a.shape[-2:])
    held, info = columns(a), new(a.shape[:-2], INT32)
    pivots = new((*a.shape[:-2], count), INT64)
    for at, of_pivots, of_info in places((held, 2), (pivots, 1), (info, 0)):
        library.lu(NAMES[a.dtype], *a.shape[-2:], at, of_pivots, of_info)
    return held, pivots, info


@on_gpu("linalg_lu_factor_ex")
def lu_factor_ex(a: Any, pivot: bool, check_errors: bool) -> Any:
    """(LU, pivots, info)."""
    library = solver()
    usable = pivot and a.ndim > 1 and a.size and NAMES[a.dtype] in cusolver.REAL
    if not usable or library is None:
        return NotImplemented
    held, pivots, info = _factored(a, library)
    if check_errors:
        raise_first_failure(device_array.to_host(info), "torch.linalg.lu_factor_ex", _SINGULAR,
                            RuntimeError)  # fmt: skip
    return held.swapaxes(-1, -2), wrap(pivots).int()._data, info


@on_gpu("linalg_solve_ex")
def solve_ex(a: Any, b: Any, left: bool, check_errors: bool) -> Any:
    """(X, info) with A X = B."""
    library = solver()
    vector = b.ndim == 1 and a.ndim == 2
    fits = b.shape == a.shape[:1] if vector else b.shape[:-1] == a.shape[:-1]
    usable = left and fits and _square(a) and b.size and a.dtype == b.dtype
    if not usable or library is None:
        return NotImplemented
    held, pivots, info = _factored(a, library)
    right = columns(b[:, None] if vector else b)
    ignored = new(a.shape[:-2], INT32)
    for at, of_pivots, of_b, of_info in places((held, 2), (pivots, 1), (right, 2), (ignored, 0)):
        library.solve(NAMES[a.dtype], a.shape[-1], right.shape[-2], at, of_pivots, of_b, of_info)
    if check_errors:
        raise_first_failure(device_array.to_host(info), "torch.linalg.solve_ex", SINGULAR)
    result = right.swapaxes(-1, -2)
    return result[:, 0] if vector else result, info


def _eigh(a: Any, UPLO: str, vectors: bool) -> Any:
    library = solver()
    if not _square(a) or library is None or UPLO.upper() not in ("L", "U"):
        return NotImplemented
    real = np.dtype(cusolver.REAL[NAMES[a.dtype]])
    held, values, info = columns(a), new(a.shape[:-1], real), new(a.shape[:-2], INT32)
    for at, of_values, of_info in places((held, 2), (values, 1), (info, 0)):
        library.eigh(NAMES[a.dtype], a.shape[-1], at, of_values, UPLO.upper() == "U", vectors,
                     of_info)  # fmt: skip
    if np.any(device_array.to_host(info)):
        return NotImplemented
    return values, held.swapaxes(-1, -2)


@on_gpu("linalg_eigh")
def eigh(a: Any, UPLO: str) -> Any:
    """(eigenvalues rising, eigenvectors in columns) of Hermitian matrices."""
    return _eigh(a, UPLO, True)


@on_gpu("linalg_eigvalsh")
def eigvalsh(a: Any, UPLO: str) -> Any:
    """The eigenvalues alone."""
    found = _eigh(a, UPLO, False)
    return found if found is NotImplemented else found[0]


@on_gpu("linalg_svd")
def svd(a: Any, full_matrices: bool, driver: str | None) -> Any:
    """(U, S, Vh). A matrix with more columns than rows is taken transposed: the memory of its rows
    is that of columns, and what comes back is V and U."""
    library = solver()
    usable = a.ndim > 1 and a.size and NAMES[a.dtype] in cusolver.REAL
    if driver not in (None, "gesvd") or not usable or library is None:
        return NotImplemented
    tall = a.shape[-2] >= a.shape[-1]
    held = columns(a) if tall else device_array.contiguous(a)
    few, many = held.shape[-2:]
    batch = a.shape[:-2]
    values = new((*batch, few), np.dtype(cusolver.REAL[NAMES[a.dtype]]))
    left = new((*batch, many if full_matrices else few, many), a.dtype)
    right, info = new((*batch, few, few), a.dtype), new(batch, INT32)
    for at, of_values, of_left, of_right, of_info in places(
        (held, 2), (values, 1), (left, 2), (right, 2), (info, 0)
    ):
        library.svd(NAMES[a.dtype], many, few, at, of_values, of_left, of_right, full_matrices,
                    of_info)  # fmt: skip
    if np.any(device_array.to_host(info)):
        return NotImplemented
    if tall:
        return left.swapaxes(-1, -2), values, right.swapaxes(-1, -2)
    return right, values, left
