"""Words of torch's errors that products have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._tensor.tensor import Tensor


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


def argument_error(name: str, values: dict[str, Any]) -> TypeError:
    """Torch's error for the first of several arguments that is not a tensor."""
    for position, (argument, value) in enumerate(values.items(), 1):
        if not isinstance(value, Tensor):
            return TypeError(f"{name}(): argument '{argument}' (position {position}) must be "
                             f"Tensor, not {type(value).__name__}")  # fmt: skip
    raise AssertionError(f"{name}(): every argument is a tensor")
