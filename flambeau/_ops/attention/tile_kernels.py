"""Attention of bfloat16 by tiles of AMX: as `kernels`, but products take bfloat16 and add up in
float32; weights are rounded to bfloat16 before they meet the values.

Memory of one task, in units of two numbers (or one float32), with all sizes padded to 32:

    keys as the scores' right side   width / 2 deep, panels of 16 keys
    values as the sums' right side   keys / 2 deep, panels of 16 columns
    a block of queries, or of weights; its scores, its results (float32)
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.tiles.amx import BFLOAT16, LOOPS, configure_tiles, release_tiles
from flambeau._compiler.tiles.amx import TILE as TILE_BYTES
from flambeau._ops.attention.kernels import at, finish_rows, up, weigh_rows
from flambeau._ops.products.kernels.groups import pack_right, pack_rows
from flambeau._ops.products.kernels.tiles.matrices import CHUNK, HALF, MR, NR, PANEL, multiply_tiles

GROUP = 2
"""Numbers of a unit."""
NUMBERS = CHUNK * GROUP
"""Numbers of a chunk along k."""


@native(outline=True)
def tile_product(left, panels, deep, units, rows, columns, to, to_row, tiles, UNIT: static):
    """to = left panels, for up to MR rows in packed form and panels that are `deep` units deep, of
    which the first `units` count."""
    for j in range(0, columns, NR):
        place = to + j
        if rows > HALF:
            multiply_tiles(left, i64(CHUNK), i64(MR * CHUNK), panels + j * deep, deep * PANEL,
                           units, place, to_row, False, place, to_row, None, tiles, BFLOAT16, UNIT,
                           True)  # fmt: skip
        else:
            multiply_tiles(left, i64(CHUNK), i64(MR * CHUNK), panels + j * deep, deep * PANEL,
                           units, place, to_row, False, place, to_row, None, tiles, BFLOAT16, UNIT,
                           False)  # fmt: skip


@native
def scale_rows(scores, padded, rows, scale, W: static):
    """Scores times a factor, in place."""
    for k in range(0, rows * padded, W):
        store(scores + k, load(scores + k, W) * scale)


@native
def attend_block(query, query_row, keys_packed, values_packed, mask, mask_row, left, tiles, first,
                 rows, span, keys, width, width_out, out, out_row, log_sums, scale, CAUSAL: static,
                 MASKED: static, UNIT: static, W: static):  # fmt: skip
    """The results of `rows` queries from `first` on; `span` keys can matter to any of them."""
    S = query.type.element
    deep, deep_keys = up(width, NUMBERS) // GROUP, up(keys, NUMBERS) // GROUP
    padded, wide = up(span, NR), up(width_out, NR)
    scores = cast(pointer(f32), left + MR * larger(deep, deep_keys))
    sums = scores + MR * up(keys, NR)
    tops = stack(f32, MR)
    totals = stack(f32, MR)
    pack_rows(query, query_row, rows, width, left, S, GROUP, 0, MR, CHUNK, W, False)
    tile_product(left, keys_packed, deep, deep, rows, span, scores, padded, tiles, UNIT)
    scale_rows(scores, padded, rows, scale, W)
    weigh_rows(scores, padded, mask, mask_row, first, rows, span, tops, totals, CAUSAL, MASKED, W)
    pack_rows(scores, padded, rows, span, left, S, GROUP, 0, MR, CHUNK, W, False)
    tile_product(left, values_packed, deep_keys, up(span, NUMBERS) // GROUP, rows, width_out, sums,
                 wide, tiles, UNIT)  # fmt: skip
    finish_rows(sums, wide, rows, width_out, tops, totals, out, out_row, log_sums, MR, W)


@native(apart=True)
def attend_in_tiles(query: pointer(S), key: pointer(S), value: pointer(S), mask: pointer(f32),
                    strides: pointer(i64), out: pointer(S), log_sums: pointer(f32),
                    scratch: pointer(i32), room: i64, heads: i64, units: i64, chunks: i64,
                    chunk: i64, queries: i64, keys: i64, width: i64, width_out: i64, scale: f32,
                    task: i64, tasks: i64, CAUSAL: static, MASKED: static, S: static,
                    UNIT: static, W: static):  # fmt: skip
    """softmax(scale Q Kᵀ + mask) V for all heads, and the log of each row's sum: see
    `kernels.attend`."""
    deep, deep_keys = up(width, NUMBERS) // GROUP, up(keys, NUMBERS) // GROUP
    keys_packed = scratch + task * room
    values_packed = keys_packed + up(keys, NR) * deep
    left = values_packed + up(width_out, NR) * deep_keys
    tiles = stack(u8, 8 * TILE_BYTES if UNIT == LOOPS else 1)
    configure_tiles(UNIT)
    packed = i64(-1)
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        head, place = unit // chunks, unit % chunks
        batch, inner = head // heads, head % heads
        if head != packed:
            packed = head
            pack_right(key + at(strides + 3, batch, inner), strides[5], i64(1), keys, width,
                       keys_packed, S, GROUP, PANEL, CHUNK, W)  # fmt: skip
            pack_right(value + at(strides + 6, batch, inner), i64(1), strides[8], width_out, keys,
                       values_packed, S, GROUP, PANEL, CHUNK, W)  # fmt: skip
        stop = smaller(place * chunk + chunk, queries)
        for first in range(place * chunk, stop, MR):
            rows = smaller(stop - first, MR)
            span = smaller(keys, first + rows) if CAUSAL else keys
            attend_block(
                query + at(strides, batch, inner) + first * strides[2], strides[2], keys_packed,
                values_packed, mask + at(strides + 9, batch, inner) + first * strides[11],
                strides[11], left, tiles, first, rows, span, keys, width, width_out,
                out + at(strides + 12, batch, inner) + first * strides[14], strides[14],
                log_sums + (head * queries + first), scale, CAUSAL, MASKED, UNIT,
                W)  # fmt: skip
    release_tiles(UNIT)
