"""Elements by their place: rows of a table, gather, scatter; places outside are passed over.

Arrays are row-major. `divided` divides by a size with what the launcher knows of it (`divisor`).
"""

from __future__ import annotations

from flambeau._compiler.gpu.pointwise_text import divided
from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native


@native
def inside(place: i64, size: i64):
    """Whether a place is one of a dim; negative ones are not."""
    return (place >= 0) & (place < size)


@native
def take_rows(x: pointer(T), index: pointer(I), out: pointer(T), units: i64, size: i64, width: i64,
              width_magic: i64, width_shift: i64, count: i64, count_magic: i64, count_shift: i64,
              T: static, I: static, V: static, U: static, THREADS: static,
              BIG: static):  # fmt: skip
    """out[o][i] = x[o][index[i]]: rows of `width` vectors of V elements, `size` of them in x. A
    thread has U vectors, whose places it reads before it reads any of them."""
    first = block() * (THREADS * U) + thread()
    sources = registers(i64, U, -1)
    for u in unroll(U):
        unit = first + u * THREADS
        if unit < units:
            row = divided(unit, width, width_magic, width_shift, BIG)
            outer = divided(row, count, count_magic, count_shift, BIG)
            place = i64(index[row - outer * count])
            if inside(place, size):
                sources[u] = (outer * size + place) * width + (unit - row * width)
    got = registers(vector(T, V), U)
    for u in unroll(U):
        if sources[u] >= 0:
            got[u] = load(x + sources[u] * V, V, align=V * T.size)
    for u in unroll(U):
        if first + u * THREADS < units:
            store(out + (first + u * THREADS) * V, got[u], align=V * T.size)


@native
def gather_elements(x: pointer(T), index: pointer(I), out: pointer(T), units: i64, size: i64,
                    width: i64, width_magic: i64, width_shift: i64, count: i64, count_magic: i64,
                    count_shift: i64, T: static, I: static, THREADS: static,
                    BIG: static):  # fmt: skip
    """out[o][i][w] = x[o][index[o][i][w]][w]."""
    unit = block() * THREADS + thread()
    if unit < units:
        row = divided(unit, width, width_magic, width_shift, BIG)
        outer = divided(row, count, count_magic, count_shift, BIG)
        place = i64(index[unit])
        got = registers(T, 1)
        if inside(place, size):
            got[0] = x[(outer * size + place) * width + (unit - row * width)]
        out[unit] = got[0]


@native
def scatter_elements(out: pointer(T), index: pointer(I), source: pointer(T), units: i64, size: i64,
                     width: i64, width_magic: i64, width_shift: i64, count: i64, count_magic: i64,
                     count_shift: i64, T: static, I: static, ADD: static, SINGLE: static,
                     THREADS: static, BIG: static):  # fmt: skip
    """out[o][index[o][i][w]][w] = source[o][i][w], or is increased by it, in any order. SINGLE: the
    source is one number."""
    unit = block() * THREADS + thread()
    if unit < units:
        row = divided(unit, width, width_magic, width_shift, BIG)
        outer = divided(row, count, count_magic, count_shift, BIG)
        place = i64(index[unit])
        if inside(place, size):
            value = source[0] if SINGLE else source[unit]
            target = out + ((outer * size + place) * width + (unit - row * width))
            if ADD:
                shared_add(target, value)
            else:
                target[0] = value


@native
def add_rows(out: pointer(A), index: pointer(I), source: pointer(T), units: i64, size: i64,
             width: i64, width_magic: i64, width_shift: i64, count: i64, count_magic: i64,
             count_shift: i64, skipped: i64, T: static, I: static, A: static, THREADS: static,
             BIG: static):  # fmt: skip
    """out[o][index[i]] += source[o][i] by atomics, but for the place `skipped`."""
    unit = block() * THREADS + thread()
    if unit < units:
        row = divided(unit, width, width_magic, width_shift, BIG)
        outer = divided(row, count, count_magic, count_shift, BIG)
        place = i64(index[row - outer * count])
        if inside(place, size) & (place != skipped):
            target = out + ((outer * size + place) * width + (unit - row * width))
            shared_add(target, A(source[unit]))


@native
def sum_rows(out: pointer(OUT), index: pointer(I), source: pointer(T), size: i64, width: i64,
             count: i64, skipped: i64, T: static, I: static, A: static, OUT: static, C: static,
             THREADS: static):  # fmt: skip
    """out[p] = the sum of source[i] with index[i] == p, in the order of i: the same in every run. A
    warp has an index and 32 C columns; it goes on where no index before is the same, and looks at
    32 of those behind at once. Rows of places without an index are left alone."""
    lane = thread() % WARP
    job = block() * (THREADS // WARP) + thread() // WARP
    across = (width + C * WARP - 1) // (C * WARP)
    own = job // across
    begin = job % across * (C * WARP)
    place = i64(index[select(own < count, own, i64(0))])
    first = (own < count) & inside(place, size) & (place != skipped)
    before = i64(0)
    while first & (before < own):
        same = False
        if before + lane < own:
            same = i64(index[before + lane]) == place
        first = ballot(same) == 0
        before = before + WARP
    if first:
        sums = registers(A, C)
        for at in range(own // WARP * WARP, count, WARP):
            mine = False
            if at + lane < count:
                mine = i64(index[at + lane]) == place
            votes = ballot(mine)
            while votes != 0:
                row = at + i64(count_trailing_zeros(votes))
                votes = votes & (votes - 1)
                for c in unroll(C):
                    column = begin + c * WARP + lane
                    if column < width:
                        sums[c] = sums[c] + A(source[row * width + column])
        for c in unroll(C):
            column = begin + c * WARP + lane
            if column < width:
                out[place * width + column] = OUT(sums[c])


@native
def triangle(x: pointer(T), out: pointer(T), total: i64, rows: i64, columns: i64, diagonal: i64,
             T: static, UPPER: static, THREADS: static, U: static):  # fmt: skip
    """What lies on one side of a diagonal of matrices, 0 on the other."""
    for u in unroll(U):
        unit = block() * (THREADS * U) + u * THREADS + thread()
        if unit < total:
            above = unit % columns - unit // columns % rows
            keep = above >= diagonal if UPPER else above <= diagonal
            got = registers(T, 1)
            if keep:
                got[0] = x[unit]
            out[unit] = got[0]
