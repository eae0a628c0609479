"""The dtype a kernel computes in: half types widen to float32 and are rounded once at the end."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from flambeau._core import dtype as dt
from flambeau._ops.launching import copies
from flambeau._runtime import choice

Array = NDArray[np.generic]

FLOAT32 = np.dtype(np.float32)
LIMIT = choice.limit("pointwise")
HALF_TYPES = frozenset({np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)})
NOT_AS_THEY_ARE = "".join(t.char for t in (*HALF_TYPES, np.dtype(ml_dtypes.complex32)))
"""The letters of types that no product takes as they are."""


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
    found = dt.BY_NUMPY.get(dtype)
    name = str(dtype) if found is None else found.scalar_name
    return NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")
