"""Matrix products in narrow types: instructions that add up the products of neighbours.

Such an instruction takes groups of 2 or 4 numbers that follow each other along k, multiplies them
and adds each group's products to one sum: int8 into int32, bfloat16 into float32. Panels hold
groups where those of `kernels.gemm` hold numbers. Which instruction it is, is a constant (DOT).
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.types import Scalar

BFLOAT = Scalar("bfloat", "bfloat", "float", 16)
"""bfloat16 as LLVM names it, for its intrinsics."""
DEPTH = 1024
ROWS = 56
"""A block of k, and the most rows of a block whose panels lie on the stack."""


def every_second(first, width):
    """first, first + 2, ...: `width` lanes."""
    return tuple(range(first, 2 * width, 2))


# ---- DOT: sums + the products of groups; a, b: one group per lane of 32 bits


@native
def dot_int16(total, a, b, W: static):
    """Pairs of int16; x86 has an instruction for just this (vpmaddwd), which LLVM finds."""
    left = cast(vector(i16, 2 * W), a)
    right = cast(vector(i16, 2 * W), b)
    even = i32(shuffle(left, None, every_second(0, W))) * i32(
        shuffle(right, None, every_second(0, W))
    )
    odd = i32(shuffle(left, None, every_second(1, W))) * i32(
        shuffle(right, None, every_second(1, W))
    )
    return total + (even + odd)


@native
def dot_vnni_512(total, a, b, W: static):
    """Groups of four: unsigned bytes of a, signed bytes of b (AVX-512 VNNI)."""
    return intrinsic("llvm.x86.avx512.vpdpbusd.512", vector(i32, 16), total, a, b)


@native
def dot_vnni_256(total, a, b, W: static):
    """Groups of four: unsigned bytes of a, signed bytes of b (AVX-VNNI)."""
    return intrinsic("llvm.x86.avx512.vpdpbusd.256", vector(i32, 8), total, a, b)


@native
def dot_bfloat16(total, a, b, W: static):
    """Pairs of bfloat16 in float32, for processors without an instruction for it."""
    even = fma(cast(vector(f32, W), a << 16), cast(vector(f32, W), b << 16), total)
    high = i32(-65536)
    return fma(cast(vector(f32, W), a & high), cast(vector(f32, W), b & high), even)


@native
def dot_bfloat16_512(total, a, b, W: static):
    """Pairs of bfloat16 (AVX-512 BF16); subnormal numbers count as 0."""
    left = cast(vector(BFLOAT, 32), a)
    right = cast(vector(BFLOAT, 32), b)
    return intrinsic("llvm.x86.avx512bf16.dpbf16ps.512", vector(f32, 16), total, left, right)


# ---- packing and the tile


@native
def pack_groups(source, item, step, count, depth, target, offset, PANEL: static, GROUP: static):
    """target[(k // GROUP) * PANEL * GROUP + i * GROUP + k % GROUP] = source[i, k] + offset.

    As `pack_panel`; what lies behind `count`, and behind `depth` in the last group, is 0.
    """
    T = target.type.element
    groups = (depth + GROUP - 1) // GROUP
    zero_memory(target, groups * (PANEL * GROUP))
    for i in range(count):
        for k in range(depth):
            place = (k // GROUP * PANEL + i) * GROUP + k % GROUP
            if T is source.type.element:
                target[place] = source[i * item + k * step]
            else:
                target[place] = T(source[i * item + k * step]) + offset


@native
def dot_tile(a, b, groups, shift, c, c_row, rows, columns, add, DOT: static, MR: static,
             NV: static, W: static):  # fmt: skip
    """c[i, j] (+)= sums over panels of groups, for i < rows <= MR, j < columns <= NV * W.

    a and b point at groups as i32. `shift` is a group of what was added to a's numbers to make
    them unsigned: what that adds to the sums is taken off again (0: nothing was).
    """
    V = vector(c.type.element, W)
    total = registers(V, MR * NV)
    extra = registers(V, NV)
    tile = stack(c.type.element, MR * NV * W)
    for k in range(groups):
        for i in unroll(MR):
            left = splat(a[k * MR + i], W)
            for v in unroll(NV):
                right = load(b + (k * (NV * W) + v * W), W)
                total[i * NV + v] = DOT(total[i * NV + v], left, right, W)
        if shift != 0:
            for v in unroll(NV):
                right = load(b + (k * (NV * W) + v * W), W)
                extra[v] = DOT(extra[v], splat(i32(shift), W), right, W)
    for i in unroll(MR):
        for v in unroll(NV):
            store(tile + (i * NV * W + v * W), total[i * NV + v] - extra[v])
    for i in range(rows):
        for j in range(columns):
            value = tile[i * (NV * W) + j]
            if add:
                value = value + c[i * c_row + j]
            c[i * c_row + j] = value


@native
def multiply_dots(a: pointer(S), b: pointer(S), c: pointer(T), a_row: i64, a_step: i64,
                  b_step: i64, b_column: i64, rows: i64, columns: i64, depth: i64, task: i64,
                  tasks: i64, S: static, G: static, T: static, GROUP: static, OFFSET: static,
                  DOT: static, MR: static, NV: static, W: static):  # fmt: skip
    """c = a @ b: [rows, depth] and [depth, columns] of S, sums of T, groups of GROUP numbers of G.

    Tasks are blocks of rows. A's numbers have OFFSET added to them.
    """
    NR = NV * W
    SHIFT = OFFSET * 0x01010101
    of_a = (rows + MR - 1) // MR
    left = stack(G, (ROWS + MR) * DEPTH)
    right = stack(G, NR * DEPTH)
    first = of_a * task // tasks
    last = of_a * (task + 1) // tasks
    for start in range(0, larger(depth, i64(1)), DEPTH):
        count = smaller(depth - start, DEPTH)
        groups = (count + GROUP - 1) // GROUP
        for i in range(first, last):
            pack_groups(a + (i * MR * a_row + start * a_step), a_row, a_step,
                        smaller(rows - i * MR, MR), count,
                        left + (i - first) * groups * (MR * GROUP), OFFSET, MR, GROUP)  # fmt: skip
        for column in range(0, columns, NR):
            width = smaller(columns - column, NR)
            pack_groups(b + (column * b_column + start * b_step), b_column, b_step, width, count,
                        right, 0, NR, GROUP)  # fmt: skip
            for i in range(first, last):
                dot_tile(cast(pointer(i32), left + (i - first) * groups * (MR * GROUP)),
                         cast(pointer(i32), right), groups, SHIFT,
                         c + (i * MR * columns + column), columns, smaller(rows - i * MR, MR),
                         width, start > 0, DOT, MR, NV, W)  # fmt: skip
