"""Reading and writing by position, by compiled kernels.

Every function returns whether (or what) it did: where a position is out of range, or there is no
kernel for the types, nothing is written and the caller goes on with NumPy, which has the errors.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._core import settings
from flambeau._core.layout import around
from flambeau._runtime import choice
from flambeau._runtime.observed import flags
from flambeau._runtime.warming import cached

STORAGE = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32),
           8: np.dtype(np.uint64)}  # fmt: skip
"""Integers that are moved in place of elements of a size."""
COLUMNS = 64
"""A part of a row has at least this many elements."""
ALONE = 16384
"""Fewer elements than this are written by one thread."""
CHECKING = frozenset(["check_places", "read_rows", "read_elements"])
"""Kernels besides those that write that look whether vectors of positions are in range."""
NOTHING = -1 << 62
"""A position that does not occur."""


@cache
def _kernel(name: str, dtype: np.dtype[Any] | None, index: np.dtype[Any], op: str = "") -> Any:
    """A kernel for types; what kernels are made of is imported with the first one."""
    from flambeau._compiler.types import NAMES, OF_NUMPY
    from flambeau._ops.indexing import kernels
    from flambeau._runtime import features, launch

    statics: dict[str, Any] = {"I": OF_NUMPY[index.name]}
    if dtype is not None:
        statics["T"] = OF_NUMPY[NAMES[dtype]]
    if op:
        statics["OP"] = op
    if name == "write_rows":
        statics["W"] = features.vector_bits() // statics["T"].bits
    if op or name in CHECKING:
        statics["V"] = features.vector_bits() // 64
    return launch.kernel(getattr(kernels, name), **statics)


def _tasks(items: int, size: int) -> int:
    return max(1, min(items, 4 * settings.get_num_threads(), size // 16384))


def _grid(outer: int, count: int, size: int) -> tuple[int, int]:
    """(tasks, parts of `outer` among them); the others are parts of the positions."""
    tasks = _tasks(outer * count, size)
    parts = min(outer, tasks)
    return tasks // parts * parts, parts


def _row_major(array: np.ndarray) -> np.ndarray:
    return array if array.flags.c_contiguous else np.array(array, order="C")


# ---- reading


@choice.guard
@cached
def read_rows(data: np.ndarray, dim: int, index: np.ndarray, wrap: bool = False) -> Any:
    """The slices of a dim at index [*]: [before, *, behind], or None."""
    size = index.size * (data.size // max(data.shape[dim], 1))
    if not size or not choice.compiled("gather rows", size) or data.itemsize not in STORAGE:
        return None
    if not data.flags.c_contiguous:
        return None
    index = _row_major(index)
    out = np.empty((*data.shape[:dim], *index.shape, *data.shape[dim + 1 :]), data.dtype)
    outer, length, inner = around(data.shape, dim)
    tasks, parts = _grid(outer, index.size, size)
    bad = flags(tasks)
    run = _kernel("read_rows", STORAGE[data.itemsize], index.dtype)
    run.parallel(tasks, data, index, out, bad, outer, length, inner, index.size, int(wrap), parts)
    return None if bad.any() else out


@choice.guard
@cached
def read_elements(data: np.ndarray, dim: int, index: np.ndarray) -> Any:
    """The element at each position of index, which has the shape of data but for the dim."""
    if not choice.compiled("gather", index.size) or data.itemsize not in STORAGE:
        return None
    if not (data.size and index.size and data.flags.c_contiguous):
        return None
    shape, sizes = index.shape, data.shape
    if shape[:dim] != sizes[:dim] or shape[dim + 1 :] != sizes[dim + 1 :]:
        return None
    outer, length, inner = around(sizes, dim)
    index = _row_major(index)
    out = np.empty(index.shape, data.dtype)
    count = index.shape[dim]
    tasks, parts = _grid(outer, count, index.size)
    bad = flags(tasks)
    run = _kernel("read_elements", STORAGE[data.itemsize], index.dtype)
    run.parallel(tasks, data, index, out, bad, outer, length, inner, count, parts)
    return None if bad.any() else out


# ---- writing

COMBINED = frozenset([np.dtype(kind) for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8",
                                                  "f4", "f8")])  # fmt: skip
"""Types whose elements the kernels add, multiply and compare."""


def _writable(data: np.ndarray, op: str) -> np.dtype[Any] | None:
    """The type that the kernel works in, if it can."""
    if not data.flags.c_contiguous or not data.size:
        return None
    if op == "set":
        return STORAGE.get(data.itemsize)
    return data.dtype if data.dtype in COMBINED else None


def in_range(index: np.ndarray, size: int) -> bool:
    """Whether every position of row-major memory is one of 0 to size - 1."""
    tasks = _tasks(index.size, index.size)
    bad = np.empty(tasks, np.int64)
    run = _kernel("check_places", None, index.dtype)
    run.parallel(tasks, index, bad, index.size, size)
    return not (bad < 0).any()


def _written(name: str, types: tuple[Any, ...], tasks: int, data: np.ndarray, index: np.ndarray,
             source: np.ndarray, *sizes: int) -> bool:  # fmt: skip
    """Run a kernel that writes, if all positions are in range; whether they are. `types`: what it
    works in, that of the index, and the kernel's `op`; sizes[1]: the places that there are."""
    if tasks > 1 and not in_range(index, sizes[1]):
        return False
    bad = np.zeros(1, np.int64)  # what one task checks itself: a second launch takes as long again
    _kernel(name, *types).parallel(tasks, data, index, source, *sizes, bad)
    return tasks > 1 or bad[0] >= 0  # type: ignore[no-any-return]


