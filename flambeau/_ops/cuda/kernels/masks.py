"""Places of elements that are not zero, and writing to places."""

from __future__ import annotations

from flambeau._compiler.gpu.pointwise_text import divided
from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.cuda.kernels.indexing import inside


@native
def places(mask: pointer(T), counts: pointer(i64), out: pointer(i64), units: i64, T: static,
           THREADS: static):  # fmt: skip
    """The place of every element that is not 0; `counts` says how many there are up to it."""
    unit = block() * THREADS + thread()
    if unit < units:
        if mask[unit] != 0:
            out[counts[unit] - 1] = unit


@native
def column(flat: pointer(i64), out: pointer(i64), units: i64, apart: i64, size: i64,
           THREADS: static):  # fmt: skip
    """Places in one of several dims: the next place of it is `apart` elements away."""
    unit = block() * THREADS + thread()
    if unit < units:
        out[unit] = flat[unit] // apart % size


@native
def put_rows(out: pointer(T), index: pointer(I), source: pointer(T), units: i64, size: i64,
             width: i64, width_magic: i64, width_shift: i64, count: i64, count_magic: i64,
             count_shift: i64, T: static, I: static, SINGLE: static, THREADS: static,
             BIG: static):  # fmt: skip
    """out[o][index[i]] = source[o][i], rows of `width` elements; of several for one place any.
    SINGLE: the source is one number."""
    unit = block() * THREADS + thread()
    if unit < units:
        row = divided(unit, width, width_magic, width_shift, BIG)
        outer = divided(row, count, count_magic, count_shift, BIG)
        place = i64(index[row - outer * count])
        if inside(place, size):
            out[(outer * size + place) * width + (unit - row * width)] = (
                source[0] if SINGLE else source[unit])  # fmt: skip
