"""Positions that index tensors name along a dim: checks, linear positions, accumulation."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.layout import contiguous_strides
from flambeau._ops.indexing import launch as scatter
from flambeau._ops.launching import copies
from flambeau._runtime import choice
from flambeau._tensor.meta import Meta

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
    if not in_range(index, size):
        raise range_error(index, size, dim, error, prefix)


def range_error(index: np.ndarray, size: int, dim: int, error: type[Exception] = RuntimeError,
                prefix: str = "") -> Exception:  # fmt: skip
    """Torch's error that names the first position that is none."""
    wrong = (index < 0) | (index >= size)
    value = index.reshape(-1)[wrong.reshape(-1).argmax()]
    return error(f"{prefix}index {value} is out of bounds for dimension {dim} with size {size}")


def in_range(index: np.ndarray, size: int) -> bool:
    """Whether every position lies from 0 to size - 1."""
    if not index.size or index.__class__ is Meta:
        return True
    # seen as unsigned, a negative position is a large one: one pass tells
    return highest(index.view(UNSIGNED[index.dtype]), None) < size  # type: ignore[no-any-return]


UNSIGNED: dict[Any, np.dtype[Any]] = {
    LONG: np.dtype(np.uint64),
    np.dtype(np.int32): np.dtype(np.uint32),
}
highest = np.maximum.reduce
"""`max` without the Python function that NumPy's method calls."""


def element_key(index: np.ndarray, dim: int) -> tuple[np.ndarray, ...]:
    """NumPy's key for the elements that `index` names along a dim; row-major, so that of several
    values for one element the last one counts."""
    find = _lines if index.size <= FEW else _lines.__wrapped__
    before, after = find(index.shape, dim)
    return (*before, index if index.flags.c_contiguous else np.array(index, order="C"), *after)


FEW = 4096
"""The keys of so many elements are remembered."""


@lru_cache(256)
def _lines(shape: tuple[int, ...], dim: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The positions of all other dims, those before and those behind: shaped to broadcast."""
    lines = [np.arange(n).reshape((-1,) + (1,) * (len(shape) - 1 - d)) for d, n in enumerate(shape)]
    return lines[:dim], lines[dim + 1 :]


def linear_positions(shape: tuple[int, ...], dim: int, index: np.ndarray) -> np.ndarray:
    """Row-major positions in `shape` of the elements that `index` names along a dim."""
    steps = contiguous_strides(shape)
    total = index * np.int64(steps[dim])
    for d, size in enumerate(index.shape):
        if d != dim:
            line = np.arange(size) * steps[d]
            total = total + line.reshape((-1,) + (1,) * (index.ndim - 1 - d))
    return total


def reduce_at(data: np.ndarray, positions: np.ndarray, values: np.ndarray, ufunc: Any,
              raise_halves: bool = True) -> None:  # fmt: skip
    """Combine values into row-major positions of `data`; half types in float32, if asked to."""
    working = FLOAT32 if raise_halves and data.dtype in dt.NUMPY_HALVES else data.dtype
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


def fill_where(data: np.ndarray, mask: np.ndarray, number: np.ndarray) -> None:
    """Write a number, a 0-dim array of the same type, where a mask of the same shape is True.

    The compiled loop writes old numbers back, too, so it is not for memory that repeats.
    """
    if data.size >= COPIED and 0 not in data.strides and copies.choose(data, mask, number, data):
        return
    if data.flags.c_contiguous:
        np.putmask(data, mask, number)
    else:
        np.copyto(data, number, where=mask)


COPIED = choice.limit("pointwise")
"""Elements from which on a compiled loop chooses between old and new."""


def along(dim: int, index: np.ndarray | slice) -> tuple[Any, ...]:
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
