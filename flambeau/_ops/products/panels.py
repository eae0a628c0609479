"""Products from panels: how they are cut into blocks, and their launches. docs/products.md has a
picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._ops.products.gemm_direct import folded
from flambeau._ops.products.gemm_finish import FINISH, Finish, extras
from flambeau._ops.products.gemm_tiles import aligned, parts, strides
from flambeau._ops.products.kernels import panels as kernels
from flambeau._ops.products.tiles import Tile
from flambeau._runtime import processor
from flambeau._runtime.cpu import address
from flambeau._runtime.launch import Kernel, kernel

UNIT = np.dtype(np.uint8)
DEPTH_BLOCK = {False: 384, True: 1024}
"""Units in a block of k, for tiles of vectors (a panel of columns fits the first cache) and for
those of AMX (which rather have few blocks than near ones). The same for all processors, since the
last bits of sums depend on it."""
SHARED = 1 << 24
"""Multiply-adds from which on both operands are packed whole, once for all threads."""
ALIKE = 2
"""Blocks of rows up to which each packs B for itself, which stays near then."""
SHARE = 1 << 15
"""Numbers that a unit of work packs at least."""
MANY, MIDDLING = 8, 1 << 31
"""So many threads had rather pack for themselves than read what another core has just written, in
products of up to so many multiply-adds by tiles of vectors (benchmarks/RESULTS.md)."""
WORK = {False: 1 << 19, True: 1 << 22}
"""Multiply-adds for each thread, without and with tiles of AMX: some 5 us."""
PACKING = {False: 16, True: 64}
"""What it costs to pack a number, in multiply-adds."""
THIN = 128
"""Columns up to which rows of A are read where they lie though each may take two cache lines."""
TAIL = 0.25
"""The part of a unit that a thread waits for others in the end."""


@cache
def room() -> int:
    """Bytes for a block's panels of A: half a second cache."""
    return processor.cache_sizes()[2] // 2


@dataclass(frozen=True, slots=True)
class Sizes:
    """One of the products, and how many there are."""

    matrices: int
    rows: int
    columns: int
    depth: int

    @property
    def work(self) -> int:
        """Multiply-adds."""
        return self.matrices * self.rows * self.columns * self.depth

    @property
    def numbers(self) -> int:
        """Of all operands."""
        return self.matrices * (self.rows + self.columns) * self.depth


def fitting(tile: Tile, rows: int) -> Tile:
    """A tile whose height divides few rows well; many rows are cut as the tile is. Heights are even
    but for 1: each has machine code of its own."""
    if not 0 < rows <= 4 * tile.rows:
        return tile
    high = parts(rows, parts(rows, tile.rows))
    return tile.with_rows(high if high == 1 else high + high % 2)


