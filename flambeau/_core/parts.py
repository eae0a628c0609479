"""Real and imaginary parts of arrays, those of `complex32` included.

NumPy's own `.real` and `.imag` know its own complex types alone: of an array of ml_dtypes'
complex32 they give the array itself, and zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt

COMPLEX32 = dt.complex32.numpy_dtype


def both_parts(data: np.ndarray) -> np.ndarray:
    """A complex array as a real one whose last dim holds (real, imaginary), over its memory."""
    return data[..., None].view(part_type(data.dtype))


def real_part(data: np.ndarray) -> np.ndarray:
    """The real parts, over the same memory; a real array itself."""
    return both_parts(data)[..., 0] if data.dtype == COMPLEX32 else data.real


def imaginary_part(data: np.ndarray) -> np.ndarray:
    """The imaginary parts, over the same memory; of a real array zeros."""
    return both_parts(data)[..., 1] if data.dtype == COMPLEX32 else data.imag


def part_type(numpy_dtype: Any) -> np.dtype[Any]:
    """The type of the parts of a complex type; a real type itself."""
    return dt.BY_NUMPY[numpy_dtype].to_real().numpy_dtype
