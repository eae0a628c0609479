"""Sorted rows and their first elements, by compiled kernels; `fits` says for which arrays.

Order is stable: equal elements, among which all NaN count, keep the order of their indices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler import types
from flambeau._core import settings
from flambeau._ops.sorting.kernels import select as select_kernels
from flambeau._ops.sorting.kernels import sort as sort_kernels
from flambeau._runtime.launch import Kernel, kernel

INT64 = np.dtype(np.int64)
INFINITIES = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000,
              "float64": 0x7FF << 52}  # fmt: skip
"""The bits of infinity: greater ones, but for the sign, are NaN."""
LONG = 1 << 16
"""From this length on a row is sorted by all threads where there are too few rows for them."""
DIGIT = 8
"""Bits of a digit of long rows: the places of 2**8 runs of words stay in the first cache."""
PART = 1 << 15
"""Fewer elements than this are not worth a part of their own when a long row is searched."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """How elements of a dtype become words. `storage` is the integer of an element's bits, `size`
    how many numbers a word has, `lanes` how many keys a vector has."""

    storage: np.dtype[Any]
    size: int
    lanes: int
    statics: dict[str, Any]


@cache
def words_of(dtype: np.dtype[Any]) -> Words | None:
    """The words of a dtype; None for complex numbers."""
    if dtype.name not in types.OF_NUMPY:
        return None
    from flambeau._runtime import features

    infinity = INFINITIES.get(dtype.name, 0)
    signed = infinity or dtype.kind == "i"
    storage = np.dtype(f"{'i' if signed else 'u'}{dtype.itemsize}")
    size, key = (2, types.i64) if dtype.itemsize == 8 else (1, types.i32)
    statics = {"T": types.OF_NUMPY[storage.name], "K": key, "INF": infinity, "WORDS": size}
    return Words(storage, size, features.vector_bits() // key.bits, statics)


@cache
def _kernel(native: Any, words: Words) -> Kernel:
    """A kernel for the words of a dtype; rows are sorted in vectors of i64."""
    statics = dict(words.statics)
    if native is sort_kernels.sort_rows:
        statics["W"] = words.lanes if words.size == 2 else words.lanes // 2
    elif native is select_kernels.select_rows:
        statics["W"] = words.lanes
    return kernel(native, **statics)


def fits(data: np.ndarray, dim: int) -> bool:
    """Whether the kernels sort such an array: real numbers, indices of 32 bits."""
    return data.size > 0 and data.shape[dim] < 1 << 31 and words_of(data.dtype) is not None


def sort(data: np.ndarray, dim: int, descending: bool) -> tuple[np.ndarray, np.ndarray]:
    """Values and indices (int64) in sorted order along a dim, of the array's shape."""
    words: Any = words_of(data.dtype)
    rows = _rows(data, dim, words)
    values = np.empty(rows.shape, rows.dtype)
    indices = np.empty(rows.shape, INT64)
    count, length = rows.shape
    flip = -1 if descending else 0
    if length >= LONG and count < 2 * settings.get_num_threads():
        for row in range(count):
            _sort_long(words, rows[row], values[row], indices[row], flip)
    else:
        _sort_rows(words, rows, values, indices, flip)
    return _shaped(values.view(data.dtype), data, dim), _shaped(indices, data, dim)


