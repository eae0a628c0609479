"""AMX: eight registers that hold tiles of 16 rows of 64 bytes, and products of tiles.

A product adds to 16 x 16 sums: row i of the left tile with column j of the right one, whose rows
hold groups (two bfloat16, four bytes) of 16 columns. `LOOPS` is the same on any processor: tiles
are memory then, 1024 bytes each from `tiles` on. With `HARDWARE`, `tiles` is never looked at.

A thread configures its tiles before their first use and releases them after the last one: with
tiles in use the system has 8 KB more to keep at each change of threads.
"""

from __future__ import annotations

import struct

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.tiles.dots import bytes_loops, flushed, lower_number, upper_number

HARDWARE, LOOPS = "hardware", "loops"
BFLOAT16, SIGNED_BYTES, UNSIGNED_BYTES = "tdpbf16ps", "tdpbssd", "tdpbusd"
"""Products: of bfloat16 in f32; of int8, and of uint8 (left) with int8, in i32."""
LANES, ROW, TILE = 16, 64, 1024
"""Columns of sums, bytes of a row, bytes of a tile."""
PALETTE = tuple(struct.pack("<BB14x8H16x8B8x", 1, 0, *[ROW] * 8, *[LANES] * 8))
"""The configuration: eight whole tiles."""


@native
def configure_tiles(UNIT: static):
    """From here on this thread has tiles."""
    if UNIT == HARDWARE:
        intrinsic("llvm.x86.ldtilecfg", None, table(u8, PALETTE))


@native
def release_tiles(UNIT: static):
    """This thread needs its tiles no more."""
    if UNIT == HARDWARE:
        intrinsic("llvm.x86.tilerelease", None)


@native
def zero_tile(tiles, NUMBER: static, UNIT: static):
    """All zeros."""
    if UNIT == HARDWARE:
        intrinsic("llvm.x86.tilezero", None, i8(NUMBER))
    else:
        zero_memory(tiles + NUMBER * TILE, TILE)


@native
def load_tile(tiles, NUMBER: static, source, apart, UNIT: static):
    """16 rows of 64 bytes, `apart` bytes from one to the next."""
    if UNIT == HARDWARE:
        intrinsic("llvm.x86.tileloadd64", None, i8(NUMBER), cast(pointer(i8), source), i64(apart))
    else:
        for row in range(LANES):
            copy_memory(tiles + (NUMBER * TILE + row * ROW),
                        cast(pointer(u8), source) + row * apart, ROW)  # fmt: skip


@native
def store_tile(tiles, NUMBER: static, target, apart, UNIT: static):
    """16 rows of 64 bytes, `apart` bytes from one to the next."""
    if UNIT == HARDWARE:
        intrinsic("llvm.x86.tilestored64", None, i8(NUMBER), cast(pointer(i8), target), i64(apart))
    else:
        for row in range(LANES):
            copy_memory(cast(pointer(u8), target) + row * apart,
                        tiles + (NUMBER * TILE + row * ROW), ROW)  # fmt: skip


@native
def dot_tiles(tiles, SUMS: static, LEFT: static, RIGHT: static, PRODUCT: static, UNIT: static):
    """sums[i, j] += products of the groups of row i of the left tile and column j of the right."""
    if UNIT == HARDWARE:
        intrinsic("llvm.x86." + PRODUCT, None, i8(SUMS), i8(LEFT), i8(RIGHT))
    else:
        left = cast(pointer(i32), tiles + LEFT * TILE)
        right = cast(pointer(i32), tiles + RIGHT * TILE)
        for row in range(LANES):
            if PRODUCT == BFLOAT16:
                sums = cast(pointer(f32), tiles + SUMS * TILE) + row * LANES
                store(sums, row_of_bfloat16(left + row * LANES, right, load(sums, LANES)))
            else:
                sums = cast(pointer(i32), tiles + SUMS * TILE) + row * LANES
                store(sums, row_of_bytes(left + row * LANES, right, load(sums, LANES), PRODUCT))


@native
def row_of_bfloat16(left, right, total):
    """A row of tdpbf16ps: first numbers of groups and second ones add up apart, from 0, by fma, and
    join the sums in the end; subnormal numbers count as 0 at every step."""
    even = registers(vector(f32, LANES), 1)
    odd = registers(vector(f32, LANES), 1)
    for k in range(LANES):
        a = splat(left[k], LANES)
        b = load(right + k * LANES, LANES)
        even[0] = flushed(
            fma(flushed(lower_number(a, LANES)), flushed(lower_number(b, LANES)), even[0])
        )
        odd[0] = flushed(
            fma(flushed(upper_number(a, LANES)), flushed(upper_number(b, LANES)), odd[0])
        )
    return flushed(flushed(total) + flushed(even[0] + odd[0]))


@native
def row_of_bytes(left, right, total, PRODUCT: static):
    """A row of tdpbusd or tdpbssd. Signed numbers are unsigned ones less 256 for each sign."""
    sums = registers(vector(i32, LANES), 1, total)
    for k in range(LANES):
        a = splat(left[k], LANES)
        b = load(right + k * LANES, LANES)
        sums[0] = bytes_loops(sums[0], a, b, LANES)
        if PRODUCT == SIGNED_BYTES:
            signs = (a >> 7) & i32(0x01010101)
            sums[0] = sums[0] - (bytes_loops(sums[0] - sums[0], signs, b, LANES) << 8)
    return sums[0]
