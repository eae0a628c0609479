"""Small products and batches of them: operands read where they lie, or packed block by block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core import settings
from flambeau._ops.products.gemm_finish import FINISH, NOTHING, Finish, extras
from flambeau._ops.products.gemm_tiles import (
    DEPTH_BLOCK,
    ROW_BLOCK,
    SUM_DTYPES,
    SUMS,
    Tile,
    aligned,
    parts,
    strides,
    tile_of,
)
from flambeau._ops.products.kernels import gemm as kernels
from flambeau._runtime.launch import Kernel, kernel


class Direct:
    """All matrices of a batch in one launch. `panels`: B will be given as `Repeated` packs it."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __init__(self, left: np.ndarray, right: np.ndarray, dtype: np.dtype, threads: int,
                 panels: bool = False) -> None:  # fmt: skip
        rows, depth = left.shape[-2:]
        columns = right.shape[-1]
        self.shape, self.dtype = (*left.shape[:-1], columns), dtype
        self.source, self.sums = OF_NUMPY[NAMES[left.dtype]], SUMS[left.dtype]
        tile = self.tile = tile_of(self.sums)
        a_row, a_step = strides(left)[-2:]
        b_step, b_column = strides(right)[-2:]
        foreign = self.source is not self.sums
        pack_a = (foreign or rows < tile.rows or (a_step != 1 and depth * a_step > 1 << 14)
                  or (panels and depth > DEPTH_BLOCK) or columns >= WIDE)  # fmt: skip
        pack_b = (
            foreign
            or b_column != 1
            or columns < tile.columns
            or rows >= HIGH
            or (rows > 4 * tile.rows and _collides(depth, b_step * right.itemsize))
        )
        b_form = kernels.PACK if pack_b else kernels.IN_PLACE
        if panels:
            b_form, b_step, b_column = kernels.PANELS, tile.columns, 1
        (outer, inner), (a_outer, a_inner), (b_outer, b_inner) = folded(left, right)
        depth_blocks = 1
        if pack_a and b_form != kernels.IN_PLACE and dtype == SUM_DTYPES[self.sums]:
            depth_blocks = max(1, parts(depth, DEPTH_BLOCK))
        packed = (pack_a, b_form == kernels.PACK, max(1, parts(depth, depth_blocks)))
        blocks = _units(outer * inner, (rows, columns, depth), packed, tile, threads)
        row_blocks, column_blocks, self.tasks = blocks
        self.numbers = (a_outer, a_inner, a_row, a_step, int(pack_a), b_outer, b_inner, b_step,
                        b_column, b_form, outer * inner, inner, rows, columns, depth,
                        row_blocks, column_blocks, depth_blocks)  # fmt: skip
        self.plain = (*self.numbers, 0, 0, NOTHING.alpha, NOTHING.beta)
        self.kernels: dict[Any, Kernel] = {}

    def kernel(self, finish: Finish) -> Kernel:
        """The kernel that ends with what `finish` says."""
        constants = finish.constants
        found = self.kernels.get(constants)
        if found is None:
            result = OF_NUMPY[NAMES[self.dtype]]
            found = self.kernels[constants] = kernel(
                kernels.multiply_direct, S=self.source, O=result, T=self.sums,
                **dict(zip(FINISH, constants, strict=True)), **self.tile.constants)  # fmt: skip
        return found

    def run(self, left: np.ndarray, right: np.ndarray, out: np.ndarray, finish: Finish) -> None:
        """One launch."""
        run = self.kernel(finish)
        if finish is NOTHING:
            run.parallel(self.tasks, left, right, out, out, out, *self.plain)
        else:
            bias, other, *steps = extras(finish, out)
            run.parallel(self.tasks, left, right, out, bias, other, *self.numbers, *steps,
                         finish.alpha, finish.beta)  # fmt: skip


