"""Operands of products as tiles read them: panels of units, any strides, any element type.

A unit is what a lane of a tile multiplies at once: one number, or a group of GROUP numbers that
follow each other along k (two bfloat16, four bytes). Units lie in chunks of 64 bytes along k, of
which the last is filled up with zeros:

    left   [panel][chunk][MR rows][CHUNK units]     a tile spreads units of a row, or loads the rows
    right  [panel][unit][NR columns]                a tile loads vectors of columns

Numbers are converted from the source's type to E on the way. Of an operand's two strides one must
be 1. Nothing is packed one by one: rows of units are vectors, columns of units are vectors that
get transposed, and edges are masks.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.products.kernels.packing import halves, lower_lanes, upper_lanes, uppers

PANELS = 32
"""Panels that are packed side by side where columns follow each other: each k lies in another
page."""


def woven(count, size):
    """`count` pieces of `size` lanes from each of two vectors, in turns."""
    order = []
    for piece in range(count):
        order += range(piece * size, (piece + 1) * size)
        order += range((count + piece) * size, (count + piece + 1) * size)
    return tuple(order)


# ---- vectors of W units


@native
def along(source, step, count, left, U: static, E: static, GROUP: static, W: static,
          EDGE: static):  # fmt: skip
    """W units that follow each other along k, where numbers do too. EDGE: of `left` numbers, or
    none if count <= 0; what is missing is 0."""
    N = W * GROUP
    if EDGE:
        mask = (lanes(i32, N) < i32(left)) & splat(count > 0, N)
        return cast(vector(U, W), E(load(source, N, mask)))
    return cast(vector(U, W), E(load(source, N)))


@native
def across(source, step, count, left, U: static, E: static, GROUP: static, W: static,
           EDGE: static):  # fmt: skip
    """The same unit of W rows (of columns) that follow each other; the numbers of a unit are `step`
    apart. EDGE: of `count` rows and `left` numbers along k; what is missing is 0."""
    rows = registers(vector(E, W), GROUP)
    for r in unroll(GROUP):
        if EDGE:
            mask = (lanes(i32, W) < i32(count)) & splat(left > r, W)
            rows[r] = E(load(source + r * step, W, mask))
        else:
            rows[r] = E(load(source + r * step, W))
    if GROUP == 1:
        return rows[0]
    low = shuffle(rows[0], rows[1], woven(W, 1))
    if GROUP == 2:
        return cast(vector(U, W), low)
    high = shuffle(rows[2], rows[3], woven(W, 1))
    return cast(vector(U, W), shuffle(low, high, woven(W, 2)))


@native
def flipped(units, FLIP: static):
    """Signed bytes as unsigned ones, 128 more, where FLIP says so."""
    if FLIP:
        return units ^ i32(FLIP)
    return units


@native(outline=True)
def turn(source, by, step, count, left, each, target, apart, READ: static, KEEP: static,
         U: static, E: static, GROUP: static, FLIP: static, W: static, EDGE: static):  # fmt: skip
    """A transposed block: W vectors of READ, `by` numbers apart, become columns of `target`.

    Lane i of vector k goes to target[i * apart + k], for i < KEEP. Vector k is read with
    `count - k` rows and `left - k * each` numbers left (`each` is 0 along k: those are its lanes).
    """
    rows = registers(vector(U, W), W)
    for k in unroll(W):
        if READ is along:
            rows[k] = flipped(
                along(source + k * by, step, count - k, left, U, E, GROUP, W, EDGE), FLIP
            )
        else:
            rows[k] = flipped(
                across(source + k * by, step, count, left - k * each, U, E, GROUP, W, EDGE), FLIP
            )
    for BLOCK in halves(W):
        for k in uppers(W, BLOCK):
            upper = rows[k]
            lower = rows[k + BLOCK]
            rows[k] = shuffle(upper, lower, upper_lanes(W, BLOCK))
            rows[k + BLOCK] = shuffle(upper, lower, lower_lanes(W, BLOCK))
    for i in unroll(KEEP):
        store(target + i * apart, rows[i])


# ---- panels


@native(outline=True)
def pack_rows(source, item, count, depth, target, E: static, GROUP: static, FLIP: static,
              MR: static, CHUNK: static, W: static, CLEAN: static):  # fmt: skip
    """One panel of rows that follow k in memory; see `pack_left`."""
    U = target.type.element
    NUMBERS = CHUNK * GROUP
    chunks = (depth + NUMBERS - 1) // NUMBERS
    whole = depth // NUMBERS
    for i in range(count):
        line = source + i * item
        for c in range(chunks):
            place = target + (c * MR + i) * CHUNK
            from_ = line + c * NUMBERS
            if c < whole:
                for v in unroll(0, CHUNK, W):
                    units = along(from_ + v * GROUP, 1, 1, 0, U, E, GROUP, W, False)
                    store(place + v, flipped(units, FLIP))
            else:
                for v in unroll(0, CHUNK, W):
                    left = depth - c * NUMBERS - v * GROUP
                    units = along(from_ + v * GROUP, 1, 1, left, U, E, GROUP, W, True)
                    store(place + v, flipped(units, FLIP))
    if CLEAN:
        for i in range(count, MR):
            for c in range(chunks):
                zero_memory(target + (c * MR + i) * CHUNK, CHUNK)


@native(outline=True)
def pack_left(source, item, step, count, depth, target, apart, E: static, GROUP: static,
              FLIP: static, MR: static, CHUNK: static, W: static, CLEAN: static):  # fmt: skip
    """Panels, `apart` units from each other: target[(c * MR + i) * CHUNK + u] of each is unit
    c * CHUNK + u of row i; its rows are `item` apart, k < depth numbers `step` apart. Rows from
    count on are 0 if CLEAN, else anything: their sums go nowhere, and tiles of AMX take as long for
    any number."""
    U = target.type.element
    NUMBERS = CHUNK * GROUP
    panels = (count + MR - 1) // MR
    whole = depth // NUMBERS
    if step == 1:
        for p in range(panels):
            pack_rows(source + p * MR * item, item, smaller(count - p * MR, MR), depth,
                      target + p * apart, E, GROUP, FLIP, MR, CHUNK, W, CLEAN)  # fmt: skip
    else:
        # rows follow each other, each k lies in another page: all panels with every look at it
        for c in range((depth + NUMBERS - 1) // NUMBERS):
            for p in range(panels):
                rows = count - p * MR
                for v in unroll(0, CHUNK, W):
                    for FIRST in unroll(0, MR, W):
                        from_ = source + (p * MR + FIRST + (c * NUMBERS + v * GROUP) * step)
                        place = target + (p * apart + (c * MR + FIRST) * CHUNK + v)
                        left = depth - c * NUMBERS - v * GROUP
                        if (c < whole) & (FIRST + W <= rows):
                            turn(from_, GROUP * step, step, 0, 0, 0, place, CHUNK, across,
                                 min(W, MR - FIRST), U, E, GROUP, FLIP, W, False)  # fmt: skip
                        else:
                            turn(from_, GROUP * step, step, rows - FIRST, left, GROUP, place, CHUNK,
                                 across, min(W, MR - FIRST), U, E, GROUP, FLIP, W,
                                 True)  # fmt: skip


@native
def pack_beside(source, step, count, depth, target, apart, E: static, GROUP: static, NR: static,
                CHUNK: static, W: static):  # fmt: skip
    """Up to PANELS panels, `apart` units from each other, of `count` columns that follow each
    other in memory."""
    U = target.type.element
    units = (depth + CHUNK * GROUP - 1) // (CHUNK * GROUP) * CHUNK
    panels = count // NR
    for k in range(depth // GROUP):
        line = source + k * GROUP * step
        for p in range(panels):
            for v in unroll(0, NR, W):
                store(target + (p * apart + k * NR + v),
                      across(line + (p * NR + v), step, 0, 0, U, E, GROUP, W, False))  # fmt: skip
    for k in range(depth // GROUP, units):
        line = source + k * GROUP * step
        left = depth - k * GROUP
        for p in range(panels):
            for v in unroll(0, NR, W):
                units_of_k = across(line + (p * NR + v), step, NR, left, U, E, GROUP, W, True)
                store(target + (p * apart + k * NR + v), units_of_k)
    rest = count - panels * NR
    if rest > 0:
        for k in range(units):
            line = source + (k * GROUP * step + panels * NR)
            left = depth - k * GROUP
            for v in unroll(0, NR, W):
                units_of_k = across(line + v, step, rest - v, left, U, E, GROUP, W, True)
                store(target + (panels * apart + k * NR + v), units_of_k)


@native(outline=True)
def pack_right(source, item, step, count, depth, target, E: static, GROUP: static, NR: static,
               CHUNK: static, W: static):  # fmt: skip
    """Panels of `count` columns `item` apart, one after the other: target[k * NR + j] of each is
    unit k of column j; k < depth numbers `step` apart. Columns from count on are 0."""
    U = target.type.element
    NUMBERS = CHUNK * GROUP
    units = (depth + NUMBERS - 1) // NUMBERS * CHUNK
    if item == 1:
        for first in range(0, count, PANELS * NR):
            pack_beside(source + first, step, smaller(count - first, PANELS * NR), depth,
                        target + first * units, units * NR, E, GROUP, NR, CHUNK, W)  # fmt: skip
    else:
        for first in range(0, count, NR):
            for chunk in range(0, units, CHUNK):
                for v in unroll(0, NR, W):
                    for u in unroll(0, CHUNK, W):
                        k = chunk + u
                        from_ = source + ((first + v) * item + k * GROUP)
                        place = target + (first * units + k * NR + v)
                        if ((k + W) * GROUP <= depth) & (first + v + W <= count):
                            turn(from_, item, 1, 0, 0, 0, place, NR, along, W, U, E, GROUP, 0, W,
                                 False)  # fmt: skip
                        else:
                            turn(from_, item, 1, count - first - v, depth - k * GROUP, 0, place, NR,
                                 along, W, U, E, GROUP, 0, W, True)  # fmt: skip
