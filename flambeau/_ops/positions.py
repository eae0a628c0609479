"""Positions that index tensors name along a dim: checks, linear positions, accumulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.templates import scatter

FLOAT32 = np.dtype(np.float32)
INTEGERS = frozenset((np.dtype(np.int64), np.dtype(np.int32)))
LONG = np.dtype(np.int64)
FULL = slice(None)
"""All of a dim, in keys for NumPy; keys are searched for this very object."""


def type_name(data: np.ndarray) -> str:
    """`Float`, as messages name element types."""
    return dt.from_numpy_dtype(data.dtype).scalar_name


UFUNCS = {np.add: "add", np.multiply: "mul", np.maximum: "max", np.minimum: "min"}
"""How the compiled kernels call what NumPy does."""


def at_least_1d(data: np.ndarray) -> np.ndarray:
    """0-dim arrays count as having one dim of size 1."""
    return data.reshape(1) if data.ndim == 0 else data


def check_range(index: np.ndarray, size: int, dim: int,
                error: type[Exception] = RuntimeError, prefix: str = "") -> None:  # fmt: skip
    """Every position must lie from 0 to size - 1."""
    if not index.size or (index.min() >= 0 and index.max() < size):
        return
    wrong = (index < 0) | (index >= size)
    value = index.reshape(-1)[wrong.reshape(-1).argmax()]
    raise error(f"{prefix}index {value} is out of bounds for dimension {dim} with size {size}")


def linear_positions(shape: tuple[int, ...], dim: int, index: np.ndarray) -> np.ndarray:
    """Row-major positions in `shape` of the elements that `index` names along a dim."""
    steps = [int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(len(shape))]
    total = index * np.int64(steps[dim])
    for d, size in enumerate(index.shape):
        if d != dim:
            line = np.arange(size) * steps[d]
            total = total + line.reshape((-1,) + (1,) * (index.ndim - 1 - d))
    return total


def reduce_at(data: np.ndarray, positions: np.ndarray, values: np.ndarray, ufunc: Any) -> None:
    """Combine values into row-major positions of `data`; half types in float32."""
    working = FLOAT32 if data.dtype in dt.NUMPY_HALVES else data.dtype
    direct = data.flags.c_contiguous and working == data.dtype
    total = data if direct else np.array(data, working, order="C")
    added = values.astype(working, copy=False).reshape(-1)
    name = UFUNCS.get(ufunc)
    flat = positions.reshape(-1)
    if name is None or not scatter.write_elements(total.reshape(-1), 0, flat, added, name):
        ufunc.at(total.reshape(-1), flat, added)
    if not direct:
        data[...] = total


def set_at(data: np.ndarray, positions: np.ndarray, values: Any) -> None:
    """Write values to row-major positions of `data`."""
    if data.flags.c_contiguous:
        data.reshape(-1)[positions.reshape(-1)] = values
        return
    data[np.unravel_index(positions.reshape(-1), data.shape)] = values


def along(dim: int, index: np.ndarray) -> tuple[Any, ...]:
    """NumPy's key for positions in one dim."""
    return (FULL,) * dim + (index,)


def lowest_and_highest(numpy_dtype: Any) -> tuple[Any, Any]:
    """Where minimum and maximum start from."""
    if numpy_dtype.kind in "fV":
        return -np.inf, np.inf
    if numpy_dtype.kind == "b":
        return False, True
    limits = np.iinfo(numpy_dtype)
    return limits.min, limits.max