@cache
def cut(sizes: Sizes, tile: Tile, depth_blocks: int, threads: int, packs: bool) -> tuple[int, int]:
    """Blocks of rows and of columns of each matrix. `packs`: whether each block packs what it
    reads, so that few blocks pack little; many keep all threads busy to the end."""
    high, wide = parts(sizes.rows, tile.rows), parts(sizes.columns, tile.columns)
    depth = parts(sizes.depth, depth_blocks)
    most_high = max(1, room() // max(1, tile.rows * depth * tile.number.size))
    most_tiles = kernels.SUMS // (tile.rows * tile.columns) if depth_blocks > 1 else high * wide
    amx, tail = bool(tile.cells), TAIL if threads > 1 else 0

    def cost(blocks: tuple[int, int]) -> float:
        down, along = parts(high, blocks[0]), parts(wide, blocks[1])
        unit = down * along * tile.rows * tile.columns * sizes.depth
        if packs:
            unit += PACKING[amx] * sizes.depth * (down * tile.rows + along * tile.columns)
        return unit * (parts(sizes.matrices * blocks[0] * blocks[1], threads) + tail)

    least = parts(high, min(most_high, high, max(1, math.isqrt(most_tiles))))
    choices = []
    for down in range(least, max(least, min(high, 4 * threads)) + 1):
        fewest = parts(wide, max(1, most_tiles // parts(high, down)))
        for along in range(fewest, max(fewest, min(wide, parts(4 * threads, down))) + 1):
            choices.append((down, along))
    return min(choices, key=cost)


def in_place(array: np.ndarray) -> tuple[int, int] | None:
    """The strides of a matrix's two dims for packing, one of them 1; None where it needs a copy."""
    down, along = strides(array)[-2:]
    if along == 1 or array.shape[-1] <= 1:
        return down, 1
    if down == 1 or array.shape[-2] <= 1:
        return 1, along
    return None


class Panels:
    """How products of two arrays of these shapes and strides are computed."""

    name = "multiply_panels"

    def __init__(self, left: np.ndarray, right: np.ndarray, dtype: np.dtype, tile: Tile,
                 threads: int) -> None:  # fmt: skip
        rows, depth = left.shape[-2:]
        columns = right.shape[-1]
        self.shape, self.dtype = (*left.shape[:-1], columns), dtype
        self.source = OF_NUMPY[NAMES[left.dtype]]
        self.tile = tile = fitting(tile, rows)
        self.sizes = Sizes(math.prod(left.shape[:-2]), rows, columns, depth)
        a, b = in_place(left), in_place(right.swapaxes(-1, -2))
        self.copies = (a is None) + 2 * (b is None)
        left, right = self._laid_out(left, right)
        self.left = a if a is not None else (depth, 1)
        self.right = b if b is not None else (1, columns)
        self.lies = int(bool(tile.cells) and self.left[1] == 1 and self.source is tile.number
                        and depth % (tile.chunk * tile.group) == 0
                        and self.left[0] % tile.group == 0)  # fmt: skip
        self.thin = columns <= THIN
        if self.left[0] * left.itemsize % LINE:
            self.lies = int(self.lies and self.thin)
        chunks = parts(depth, tile.chunk * tile.group)
        block = DEPTH_BLOCK[bool(tile.cells)] // tile.chunk
        self.depth_blocks = max(1, parts(chunks, block))
        self.longest = parts(chunks, self.depth_blocks)
        amx = bool(tile.cells)
        work = self.sizes.work + PACKING[amx] * self.sizes.numbers
        threads = max(1, min(threads, work // WORK[amx]))
        self.beside = self._beside()
        alone = not amx and threads >= MANY and self.sizes.work <= MIDDLING
        self.shared = self.sizes.matrices == 1 and self._is_large() and not alone
        self.row_blocks, self.column_blocks = cut(self.sizes, tile, self.depth_blocks, threads,
                                                  not self.shared)  # fmt: skip
        units = self.sizes.matrices * self.row_blocks * self.column_blocks
        self.chunks, self.threads = chunks, threads
        self.tasks = 1 if threads == 1 else min(units, 4 * threads)
        self.shares = 0
        if self.shared:
            self.shares = max(1, min((rows + columns) * depth // SHARE, 4 * threads))
            self.tasks = 1 if threads == 1 else self.shares + units
        self._number(left, right)
        self.kernels: dict[Any, Kernel] = {}

    def _number(self, left: np.ndarray, right: np.ndarray) -> None:
        """What the kernel is told besides pointers and what is done to the sums."""
        tile, sizes = self.tile, self.sizes
        high, wide = parts(sizes.rows, tile.rows), parts(sizes.columns, tile.columns)
        deep, copies = self.chunks * tile.chunk, 1
        if not self.shared:
            high, wide, copies = parts(high, self.row_blocks), self.beside, self.tasks
            deep = self.longest * tile.chunk
        room_a, room_b = high * tile.rows * deep, wide * tile.columns * deep
        self.room = copies * (room_a + room_b) * tile.unit.size + (COUNTER if self.shared else 0)
        batch: Any = ((1, 1), (0, 0), (0, 0))
        if left.ndim > 2:  # noqa: PLR2004
            batch = folded(left, right)
        (outer, inner), of_a, of_b = batch
        self.numbers = (*of_a, *self.left, *of_b, *self.right[::-1], outer * inner, inner,
                        sizes.rows, sizes.columns, sizes.depth, self.depth_blocks, self.row_blocks,
                        self.column_blocks, self.shares, self.beside, room_a, room_b)  # fmt: skip
        self.factor = float if tile.sums.is_float else int

    def _laid_out(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both operands, or row-major copies of those that cannot be packed as they lie."""
        batch = self.shape[:-2]
        if self.copies & 1:
            left = np.ascontiguousarray(np.broadcast_to(left, (*batch, *left.shape[-2:])))
        if self.copies & 2:
            right = np.ascontiguousarray(np.broadcast_to(right, (*batch, *right.shape[-2:])))
        return left, right

    def _beside(self) -> int:
        """How many panels of row-major columns a block packs at once. Each row lies in another
        page: what is read of it is long. (Tiles of AMX take so long for few rows only that reading
        is what counts.)"""
        tile = self.tile
        beside = min(MOST_BESIDE, max(1, READ // (tile.columns * tile.number.size)))
        if tile.cells:
            beside = AMX_BESIDE if self.sizes.rows <= FEW * tile.rows else 1
        return beside if self.right[0] == 1 and self.sizes.columns >= beside * tile.columns else 1

    def _is_large(self) -> bool:
        """Whether so many blocks of rows would each pack all of B that it is better packed once,
        though what is packed once goes to memory and comes back."""
        high = room() // max(1, self.longest * self.tile.chunk * self.tile.unit.size)
        most = high // 2 if self.tile.cells else ALIKE * high
        return self.sizes.work >= SHARED and self.sizes.rows > max(most, self.tile.rows)

    def kernel(self, finish: Finish) -> Kernel:
        """The kernel that ends with what `finish` says."""
        constants = finish.constants
        found = self.kernels.get(constants)
        if found is None:
            found = self.kernels[constants] = kernel(
                kernels.multiply_panels, S=self.source, O=OF_NUMPY[NAMES[self.dtype]],
                SHARED=self.shared, **self.tile.constants,
                **dict(zip(FINISH, constants, strict=True)))  # fmt: skip
        return found

    def run(self, left: np.ndarray, right: np.ndarray, out: np.ndarray, finish: Finish) -> None:
        """One launch."""
        if self.copies:
            left, right = self._laid_out(left, right)
        bias, other, *steps = extras(finish, out)
        panels, lies = borrowed(self.room), int(self.lies and self._fits(left))
        if self.shared:  # what counts the packed shares lies behind them
            panels[self.room - COUNTER : self.room] = 0
        run = self.kernel(finish)
        factors = self.factor(finish.alpha), self.factor(finish.beta)
        run.parallel(self.tasks, left, right, out, bias, other, panels, *self.numbers, lies, *steps,
                     *factors, worth=self.threads)  # fmt: skip
        give_back(panels)

    def _fits(self, left: np.ndarray) -> bool:
        """Whether rows of A are cache lines where they lie, or too few tiles read them to mind."""
        return self.thin or address(left) % LINE == 0


READ, MOST_BESIDE = 512, 8
"""Bytes of a row-major row of B that are packed at once, and panels at most."""
FEW, AMX_BESIDE = 2, 4
"""Panels of rows up to which AMX packs so many panels side by side."""
COUNTER, LINE = 64, 64
SPARE_BYTES, MOST_SPARE = 1 << 19, 8
SPARE: list[np.ndarray] = []
"""Room for the panels of small products that is not in use."""


def borrowed(size: int) -> np.ndarray:
    """Bytes for panels, from the start of a cache line."""
    if size > SPARE_BYTES:
        return aligned(size, UNIT)
    try:
        return SPARE.pop()
    except IndexError:
        return aligned(SPARE_BYTES, UNIT)


def give_back(panels: np.ndarray) -> None:
    """Room that another small product may have."""
    if panels.size == SPARE_BYTES and len(SPARE) < MOST_SPARE:
        SPARE.append(panels)
