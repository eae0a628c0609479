"""One driver for products of any tile: C = A B by blocks of C, from panels of A and of B.

A block runs through k in blocks, so that a panel of B stays in the first cache and the block's
panels of A in the second (Goto and van de Geijn, Anatomy of High-Performance Matrix
Multiplication, 2008). Sums of blocks of k that are done wait in memory of the block's own, tile by
tile. TILE adds up (`tiles`), `finish_tile` does the rest; where there is nothing to do to the sums,
whole tiles go to C at once. docs/products.md has a picture.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.tiles.amx import LOOPS, configure_tiles, release_tiles
from flambeau._compiler.tiles.amx import TILE as TILE_BYTES
from flambeau._ops.products.kernels.finish import finish_tile
from flambeau._ops.products.kernels.gemm import NO_BIAS
from flambeau._ops.products.kernels.groups import pack_left, pack_right
from flambeau._ops.products.kernels.tiles.matrices import AHEAD
from flambeau._runtime.pool_kernels import wait_for

SUMS = 1 << 17
"""The most sums of a block that wait for further blocks of k."""


@native
def multiply_block(a, b, c, bias, other, panels_a, panels_b, lies, a_row, a_step, b_step, b_column,
                   first, last, from_, until, beside, rows, columns, depth, depth_blocks, other_row,
                   alpha, beta, E: static, GROUP: static, FLIP: static, TILE: static, HOW: static,
                   UNIT: static, BIAS: static, SCALED: static, OTHER: static,
                   SHARED: static, MR: static, NR: static, PANEL: static, W: static,
                   CHUNK: static):  # fmt: skip
    """Row panels first to last and column panels from_ to until of C.

    SHARED: both operands lie in panels, one block of k after the other. Else panels_a is room for
    this block's rows and one block of k, panels_b for `beside` panels of columns. `lies`: whole
    panels of A are read where they lie (AMX takes rows of any distance; k is a number of whole
    chunks then).
    """
    U = panels_a.type.element
    T = alpha.type
    O = c.type.element  # noqa: E741
    FINISHES = (O is not T) or BIAS != NO_BIAS or SCALED or OTHER
    NUMBERS = CHUNK * GROUP
    of_a = (rows + MR - 1) // MR
    of_b = (columns + NR - 1) // NR
    chunks = (depth + NUMBERS - 1) // NUMBERS
    waiting = stack(T, SUMS)
    tiles = stack(u8, 8 * TILE_BYTES if UNIT == LOOPS else 1)
    configure_tiles(UNIT)
    for block in range(larger(depth_blocks, i64(1))):
        begin = chunks * block // depth_blocks
        size = chunks * (block + 1) // depth_blocks - begin
        numbers = smaller(depth - begin * NUMBERS, size * NUMBERS)
        units = (numbers + GROUP - 1) // GROUP
        ends = block == depth_blocks - 1
        if SHARED == False:  # noqa: E712
            i = select(lies != 0, smaller(last, rows // MR), first)
            pack_left(a + (i * MR * a_row + begin * NUMBERS * a_step), a_row, a_step,
                      smaller(rows, last * MR) - i * MR, numbers,
                      panels_a + (i - first) * size * (MR * CHUNK), size * (MR * CHUNK), E, GROUP,
                      FLIP, MR, CHUNK, W, not UNIT)  # fmt: skip
        for j in range(from_, until):
            column = j * NR
            width = smaller(columns - column, NR)
            right = panels_b + (j - from_) % beside * size * (CHUNK * NR)
            if SHARED:
                right = panels_b + (begin * of_b + j * size) * (CHUNK * NR)
            elif (j - from_) % beside == 0:
                pack_right(b + (column * b_column + begin * NUMBERS * b_step), b_column, b_step,
                           smaller(columns, smaller(until, j + beside) * NR) - column, numbers,
                           right, E, GROUP, PANEL, CHUNK, W)  # fmt: skip
            for i in range(first, last):
                row = i * MR
                height = smaller(rows - row, MR)
                left = panels_a + (i - first) * size * (MR * CHUNK)
                left_row = i64(CHUNK)
                left_chunk = i64(MR * CHUNK)
                if SHARED:
                    left = panels_a + (begin * of_a + i * size) * (MR * CHUNK)
                if UNIT:
                    if (lies != 0) & (height == MR):
                        left = cast(pointer(U), a + (row * a_row + begin * NUMBERS))
                        left_row = a_row // GROUP
                        left_chunk = i64(CHUNK)
                kept = waiting
                if depth_blocks > 1:
                    kept = waiting + ((j - from_) * (last - first) + (i - first)) * (MR * NR)
                place = kept
                apart = i64(NR)
                direct = False
                if not FINISHES:
                    direct = ends & (height == MR) & (width == NR)
                    place = select(direct, cast(pointer(T), c) + (row * columns + column), kept)
                    apart = select(direct, columns, i64(NR))
                ahead = None
                if SHARED:
                    ahead = right + (CHUNK * NR + (i - first) * (AHEAD * CHUNK)) * size
                TILE(left, left_row if UNIT else CHUNK, left_chunk if UNIT else MR * CHUNK, right,
                     units, height, kept, NR, block > 0, place, apart, ahead, tiles,
                     *HOW)  # fmt: skip
                if ends & (direct == False):  # noqa: E712
                    finish_tile(kept, NR, c + (row * columns + column), columns, height, width, row,
                                column, bias, other, other_row, alpha, beta, BIAS, SCALED, OTHER,
                                NR, W)  # fmt: skip
    release_tiles(UNIT)


@native
def pack_share(a, b, panels_a, panels_b, lies, a_row, a_step, b_step, b_column, rows, columns,
               depth, depth_blocks, share, shares, E: static, GROUP: static, FLIP: static,
               MR: static, NR: static, PANEL: static, W: static, CHUNK: static,
               CLEAN: static):  # fmt: skip
    """A share of all panels, those of A first, for every block of k."""
    NUMBERS = CHUNK * GROUP
    of_a = (rows + MR - 1) // MR
    of_b = (columns + NR - 1) // NR
    chunks = (depth + NUMBERS - 1) // NUMBERS
    first = (of_a + of_b) * share // shares
    last = (of_a + of_b) * (share + 1) // shares
    from_ = larger(first - of_a, i64(0))
    until = last - of_a
    for block in range(depth_blocks):
        begin = chunks * block // depth_blocks
        size = chunks * (block + 1) // depth_blocks - begin
        numbers = smaller(depth - begin * NUMBERS, size * NUMBERS)
        i = select(lies != 0, larger(first, rows // MR), first)
        pack_left(a + (i * MR * a_row + begin * NUMBERS * a_step), a_row, a_step,
                  smaller(rows, last * MR) - i * MR, numbers,
                  panels_a + (begin * of_a + i * size) * (MR * CHUNK), size * (MR * CHUNK), E,
                  GROUP, FLIP, MR, CHUNK, W, CLEAN)  # fmt: skip
        if from_ < until:
            pack_right(b + (from_ * NR * b_column + begin * NUMBERS * b_step), b_column, b_step,
                       smaller(columns, until * NR) - from_ * NR, numbers,
                       panels_b + (begin * of_b + from_ * size) * (NR * CHUNK), E, GROUP, PANEL,
                       CHUNK, W)  # fmt: skip


@native(apart=True)
def multiply_panels(a: pointer(S), b: pointer(S), c: pointer(O), bias: pointer(O),
                    other: pointer(O), panels: pointer(U), a_outer: i64, a_inner: i64, a_row: i64,
                    a_step: i64, b_outer: i64, b_inner: i64, b_step: i64, b_column: i64,
                    matrices: i64, inner: i64, rows: i64, columns: i64, depth: i64,
                    depth_blocks: i64, row_blocks: i64, column_blocks: i64, shares: i64,
                    beside: i64, room_a: i64, room_b: i64, lies: i64, other_matrix: i64,
                    other_row: i64, alpha: T, beta: T, task: i64, tasks: i64, S: static, E: static,
                    U: static, T: static, O: static, GROUP: static, FLIP: static, TILE: static,
                    HOW: static, UNIT: static, BIAS: static, SCALED: static, OTHER: static,
                    SHARED: static, MR: static, NR: static, PANEL: static,
                    W: static, CHUNK: static):  # fmt: skip
    """C = A B, by units of work.

    SHARED, for a large product: the first `shares` units pack panels, the others are blocks of C
    and wait until the word behind all panels counts all shares. (Units are begun in their order, so
    that somebody is at work on every share then.) Else, for small, thin or many products: units are
    blocks of each of `matrices`, in two dims of batches, and each packs what it reads, into room
    that its task has in `panels`.
    """
    packed = cast(pointer(i64), panels + (room_a + room_b))
    of_a = (rows + MR - 1) // MR
    of_b = (columns + NR - 1) // NR
    blocks = row_blocks * column_blocks
    units = shares + blocks if SHARED else matrices * blocks
    room = panels + (i64(0) if SHARED else task * (room_a + room_b))
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        if unit < shares:
            pack_share(a, b, panels, panels + room_a, lies, a_row, a_step, b_step, b_column, rows,
                       columns, depth, depth_blocks, unit, shares, E, GROUP, FLIP, MR, NR, PANEL,
                       W, CHUNK, not UNIT)  # fmt: skip
            atomic_add(packed, 1)
        else:
            matrix = (unit - shares) // blocks
            block = (unit - shares) % blocks
            # Blocks that follow each other are below each other where all threads read B's panels
            # (SHARED), and beside each other where each packs them.
            i = block % row_blocks if SHARED else block // column_blocks
            j = block // row_blocks if SHARED else block % column_blocks
            if SHARED:
                wait_for(packed, shares)
            outer = matrix // inner
            place = matrix % inner
            multiply_block(a + (outer * a_outer + place * a_inner),
                           b + (outer * b_outer + place * b_inner), c + matrix * rows * columns,
                           bias, other + matrix * other_matrix, room, room + room_a, lies, a_row,
                           a_step, b_step, b_column, of_a * i // row_blocks,
                           of_a * (i + 1) // row_blocks, of_b * j // column_blocks,
                           of_b * (j + 1) // column_blocks, beside, rows, columns, depth,
                           depth_blocks, other_row, alpha, beta, E, GROUP, FLIP, TILE, HOW, UNIT,
                           BIAS, SCALED, OTHER, SHARED, MR, NR, PANEL, W,
                           CHUNK)  # fmt: skip