def first(data: np.ndarray, k: int, dim: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """The first k values and indices in sorted order along a dim; k is not 0."""
    words: Any = words_of(data.dtype)
    rows = _rows(data, dim, words)
    flip = -1 if largest else 0
    shape = (rows.shape[0], k)
    values, indices = np.empty(shape, rows.dtype), np.empty(shape, INT64)
    parts = _parts(rows.shape, k, words)
    if parts == 0:
        _sort_rows(words, rows, values, indices, flip)
    elif parts == 1:
        _select_rows(words, rows, 1, values, indices, flip)
    else:
        _select_parts(words, rows, parts, values, indices, flip)
    return _shaped(values.view(data.dtype), data, dim), _shaped(indices, data, dim)


def _rows(data: np.ndarray, dim: int, words: Words) -> np.ndarray:
    """[rows, length] in row-major memory, as integers of the elements' bits."""
    if dim != data.ndim - 1:
        data = data.swapaxes(dim, -1)
    if not data.flags.c_contiguous:
        data = np.array(data, order="C")
    data = data.view(words.storage)
    return data if data.ndim == 2 else data.reshape(-1, data.shape[-1])


def _shaped(found: np.ndarray, data: np.ndarray, dim: int) -> np.ndarray:
    """Rows back in the shape of the array, with as many elements along `dim` as were found."""
    last = data.ndim - 1
    if dim == last:
        return found.reshape((*data.shape[:-1], found.shape[1])) if last != 1 else found
    shape = list(data.shape)
    shape[dim], shape[last] = shape[last], found.shape[1]
    return found.reshape(shape).swapaxes(dim, -1)


def _tasks(rows: int, length: int) -> int:
    """Parts of at least some 20 us, up to four for each thread."""
    return max(1, min(rows, 4 * settings.get_num_threads(), rows * length // 2048))


def _scratch(words: Words, tasks: int, length: int) -> tuple[np.ndarray, int]:
    """Two parts for each task, and how many numbers each has: whole vectors of words."""
    room = (words.size * length + 15) // 8 * 8
    return np.empty(tasks * 2 * room, INT64), room


def _sort_rows(words: Words, rows: np.ndarray, values: np.ndarray, indices: np.ndarray,
               flip: int) -> None:  # fmt: skip
    count, length = rows.shape
    tasks = _tasks(count, length)
    scratch, room = _scratch(words, tasks, length)
    _kernel(sort_kernels.sort_rows, words).parallel(
        tasks, rows, values, indices, scratch, count, length, room, values.shape[1], flip
    )


def _sort_long(words: Words, row: np.ndarray, values: np.ndarray, indices: np.ndarray,
               flip: int) -> None:  # fmt: skip
    """Digit by digit from the lowest; digits that all keys share are skipped."""
    length = row.size
    tasks = 1 if settings.get_num_threads() == 1 else 2 * settings.get_num_threads()
    source, target = (np.empty(words.size * length, INT64) for _ in range(2))
    special = np.empty(tasks, INT64)
    make = _kernel(sort_kernels.make_words, words)
    make.parallel(tasks, row, source, special, length, flip)
    counts = np.empty((tasks, 1 << DIGIT), np.int32)
    count = kernel(sort_kernels.count_part, BITS=DIGIT, WORDS=words.size)
    move = kernel(sort_kernels.move_part, BITS=DIGIT, WORDS=words.size)
    digits = words.storage.itemsize
    for digit in range(digits):
        shift = DIGIT * digit + (32 if words.size == 1 else 0)
        count.parallel(tasks, source, counts, length, shift)
        if counts.sum(0).max() == length:
            continue
        top = 1 << (DIGIT - 1) if digit == digits - 1 else 0
        move.parallel(tasks, source, target, counts, length, shift, top)
        source, target = target, source
    read = _kernel(sort_kernels.read_words, words)
    read.parallel(tasks, row, source, values, indices, length, flip, int(special.any()))


# ---- the first k


def _parts(shape: tuple[int, ...], k: int, words: Words) -> int:
    """Into how many parts a row is split; 0: so many elements are wanted that all are sorted."""
    count, length = shape
    need = 4 * k + 2 * words.lanes
    if length < need:
        return 0
    threads = settings.get_num_threads()
    enough = max(need, PART)
    if count >= threads or length < 2 * enough:
        return 1
    return min(4 * threads, length // enough)


def _select_rows(words: Words, rows: np.ndarray, parts: int, values: np.ndarray,
                 indices: np.ndarray, flip: int) -> None:  # fmt: skip
    count, length = rows.shape
    longest = -(-length // parts)
    tasks = _tasks(count * parts, longest)
    scratch, room = _scratch(words, tasks, longest)
    _kernel(select_kernels.select_rows, words).parallel(
        tasks, rows, values, indices, scratch, count, length, parts, room, indices.shape[-1], flip
    )


def _select_parts(words: Words, rows: np.ndarray, parts: int, values: np.ndarray,
                  indices: np.ndarray, flip: int) -> None:  # fmt: skip
    """The first of each part; of these, which are in order of their indices, the first."""
    count, k = values.shape
    shape = (count, parts, k)
    found, places = np.empty(shape, rows.dtype), np.empty(shape, INT64)
    _select_rows(words, rows, parts, found, places, flip)
    chosen = np.empty((count, k), INT64)
    _sort_rows(words, found.reshape(count, -1), values, chosen, flip)
    indices[...] = np.take_along_axis(places.reshape(count, -1), chosen, 1)
