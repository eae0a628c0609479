"""Shapes and strides of views, by torch's rules; NumPy sets other strides for dims of size 1.

The functions on shapes and strides are pure and remembered: a repeated view costs a look-up.
Strides are in bytes, as NumPy has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from flambeau._core.layout import contiguous_strides
from flambeau._runtime.cpu import address, element_strides, over, owner_of

Ints = tuple[int, ...]
Geometry = tuple[Ints, Ints]
CACHE_SIZE = 4096


def steps_of(data: np.ndarray) -> Ints:
    """Byte strides; arrays without elements, whose strides NumPy sets to 0, count as row-major."""
    if data.size:
        return data.strides
    return tuple([step * data.itemsize for step in element_strides(data)])


def strided(data: np.ndarray, shape: Ints, strides: Ints, offset: int = 0) -> np.ndarray:
    """The array with this shape and these byte strides, `offset` bytes after the start of `data`.

    The elements must lie within the memory that the owner of `data` holds.
    """
    flags = data.flags
    if 0 in shape:
        return without_elements(data, shape, strides, offset)
    if flags.c_contiguous and flags.writeable and data.size and not offset:
        try:
            return over(data, shape, data.dtype, 0, strides)  # type: ignore[no-any-return]
        except ValueError:  # the elements reach beyond those of `data`
            pass
    owner = owner_of(data)
    start = address(data) - address(owner) + offset
    if not data.size or not flags.writeable:
        return _strided_by_protocol(data, shape, strides, owner, start)
    owner = _in_order_of_memory(owner)
    if not owner.flags.c_contiguous:
        return _strided_by_protocol(data, shape, strides, owner, start)
    return over(owner, shape, data.dtype, start, strides)  # type: ignore[no-any-return]


def _in_order_of_memory(owner: np.ndarray) -> np.ndarray:
    """Contiguous, where the array is dense with its dims in another order."""
    if owner.flags.c_contiguous:
        return owner
    return owner.transpose(sorted(range(owner.ndim), key=lambda dim: -owner.strides[dim]))


def at_position(data: np.ndarray, dim: int, start: int, shape: Ints,
                strides: Ints) -> np.ndarray:  # fmt: skip
    """A slice without elements, at its place: NumPy leaves one at the first element."""
    return strided(data, shape, strides, start * data.strides[dim])


def without_elements(data: np.ndarray, shape: Ints, strides: Ints, offset: int = 0,
                     element: Any = None) -> np.ndarray:  # fmt: skip
    """No elements, at a place in the memory of `data`; NumPy wants that to be whole.

    They may be of another type, `element`.
    """
    element = data.dtype if element is None else element
    owner = _in_order_of_memory(owner_of(data))
    start = min(max(address(data) - address(owner) + offset, 0), owner.nbytes)
    try:
        return over(owner, shape, element, start, strides)  # type: ignore[no-any-return]
    except ValueError:
        return np.ndarray(shape, element, np.empty(1, element), 0, strides)


def _strided_by_protocol(data: np.ndarray, shape: Ints, strides: Ints, owner: np.ndarray,
                         start: int) -> np.ndarray:  # fmt: skip
    """The slow way: empty and read-only arrays, and memory that NumPy only borrows."""
    first = np.lib.stride_tricks.as_strided(owner, (1,), (owner.itemsize,)).view(np.uint8)
    memory = np.lib.stride_tricks.as_strided(first, (start + data.itemsize,), (1,))
    whole = memory[start:].view(data.dtype)
    return np.lib.stride_tricks.as_strided(whole, shape, strides, writeable=data.flags.writeable)


@lru_cache(CACHE_SIZE)
def row_major(shape: Ints, itemsize: int) -> Ints:
    """Byte strides of a new tensor."""
    return tuple([step * itemsize for step in contiguous_strides(shape)])


def is_plain(data: np.ndarray) -> bool:
    """Whether the strides are exactly a new tensor's, those of dims of size 1 and 0 included."""
    if not data.flags.c_contiguous:
        return False
    shape = data.shape
    if 1 not in shape and 0 not in shape:
        return True
    return data.strides == row_major(shape, data.itemsize)


@lru_cache(CACHE_SIZE)
def viewed_strides(shape: Ints, strides: Ints, itemsize: int, wanted: Ints) -> Ints | None:
    """Byte strides that show a tensor in another shape, or None where a copy is needed."""
    if 0 in shape:
        return strides if shape == wanted else row_major(wanted, itemsize)
    if not shape:
        return (itemsize,) * len(wanted)
    found: list[int] = []
    remaining = list(wanted)
    for count, step in reversed(_runs(shape, strides)):
        taken = 1
        while remaining and (taken < count or remaining[-1] == 1):
            found.append(step * taken)
            taken *= remaining.pop()
        if taken != count:
            return None
    return None if remaining else tuple(reversed(found))


def _runs(shape: Ints, strides: Ints) -> list[tuple[int, int]]:
    """Runs of dims that lie evenly spaced in memory: (number of elements, innermost stride).

    A dim of size 1 joins the run to its right.
    """
    runs: list[tuple[int, int]] = []
    count, step = 1, strides[-1]
    for dim in reversed(range(len(shape))):
        count *= shape[dim]
        if dim == 0:
            break
        if shape[dim - 1] != 1 and strides[dim - 1] != count * step:
            runs.append((count, step))
            count, step = 1, strides[dim - 1]
    runs.append((count, step))
    return runs[::-1]


def view_strides(data: np.ndarray, shape: Sequence[int]) -> Ints | None:
    """Byte strides that show `data` in another shape, or None where a copy is needed."""
    given = data.shape, steps_of(data), data.itemsize, tuple(shape)
    try:
        return viewed_strides(*given)
    except TypeError:  # sizes that are symbols, which no cache can hold
        return viewed_strides.__wrapped__(*given)


@lru_cache(CACHE_SIZE)
def unsqueezed(shape: Ints, strides: Ints, itemsize: int, dim: int) -> Geometry:
    """Shape and strides with a new dim of size 1 before `dim`."""
    step = itemsize if dim == len(shape) else shape[dim] * strides[dim]
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:])


@lru_cache(CACHE_SIZE)
def expanded(shape: Ints, strides: Ints, size: Ints) -> Geometry:
    """Shape and strides after `expand(size)`; RuntimeError with the reason where it cannot be."""
    if not shape:
        return size, (0,) * len(size)
    missing = len(size) - len(shape)
    sizes, steps = [0] * len(size), [0] * len(size)
    for position in reversed(range(len(size))):
        wanted, have = size[position], 1
        if position >= missing:
            have, step = shape[position - missing], strides[position - missing]
        else:
            step = sizes[position + 1] * steps[position + 1]
        wanted = _expanded_size(wanted, have, position, missing, shape, size)
        sizes[position] = wanted
        steps[position] = step if wanted == have else 0
    return tuple(sizes), tuple(steps)


def _expanded_size(wanted: int, have: int, position: int, missing: int,
                   shape: Ints, size: Ints) -> int:  # fmt: skip
    if wanted == -1:
        if position >= missing:
            return have
        raise RuntimeError(
            f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, "
            f"non-existing dimension {position}"
        )
    if have not in (1, wanted):
        raise RuntimeError(
            f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at "
            f"non-singleton dimension {position}.  Target sizes: {list(size)}.  Tensor sizes: "
            f"{list(shape)}"
        )
    if wanted < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    return wanted