def panels_of(right: np.ndarray, tile: Tile) -> np.ndarray:
    """A right operand [K, N] in float32 or float64, packed for a tile."""
    sums = SUMS[right.dtype]
    depth, columns = right.shape
    panels = aligned(parts(columns, tile.columns) * tile.columns * depth, right.dtype)
    pack = kernel(kernels.pack_operands, S=sums, T=sums, **tile.constants)
    tasks = max(1, min(right.size // 16384, 4 * settings.get_num_threads()))
    pack.parallel(tasks, right, right, panels, panels, 0, 0, *strides(right), 0, columns, depth, 1)
    return panels


class Repeated:
    """One right operand of many products, [K, N] in float32 or float64, packed once."""

    def __init__(self, right: np.ndarray) -> None:
        self.right = right
        self.panels = panels_of(right, tile_of(SUMS[right.dtype]))
        self.plans: dict[Any, Direct] = {}

    def after(self, left: np.ndarray, finish: Finish = NOTHING) -> np.ndarray:
        """`left @ right` in new row-major memory, for `left` [M, K] of the same dtype."""
        threads = settings.get_num_threads()
        key = (left.shape, left.strides, threads)
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = Direct(left, self.right, left.dtype, threads, panels=True)
        out = np.empty(plan.shape, plan.dtype)
        if out.size:
            plan.run(left, self.panels, out, finish)
        return out


SHARE = 1 << 18
"""Multiply-adds for each thread from which work is shared (some 5 us; handing it over takes 1)."""
BLOCK = 40 * 1024
"""Elements of A in a block of rows: what half a second cache holds. Of what a processor calls its
own, other threads of the core may hold the other half."""
PACKING = 12
"""What it costs to pack an element, in multiply-adds."""
WIDE, HIGH = 256, 48
"""Columns and rows of C from which A and B are packed though they could be read where they lie."""
TAIL = 0.25
"""The part of a task that a thread waits for others in the end."""


def _units(matrices: int, shape: tuple[int, int, int], packed: tuple[bool, bool, int], tile: Tile,
           threads: int) -> tuple[int, int, int]:  # fmt: skip
    """Blocks of rows and columns of a matrix, and the number of tasks.

    `packed`: whether A and B are, and a block's depth. Each unit packs what it reads, so that few
    units pack little; many keep all threads busy to the end.
    """
    rows, columns, depth = shape
    row_panels, panels = parts(rows, tile.rows), parts(columns, tile.columns)
    high = max(ROW_BLOCK, BLOCK // packed[2])
    if packed[0]:
        high = min(high, kernels.PACKED // packed[2])
    least = parts(row_panels, max(1, high // tile.rows))
    work = matrices * rows * columns * depth
    threads = min(threads, work // SHARE)
    if threads <= 1:
        return least, 1, 1
    if matrices >= 4 * threads:
        return least, 1, min(matrices * least, 4 * threads)

    def cost(blocks: tuple[int, int]) -> float:
        high, wide = parts(row_panels, blocks[0]), parts(panels, blocks[1])
        unit = high * wide * tile.rows * tile.columns * depth
        unit += PACKING * depth * (high * tile.rows * packed[0] + wide * tile.columns * packed[1])
        return unit * (parts(matrices * blocks[0] * blocks[1], threads) + TAIL)

    most = 4 * threads
    choices = [
        (high, wide)
        for high in range(least, max(least, min(row_panels, most)) + 1)
        for wide in range(1, min(panels, most) + 1)
        if high * wide <= max(most, least)
    ]
    row_blocks, column_blocks = min(choices, key=cost)
    return row_blocks, column_blocks, matrices * row_blocks * column_blocks


def folded(left: np.ndarray, right: np.ndarray) -> Any:
    """Batch dims as two, with the strides that both operands have in them; None if it takes more.

    Dims are joined where a step in the outer one is a whole turn of the inner one, for both.
    """
    dims: list[tuple[int, int, int]] = []
    lefts, rights = strides(left), strides(right)
    for n, a, b in zip(left.shape[:-2], lefts, rights, strict=False):
        if n == 1:
            continue
        if dims and dims[-1][1] == n * a and dims[-1][2] == n * b:
            dims[-1] = (dims[-1][0] * n, a, b)
        else:
            dims.append((n, a, b))
    if len(dims) > 2:
        return None
    while len(dims) < 2:
        dims.insert(0, (1, 0, 0))
    return tuple(zip(*dims, strict=True))


def _collides(count: int, step: int) -> bool:
    """Whether cache lines `step` bytes apart drive each other out of a first cache: it keeps lines
    of equal addresses modulo 4096 in eight places, of which half are left for this."""
    return count * step > 1 << 16 or count > 4 * (4096 // math.gcd(step, 4096))
