"""Launches the kernels that apply tables along the dims of an array."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.conv.launch_depthwise import types_of
from flambeau._ops.images import resample_kernels as kernels
from flambeau._ops.images.resample_kernels import ROWS
from flambeau._ops.images.tables import BYTES, Table
from flambeau._ops.launching.precision import Array
from flambeau._runtime.features import vector_bits
from flambeau._runtime.launch import Kernel, kernel
from flambeau._runtime.observed import constant, scratch

TASK_TERMS = 1 << 14
"""Terms of sums that are worth a task of their own."""
PICKED = 3
"""How much longer it takes to pick a term than to load it beside others."""
MOST_LANES = 16
SHORTEST_RUN = 8
"""Elements that are copied as a block, not one by one."""

Along = tuple[int, Table]
"""A dim and the table for it."""
Dtype = np.dtype[Any]


class Pass(NamedTuple):
    """The launch for one dim, whose arrays are not given yet."""

    kernel: Kernel
    tasks: int
    shape: tuple[int, ...]
    dtype: Dtype
    """Of the result."""
    room: int
    """Elements that the tasks work in, in the type `wide`."""
    wide: Dtype
    rest: tuple[Any, ...]


def apply(array: Array, tables: tuple[Along, ...], kind: int, zero: bool) -> Array:
    """The array with tables applied along some of its dims; half types are rounded once at the end.

    `zero` says that sums begin with 0, not with their first term. `array` is row-major.
    """
    passes = _passes(array.shape, array.dtype, tables, kind, zero, get_num_threads())
    for number, each in enumerate(passes):
        if number == len(passes) - 1:
            result = np.empty(each.shape, each.dtype)
        else:
            result = scratch(prod(each.shape), each.dtype).reshape(each.shape)
        if each.room:
            each.kernel.parallel(each.tasks, array, result, scratch(each.room, each.wide),
                                 *each.rest)  # fmt: skip
        else:
            each.kernel.parallel(each.tasks, array, result, *each.rest)
        array = result
    return array


@lru_cache(512)
def _passes(shape: tuple[int, ...], dtype: Dtype, tables: tuple[Along, ...], kind: int,
            zero: bool, threads: int) -> list[Pass]:  # fmt: skip
    wide = _wide(dtype, kind)
    found = []
    order = tables if kind == BYTES else _cheapest(shape, tables)
    for number, (dim, table) in enumerate(order):
        last = number == len(order) - 1
        target = dtype if last or kind == BYTES else wide
        source = dtype if number == 0 or kind == BYTES else wide
        from_zero = zero or not np.diff(table.starts).all()
        found.append(_pass(shape, dim, table, (source, target, wide), kind, from_zero, threads))
        shape = found[-1].shape
    return found


def _wide(dtype: Dtype, kind: int) -> Dtype:
    """What sums are taken in; copies are of the bits that there are."""
    if kind == BYTES:
        return np.dtype(np.int32)
    return dtype if dtype.kind in "iu" else types_of(dtype)[1]


def _cheapest(shape: tuple[int, ...], tables: Sequence[Along]) -> Sequence[Along]:
    return min(permutations(tables), key=lambda order: _cost(shape, order))


def _cost(shape: tuple[int, ...], order: Sequence[Along]) -> int:
    total = 0
    for dim, table in order:
        others = prod(shape[:dim]) * prod(shape[dim + 1 :])
        each = PICKED if prod(shape[dim + 1 :]) == 1 else 1
        total += others * (each * len(table.places) + table.count)
        shape = (*shape[:dim], table.count, *shape[dim + 1 :])
    return total


def _pass(shape: tuple[int, ...], dim: int, table: Table, dtypes: tuple[Dtype, Dtype, Dtype],
          kind: int, zero: bool, threads: int) -> Pass:  # fmt: skip
    outer, inner = prod(shape[:dim]), prod(shape[dim + 1 :])
    source, target, wide = dtypes
    accumulated = OF_NUMPY[NAMES[wide]]
    width = min(vector_bits() // accumulated.bits, MOST_LANES)
    statics = {"S": OF_NUMPY[NAMES[source]], "T": OF_NUMPY[NAMES[target]], "A": accumulated,
               "W": width}  # fmt: skip
    half = 1 << table.shift >> 1 if kind == BYTES else 0
    scalars = tuple(float(each) if wide.kind == "f" else each for each in (half, table.shift))
    result = (*shape[:dim], table.count, *shape[dim + 1 :])
    terms = outer * inner * len(table.places)
    units = -(-outer // ROWS) if inner == 1 else outer * table.count
    tasks = max(1, min(units, terms // TASK_TERMS, 4 * threads))
    if inner > 1:
        run = kernel(kernels.across, **statics, KIND=kind, ZERO=zero)
        arrays = (table.starts, table.places, table.weights.astype(wide))
        rest = (*map(constant, arrays), outer, table.size, table.count, inner, *scalars)
        return Pass(run, tasks, result, target, 0, wide, rest)
    run = kernel(kernels.along, **statics, R=ROWS, KIND=kind, ZERO=zero)
    room = -(-(table.size + 1) // width) * width
    arrays = _by_vectors(table, width, wide)
    rest = (*map(constant, arrays), outer, table.size, table.count, room, *scalars)
    return Pass(run, tasks, result, target, tasks * ROWS * room, wide, rest)


def _by_vectors(table: Table, width: int, wide: Dtype) -> tuple[Array, Array, Array]:
    """The table with as many terms for each of `width` new elements: where the vectors of each
    such block start, the places, and the weights. A term too many is at place `size`."""
    lengths = np.diff(table.starts)
    count = -(-len(lengths) // width)
    padded = np.zeros(count * width, np.int64)
    padded[: len(lengths)] = lengths
    # A block without terms has one all the same: its weights are looked at.
    most = np.maximum(padded.reshape(count, width).max(1), 1)
    blocks = np.concatenate([[0], most.cumsum()]).astype(np.int64)
    places = np.full((int(blocks[-1]), width), table.size, np.int64)
    weights = np.ones(places.shape, wide)
    new = np.repeat(np.arange(len(lengths)), lengths)
    number = np.arange(len(new)) - table.starts[new]
    at = blocks[new // width] + number, new % width
    places[at], weights[at] = table.places, table.weights
    return blocks, places, weights


# ---- copies


def copy(array: Array, tables: tuple[Along, ...]) -> Array:
    """The array with tables applied that copy elements: all dims at once."""
    each = _copies(array.shape, array.dtype, tables, get_num_threads())
    result = np.empty(each.shape, each.dtype)
    each.kernel.parallel(each.tasks, array, result, *each.rest)
    return result


@lru_cache(512)
def _copies(shape: tuple[int, ...], dtype: Dtype, tables: tuple[Along, ...],
            threads: int) -> Pass:  # fmt: skip
    places = {dim: table.places for dim, table in tables}
    first, last = min(places), max(places)
    inner = prod(shape[last + 1 :])
    rows = np.zeros(1, np.int64)
    for dim in range(first, last):
        step = prod(shape[dim + 1 :])
        taken = places.get(dim, np.arange(shape[dim]))
        rows = (rows[:, None] + taken * step).reshape(-1)
    starts, lengths = _runs(places[last])
    has_runs = len(places[last]) * inner >= SHORTEST_RUN * len(starts)
    if has_runs:
        runs = np.stack([starts, lengths], 1) * inner
    else:
        runs = places[last][:, None] * inner + np.arange(inner)
    outer, length = prod(shape[:first]), len(places[last]) * inner
    sizes = list(shape)
    for dim, table in tables:
        sizes[dim] = table.count
    tasks = max(1, min(outer * len(rows), prod(sizes) // TASK_TERMS, 4 * threads))
    run = kernel(kernels.copied, T=OF_NUMPY[NAMES[dtype]], RUNS=has_runs)
    rest = (constant(rows), constant(np.ascontiguousarray(runs)), outer, prod(shape[first:]),
            len(rows), length)  # fmt: skip
    return Pass(run, tasks, tuple(sizes), dtype, 0, dtype, rest)


def _runs(places: Array) -> tuple[Array, Array]:
    """Where places that follow each other begin, and how many there are."""
    begins = np.flatnonzero(np.diff(places, prepend=-2) != 1)
    return places[begins], np.diff(begins, append=len(places))
