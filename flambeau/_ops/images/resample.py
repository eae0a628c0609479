"""Resizing, adaptive means and pads by copied elements: compiled kernels where they serve.

Each function gives None where NumPy is to do it: for few elements, without a compiler, and for
types that the kernels do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from flambeau._ops.images import interpolate_bytes as plain_bytes
from flambeau._ops.images import numpy_interpolate as plain
from flambeau._ops.images.tables import (
    BYTES,
    COPIES,
    MEAN,
    OVER,
    PLAIN,
    TIMES,
    Table,
    of_places,
    of_segments,
    of_taps,
    transposed,
)
from flambeau._ops.launching.memory_formats import is_last
from flambeau._ops.launching.modules import launcher
from flambeau._ops.launching.precision import Array, is_floating
from flambeau._ops.launching.windows import Ints
from flambeau._runtime import choice

Along = tuple[int, Table]
BITS = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32),
        8: np.dtype(np.uint64)}  # fmt: skip
"""Element sizes -> what copies take elements for."""


def _applied(array: Array, tables: Sequence[Along], kind: int, zero: bool) -> Array | None:
    """The array with a table applied along each of some dims, or None."""
    largest = array.size
    for dim, table in tables:
        largest = max(largest, array.size // max(array.shape[dim], 1) * table.count)
    if not array.size or not largest or not choice.compiled("resample", largest):
        return None
    if not all(table.count for _, table in tables):
        return None
    if kind == PLAIN and array.dtype.itemsize in BITS and all(t.is_copy for _, t in tables):
        bits = array.view(BITS[array.dtype.itemsize])
        return _in_rows(bits, tables, COPIES, zero).view(array.dtype)
    if array.dtype.kind == "c" and kind == PLAIN:
        return _complex(array, tables, zero)
    if not is_floating(array.dtype) and kind != BYTES:
        return None
    return _in_rows(array, tables, kind, zero)


def _complex(array: Array, tables: Sequence[Along], zero: bool) -> Array:
    """The same for real and imaginary parts, which lie side by side."""
    rows = np.ascontiguousarray(array)
    parts = rows.view(rows.real.dtype).reshape(*rows.shape, 2)
    found = launcher("images.resample_launch").apply(parts, tuple(tables), PLAIN, zero)
    return found.view(array.dtype)[..., 0]  # type: ignore[no-any-return]


def _in_rows(array: Array, tables: Sequence[Along], kind: int, zero: bool) -> Array:
    """Channels that lie side by side stay so."""
    last = is_last(array)
    rows = np.ascontiguousarray(np.moveaxis(array, 1, -1) if last else array)
    placed = tuple((dim - last, table) for dim, table in tables)
    kernels = launcher("images.resample_launch")
    found = (
        kernels.copy(rows, placed) if kind == COPIES else kernels.apply(rows, placed, kind, zero)
    )
    return np.moveaxis(found, -1, 1) if last else found  # type: ignore[no-any-return]


# ---- resizing


@lru_cache(512)
def _table_of_taps(taps: plain.Taps, size: int, backward: bool) -> Table:
    if taps.weights is None:
        table = of_places(taps.positions[0], size)
    else:
        # A weight of 0 counts, where it meets infinity; what only fills the rows does not.
        kept = None if taps.counts is None else np.arange(len(taps.weights))[:, None] < taps.counts
        table = of_taps(taps.positions, taps.weights, size, kept)
    return transposed(table) if backward else table


def interpolate(input: Array, mode: str, output: Ints, align_corners: bool,
                scales: plain.Scales | None, antialias: bool,
                backward: bool = False) -> Array | None:  # fmt: skip
    """As `numpy_interpolate.interpolate`; `backward` takes gradients to images of size `output`."""
    copies = mode in ("nearest", "nearest-exact")
    if not (is_floating(input.dtype) or (copies and input.dtype == np.uint8)):
        return None
    spatial = input.shape[2:]
    factors = scales if scales is not None else (None,) * len(output)
    sizes = (tuple(output), spatial) if backward else (spatial, tuple(output))
    double = input.dtype == np.float64
    size, count = sizes
    taps = plain.taps_for(mode, size, count, align_corners, factors, double, antialias, backward)
    tables = [
        (dim + 2, _table_of_taps(each, sizes[0][dim], backward)) for dim, each in enumerate(taps)
    ]
    return _applied(input, tables, PLAIN if copies else TIMES, backward)


@lru_cache(512)
def _table_of_integers(taps: plain.Taps, size: int) -> Table:
    weights, bits = plain_bytes.integers(taps)
    return of_taps(taps.positions, weights, size, weights != 0, bits)


def interpolate_bytes(input: Array, mode: str, output: Ints, align_corners: bool,
                      scales: plain.Scales | None, antialias: bool) -> Array | None:  # fmt: skip
    """As `interpolate_bytes.interpolate_bytes`."""
    factors = scales if scales is not None else (None,) * len(output)
    spatial = input.shape[2:]
    taps = plain.taps_for(
        mode, spatial, tuple(output), align_corners, factors, True, antialias, False
    )
    tables = [
        (dim + 2, _table_of_integers(taps[dim], spatial[dim]))
        for dim in reversed(range(len(output)))
        if spatial[dim] != output[dim]
    ]
    return _applied(input, tables, BYTES, True) if tables else None


# ---- adaptive means


@lru_cache(512)
def _table_of_segments(size: int, count: int, backward: bool) -> Table:
    segments = [(o * size // count, -(-(o + 1) * size // count)) for o in range(count)]
    table = of_segments(segments, size)
    return transposed(table) if backward else table


def segment_means(input: Array, output: Ints) -> Array | None:
    """As `numpy_adaptive.adaptive_avg_pool`."""
    first = input.ndim - len(output)
    tables = [
        (first + d, _table_of_segments(input.shape[first + d], count, False))
        for d, count in enumerate(output)
    ]
    return _applied(input, tables, MEAN, True)


def segment_means_backward(grad: Array, spatial: Ints) -> Array | None:
    """As `numpy_adaptive.adaptive_avg_pool_backward`."""
    first = grad.ndim - len(spatial)
    if 0 in spatial or 0 in grad.shape:
        return None
    tables = [
        (first + d, _table_of_segments(size, grad.shape[first + d], True))
        for d, size in enumerate(spatial)
    ]
    return _applied(grad, tables, OVER, True)


# ---- pads by copied elements

Places = Callable[[int, int, int], Array]
"""Which old place each new one copies, for a size and how many are added before and after."""


@lru_cache(512)
def _table_of_pad(places: Places, size: int, before: int, after: int, backward: bool) -> Table:
    table = of_places(places(size, before, after), size)
    return transposed(table) if backward else table


def padded(array: Array, pads: Sequence[tuple[int, int]], places: Places,
           sizes: Ints, backward: bool = False) -> Array | None:  # fmt: skip
    """The array with pads along its dims, or the gradient of that; `sizes` are those without."""
    tables = [
        (dim, _table_of_pad(places, sizes[dim], *pad, backward))
        for dim, pad in enumerate(pads)
        if pad != (0, 0)
    ]
    return _applied(array, tables, PLAIN, backward) if tables else None


# ---- channels


@lru_cache(128)
def _table_of_shuffle(channels: int, groups: int) -> Table:
    return of_places(np.arange(channels).reshape(groups, -1).T.reshape(-1), channels)


def channels_shuffled(array: Array, groups: int) -> Array | None:
    """The channels (dim 1) of a row-major array, one from each group in turn."""
    if not array.flags.c_contiguous:
        return None
    return _applied(array, [(1, _table_of_shuffle(array.shape[1], groups))], PLAIN, False)
