"""Large products: both operands packed whole, one block of k after the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from flambeau._compiler.types import OF_NUMPY
from flambeau._ops.products.gemm_finish import FINISH, Finish, extras
from flambeau._ops.products.gemm_tiles import (
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
from flambeau._ops.products.kernels import gemm as kernels
from flambeau._runtime.launch import WATCHED, kernel
from flambeau._runtime.threads import contents

MOST_PACKED = 1 << 22
"""Elements of both operands that are packed at once: what they take beside the result."""
SHARE = 8192
"""Elements that are packed by a task at least."""


class Packed:
    """One launch, or several where there is much: threads pack all panels, then multiply."""

    def __init__(self, left: np.ndarray, right: np.ndarray, dtype: np.dtype, threads: int) -> None:
        rows, depth = left.shape
        columns = right.shape[1]
        self.shape, self.dtype = (rows, columns), dtype
        self.sums = SUMS[left.dtype]
        self.tile = tile = tile_of(self.sums)
        self.pack = kernel(kernels.pack_operands, S=OF_NUMPY[left.dtype.name], T=self.sums,
                           **tile.constants)  # fmt: skip
        self.wide = SUM_DTYPES[self.sums]
        blocks = max(parts(depth, DEPTH_BLOCK), 1)
        self.heights = [parts(n, size) * size
                        for n, size in ((rows, tile.rows), (columns, tile.columns))]  # fmt: skip
        calls = min(blocks, max(1, parts(sum(self.heights) * depth, MOST_PACKED)))
        cuts = [blocks * call // calls for call in range(calls + 1)]
        self.calls = [(depth * begin // blocks, depth * end // blocks, end - begin)
                      for begin, end in pairwise(cuts)]  # fmt: skip
        self.most = max(end - begin for begin, end, _ in self.calls)
        self.strides = strides(left), strides(right)
        most = 4 * threads if threads > 1 else 1
        self.shares = max(1, min((rows + columns) * self.most // SHARE, most))
        self.row_blocks, column_blocks = _grid(rows, columns, tile, threads)
        self.tasks = self.shares + self.row_blocks * column_blocks

    def run(self, left: np.ndarray, right: np.ndarray, out: np.ndarray, finish: Finish) -> None:
        """Multiply."""
        panels_a, panels_b = (aligned(height * self.most, self.wide) for height in self.heights)
        partial = out
        if out.dtype != self.wide:
            blocks = sum(blocks for *_, blocks in self.calls)
            partial = np.empty(out.shape if blocks > 1 else 1, self.wide)
        multiply = kernel(kernels.multiply_packed, O=OF_NUMPY[out.dtype.name], T=self.sums,
                          **dict(zip(FINISH, finish.constants, strict=True)),
                          **self.tile.constants)  # fmt: skip
        bias, other, _, other_row = extras(finish, out)
        for begin, end, blocks in self.calls:
            sizes = (*self.shape, end - begin, blocks)
            arguments = self.pack.packed((left[:, begin:], right[begin:], panels_a, panels_b,
                                          *self.strides[0], *self.strides[1], *sizes))  # fmt: skip
            multiply.parallel(self.tasks, panels_a, panels_b, out, bias, other, partial,
                              np.zeros(1, np.int64), self.pack.address, contents(arguments), *sizes,
                              begin == 0, end == left.shape[1], self.shares, self.row_blocks,
                              other_row, finish.alpha, finish.beta)  # fmt: skip
            if WATCHED:
                self.pack.raise_fault()


def _grid(rows: int, columns: int, tile: Tile, threads: int) -> tuple[int, int]:
    """How many blocks of rows and of columns: enough for all threads, an even number for each."""
    row_blocks, column_blocks = parts(rows, ROW_BLOCK), parts(columns, COLUMN_BLOCK)
    if threads == 1:
        return row_blocks, column_blocks
    wanted = parts(row_blocks * column_blocks, 2 * threads) * 2 * threads
    row_blocks = min(parts(wanted, column_blocks), parts(rows, tile.rows))
    column_blocks = min(parts(wanted, row_blocks), parts(columns, tile.columns))
    return row_blocks, column_blocks
