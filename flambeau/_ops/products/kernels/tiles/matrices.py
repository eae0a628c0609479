"""The tile of AMX: 32 x 32 sums in four tiles, each load of 16 rows or columns used twice."""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.tiles.amx import dot_tiles, load_tile, store_tile, zero_tile

MR, NR, CHUNK = 32, 32, 16
PANEL = 16
"""Columns of a packed panel: the two that a tile of sums reads follow each other."""
AHEAD = 4
"""Cache lines of the next panel that are asked for in each step."""
HALF = 16
BYTES = 4
"""Of a unit, and of a sum."""


@native
def matrix_tile(a, a_row, a_chunk, b, units, rows, sums, sums_row, add, to, to_row, ahead, tiles,
                PRODUCT: static, UNIT: static):  # fmt: skip
    """As `vector_tile`, for panels of 16 columns whose last chunk is filled up; rows <= 16 cost
    half of it."""
    apart = (units + CHUNK - 1) // CHUNK * (CHUNK * PANEL)
    if rows > HALF:
        multiply_tiles(a, a_row, a_chunk, b, apart, units, sums, sums_row, add, to, to_row, ahead,
                       tiles, PRODUCT, UNIT, True)  # fmt: skip
    else:
        multiply_tiles(a, a_row, a_chunk, b, apart, units, sums, sums_row, add, to, to_row, ahead,
                       tiles, PRODUCT, UNIT, False)  # fmt: skip


@native
def multiply_tiles(a, a_row, a_chunk, b, apart, units, sums, sums_row, add, to, to_row, ahead,
                   tiles, PRODUCT: static, UNIT: static, BOTH: static):  # fmt: skip
    """Tiles 0 to 3 hold sums (rows below each other: 0, 2), 4 and 5 rows, 6 and 7 columns, of two
    panels that are `apart` units from each other."""
    if add:
        load_tile(tiles, 0, sums, sums_row * BYTES, UNIT)
        load_tile(tiles, 1, sums + HALF, sums_row * BYTES, UNIT)
        if BOTH:
            load_tile(tiles, 2, sums + HALF * sums_row, sums_row * BYTES, UNIT)
            load_tile(tiles, 3, sums + (HALF * sums_row + HALF), sums_row * BYTES, UNIT)
    else:
        for N in unroll(4):
            zero_tile(tiles, N, UNIT)
    chunks = (units + CHUNK - 1) // CHUNK
    for _ in range(chunks):
        load_tile(tiles, 6, b, PANEL * BYTES, UNIT)
        load_tile(tiles, 4, a, a_row * BYTES, UNIT)
        dot_tiles(tiles, 0, 4, 6, PRODUCT, UNIT)
        if BOTH:
            load_tile(tiles, 5, a + HALF * a_row, a_row * BYTES, UNIT)
            dot_tiles(tiles, 2, 5, 6, PRODUCT, UNIT)
        load_tile(tiles, 7, b + apart, PANEL * BYTES, UNIT)
        dot_tiles(tiles, 1, 4, 7, PRODUCT, UNIT)
        if BOTH:
            dot_tiles(tiles, 3, 5, 7, PRODUCT, UNIT)
        if ahead is not None:
            for LINE in unroll(AHEAD):
                prefetch(ahead + LINE * CHUNK, 0, 2)
            ahead = ahead + AHEAD * CHUNK
        a = a + a_chunk
        b = b + CHUNK * PANEL
    store_tile(tiles, 0, to, to_row * BYTES, UNIT)
    store_tile(tiles, 1, to + HALF, to_row * BYTES, UNIT)
    if BOTH:
        store_tile(tiles, 2, to + HALF * to_row, to_row * BYTES, UNIT)
        store_tile(tiles, 3, to + (HALF * to_row + HALF), to_row * BYTES, UNIT)
