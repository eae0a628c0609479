"""Words of torch's errors that products have in common."""

from __future__ import annotations

import numpy as np

from flambeau._core import dtype as dt


def scalar_name(data: np.ndarray) -> str:
    """Torch's name of an array's element type: Float, Long."""
    return dt.from_numpy_dtype(data.dtype).scalar_name


def c_name(data: np.ndarray) -> str:
    """The C++ name of an array's element type: float, long int."""
    return dt.from_numpy_dtype(data.dtype).c_name


def multipliable_error(left: tuple[int, ...], right: tuple[int, ...]) -> RuntimeError:
    """Torch's error for matrices whose inner sizes differ."""
    return RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({left[0]}x{left[1]} and {right[0]}x{right[1]})"
    )