@choice.guard
def write_rows(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, op: str,
               skip: int = NOTHING) -> bool:  # fmt: skip
    """Slices of source [before, *, behind] meet those of data at index [*], in range."""
    work = "scatter rows" if op == "set" else "scatter"
    if not source.size or not choice.compiled(work, source.size):
        return False
    worked = _writable(data, op)
    if worked is None or np.may_share_memory(data, source):
        return False
    index, source = _row_major(index), _row_major(source)
    outer, length, inner = around(data.shape, dim)
    count = index.size
    if inner == 1:
        return _write_singles(worked, data, index, source, op, (outer, length, count), skip)
    threads = _threads(source.size)
    columns = min(threads, max(inner // COLUMNS, 1))
    alone = columns > 1 or inner < COLUMNS // 2
    tasks = columns if alone else threads
    return _written("write_rows", (worked, index.dtype, op), tasks, data, index, source,
                    outer, length, inner, count, skip, columns)  # fmt: skip


def _threads(size: int) -> int:
    return settings.get_num_threads() if size >= ALONE else 1


def _write_singles(worked: Any, data: np.ndarray, index: np.ndarray, source: np.ndarray, op: str,
                   sizes: tuple[int, int, int], skip: int = NOTHING) -> bool:  # fmt: skip
    """Slices of one element; the index is that of every row, or one row's for all."""
    outer, length, count = sizes
    tasks = min(_threads(outer * count), outer)
    step = int(source.size == outer * count)
    rows = int(index.size == outer * count)
    return _written("write_singles", (worked, index.dtype, op), tasks, data, index, source,
                    outer, length, count, rows, step, skip)  # fmt: skip


@choice.guard
def write_elements(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray,
                   op: str) -> bool:  # fmt: skip
    """Values of source (of the shape of index, or one number) meet those of data at positions
    along a dim; index has the shape of data but for the dim."""
    if not index.size or not choice.compiled("scatter", index.size):
        return False
    worked = _writable(data, op)
    if worked is None or np.may_share_memory(data, source):
        return False
    outer, length, inner = around(data.shape, dim)
    if around(index.shape, dim) != (outer, index.shape[dim], inner):
        return False
    index, source = _row_major(index), _row_major(source)
    count = index.shape[dim]
    if inner == 1:
        return _write_singles(worked, data, index, source, op, (outer, length, count))
    threads = _threads(index.size)
    parts = min(threads, outer)
    columns = min(threads, max(inner // COLUMNS, 1)) if parts < threads else 1
    step = int(source.size == index.size)
    return _written("write_elements", (worked, index.dtype, op), parts * columns, data, index,
                    source, outer, length, inner, count, step, columns)  # fmt: skip
