"""The dtype a kernel computes in: half types widen to float32 and are rounded once at the end."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from flambeau._ops.launching import copies
from flambeau._runtime import choice

Array = NDArray[np.generic]

FLOAT32 = np.dtype(np.float32)
LIMIT = choice.limit("pointwise")
HALF_TYPES = frozenset({np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)})
SCALAR_NAMES = {
    np.dtype(np.bool_): "Bool",
    np.dtype(np.uint8): "Byte",
    np.dtype(np.int8): "Char",
    np.dtype(np.int16): "Short",
    np.dtype(np.int32): "Int",
    np.dtype(np.int64): "Long",
    np.dtype(np.float16): "Half",
    np.dtype(ml_dtypes.bfloat16): "BFloat16",
    np.dtype(np.float32): "Float",
    np.dtype(np.float64): "Double",
    np.dtype(ml_dtypes.complex32): "ComplexHalf",
    np.dtype(np.complex64): "ComplexFloat",
    np.dtype(np.complex128): "ComplexDouble",
}


def widen(array: Array) -> Array:
    """Half types as float32; other arrays as they are."""
    return _cast(array, FLOAT32) if array.dtype in HALF_TYPES else array


def narrow(array: Array, dtype: np.dtype) -> Array:
    """The result in the caller's dtype; no copy when it has that already."""
    return _cast(array, dtype)


def _cast(array: Array, dtype: np.dtype) -> Array:
    """Large arrays by a compiled loop: NumPy's casts of half types take one element at a time
    (benchmarks/autocast.py, "checkerboard")."""
    if array.dtype == dtype:
        return array
    if array.size >= LIMIT:
        result = np.empty_like(array, dtype)
        if copies.convert(result, array):
            return result
    return array.astype(dtype)


def is_floating(dtype: np.dtype) -> bool:
    """True for the real floating-point types, half types included."""
    return dtype.kind == "f" or dtype in HALF_TYPES


def require_known(kernel: str, dtype: np.dtype) -> None:
    """Torch's error for complex32, which NumPy would compute with where torch does not."""
    if dtype.kind in "W":
        raise refuse(kernel, dtype)


def refuse(kernel: str, dtype: np.dtype) -> NotImplementedError:
    """The error for a dtype that `kernel` does not have, in torch's words."""
    name = SCALAR_NAMES.get(dtype, str(dtype))
    return NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")
