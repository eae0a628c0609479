"""Large products: both operands packed whole, one block of k after the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from flambeau._compiler.types import OF_NUMPY
from flambeau._ops.kernels import gemm as kernels
from flambeau._ops.templates.gemm_finish import FINISH, Finish, extras
from flambeau._ops.templates.gemm_tiles import (
    COLUMN_BLOCK,
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
from flambeau._runtime.launch import kernel


class Packed:
    """Block of k by block of k: all panels of both matrices are packed, then multiplied."""

    def __init__(self, left: np.ndarray, right: np.ndarray, dtype: np.dtype, threads: int) -> None:
        self.rows, depth = left.shape
        self.columns = right.shape[1]
        self.shape, self.dtype = (self.rows, self.columns), dtype
        self.sums = SUMS[left.dtype]
        self.tile = tile = tile_of(self.sums)
        self.wide = SUM_DTYPES[self.sums]
        blocks = max(parts(depth, DEPTH_BLOCK), 1)
        self.edges = [depth * block // blocks for block in range(blocks + 1)]
        self.most = parts(depth, blocks)
        self.pack = kernel(kernels.pack_operands, S=OF_NUMPY[left.dtype.name], T=self.sums,
                           **tile.constants)  # fmt: skip
        self.packs = max(1, min((self.rows + self.columns) * self.most // 16384, 4 * threads))
        self.strides = (*strides(left), *strides(right))
        self.grid = _grid(self.rows, self.columns, tile, threads)

    def run(self, left: np.ndarray, right: np.ndarray, out: np.ndarray, finish: Finish) -> None:
        """Two launches for each block of k."""
        rows, columns, tile, wide = self.rows, self.columns, self.tile, self.wide
        row_blocks, column_blocks = self.grid
        packed_a = aligned(parts(rows, tile.rows) * tile.rows * self.most, wide)
        packed_b = aligned(parts(columns, tile.columns) * tile.columns * self.most, wide)
        last = len(self.edges) - 2
        partial = out if out.dtype == wide else np.empty(out.shape if last else 1, wide)
        multiply = kernel(kernels.multiply_packed, O=OF_NUMPY[out.dtype.name], T=self.sums,
                          **dict(zip(FINISH, finish.constants, strict=True)),
                          **tile.constants)  # fmt: skip
        bias, other, _, other_row = extras(finish, out)
        for block, (first, end) in enumerate(pairwise(self.edges)):
            size = end - first
            self.pack.parallel(self.packs, left[:, first:], right[first:], packed_a, packed_b,
                               *self.strides, rows, columns, size)  # fmt: skip
            multiply.parallel(row_blocks * column_blocks, packed_a, packed_b, out, partial, bias,
                              other, rows, columns, size, columns, columns, block == 0,
                              block == last, row_blocks, other_row, finish.alpha,
                              finish.beta)  # fmt: skip


def _grid(rows: int, columns: int, tile: Tile, threads: int) -> tuple[int, int]:
    """How many blocks of rows and of columns: enough for all threads, an even number for each."""
    row_blocks, column_blocks = parts(rows, ROW_BLOCK), parts(columns, COLUMN_BLOCK)
    if threads == 1:
        return row_blocks, column_blocks
    wanted = parts(row_blocks * column_blocks, 2 * threads) * 2 * threads
    row_blocks = min(parts(wanted, column_blocks), parts(rows, tile.rows))
    column_blocks = min(parts(wanted, row_blocks), parts(columns, tile.columns))
    return row_blocks, column_blocks
