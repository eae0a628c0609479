"""Matrix products by compiled kernels: shapes and layouts in, tasks and launches out.

Which products come here instead of to NumPy's BLAS is for the callers to ask (`wanted`).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np

from flambeau._compiler.types import OF_NUMPY, Scalar, f32, f64
from flambeau._core import settings
from flambeau._ops.kernels import gemm as kernels
from flambeau._runtime import engine, threads
from flambeau._runtime.cpu import address
from flambeau._runtime.launch import CHECKED, Kernel, kernel
from flambeau._runtime.pool_kernels import X86

SUMS = {
    np.dtype(np.float32): f32,
    np.dtype(np.float64): f64,
    np.dtype(np.float16): f32,
    np.dtype(ml_dtypes.bfloat16): f32,
}
"""What is multiplied here, and the type that its sums have."""
SUM_DTYPES = {f32: np.dtype(np.float32), f64: np.dtype(np.float64)}


@dataclass(frozen=True, slots=True)
class Tile:
    """The part of C that registers hold: `rows` by `vectors` vectors of `width` elements."""

    rows: int
    vectors: int
    width: int

    @property
    def columns(self) -> int:
        """NR."""
        return self.vectors * self.width

    @property
    def constants(self) -> dict[str, int]:
        """As the kernels name them."""
        return {"MR": self.rows, "NV": self.vectors, "W": self.width}


@cache
def usable() -> bool:
    """Whether the processor multiplies and adds in one instruction; all but old x86 do."""
    return not X86 or engine.has("fma")


@cache
def bfloat16_dots() -> bool:
    """Whether the processor multiplies bfloat16 itself (`gemm_dots`), twice as fast as float32."""
    return engine.has("avx512bf16")


@cache
def tile_of(sums: Scalar) -> Tile:
    """The tile for sums of a type: as many registers as the machine has, less what feeds them.

    Of 16 registers 12 hold sums (x86 with AVX), of 32 28 (AVX-512) or 24 (NEON, whose narrow
    vectors want more columns per number that is spread).
    """
    bits = engine.vector_bits()
    rows, vectors = {512: (14, 2), 256: (6, 2)}.get(bits, (8, 3))
    return Tile(rows, vectors, bits // 8 // sums.size)


# ---- what is done to the sums


@dataclass(frozen=True, slots=True)
class Finish:
    """activation(alpha * product + bias + beta * other), rounded to the result's type once.

    `bias` has one element per column, or per row (`bias_of_row`); `other` is [.., M, N] with
    columns that follow each other (rows may lie 0 apart); both have the result's dtype.
    `activation` is a kernel of one value.
    """

    bias: np.ndarray | None = None
    bias_of_row: bool = False
    other: np.ndarray | None = None
    alpha: float = 1.0
    beta: float = 1.0
    activation: Any = None

    @property
    def constants(self) -> tuple[int, bool, bool, Any]:
        """What the kernels are compiled for: BIAS, SCALED, OTHER and ACTIVATION."""
        bias = kernels.NO_BIAS
        if self.bias is not None:
            bias = kernels.BIAS_OF_ROW if self.bias_of_row else kernels.BIAS_OF_COLUMN
        return bias, self.alpha != 1, self.other is not None, self.activation


NOTHING = Finish()
FINISH = ("BIAS", "SCALED", "OTHER", "ACTIVATION")


def finish_of(data: np.ndarray, beta: float, alpha: float) -> Finish:
    """What adds `beta * data`, of the result's shape or one number per column, to a product."""
    if beta == 0:
        return Finish(alpha=alpha) if alpha != 1 else NOTHING
    if data.ndim == 1:
        data = np.ascontiguousarray(data)
        if beta == 1:
            return Finish(bias=data, alpha=alpha)
        raise ValueError("a factor of the numbers per column: expand them first")
    if data.ndim > 2 or (data.strides[-1] != data.itemsize and data.shape[-1] > 1):
        data = np.ascontiguousarray(data)
    return Finish(other=data, alpha=alpha, beta=beta)


# ---- the product


def gemm(left: np.ndarray, right: np.ndarray, finish: Finish = NOTHING,
         result: np.dtype | None = None) -> np.ndarray:  # fmt: skip
    """`left @ right` in new row-major memory: [.., M, K] and [.., K, N]; batches broadcast.

    Both are of one dtype of `SUMS`, with any strides; the result has it too, or `result`.
    """
    threads = settings.get_num_threads()
    key = (left.shape, left.strides, right.shape, right.strides, left.dtype, result, threads)
    plan = PLANS.get(key)
    if plan is None:
        plan = PLANS[key] = _plan(left, right, result, threads)
        if len(PLANS) > MOST_PLANS:
            PLANS.clear()
    out = np.empty(plan.shape, plan.dtype)
    plan.run(left, right, out, finish)
    return out


PLANS: dict[Any, Direct | Packed | Each | Copied | Empty] = {}
"""How to multiply operands of these shapes, strides and dtypes."""
MOST_PLANS = 4096
DIRECT, DIRECT_ACROSS = 1 << 26, 1 << 24
"""Multiply-adds of one matrix up to which operands are read where they lie, or packed a block at
a time; the second where A's rows lie across (benchmarks/matmul.py)."""


def _plan(left: np.ndarray, right: np.ndarray, result: np.dtype | None, threads: int) -> Any:
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    (rows, depth), columns = left.shape[-2:], right.shape[-1]
    dtype = left.dtype if result is None else result
    shape = (*batch, rows, columns)
    if not math.prod(shape):
        return Empty(shape, dtype)
    if batch:
        left = np.broadcast_to(left, (*batch, rows, depth))
        right = np.broadcast_to(right, (*batch, depth, columns))
    most = DIRECT if left.strides[-1] == left.itemsize else DIRECT_ACROSS
    direct = depth <= kernels.DEPTH and rows * columns * depth <= most
    if not batch:
        return (Direct if direct else Packed)(left, right, dtype, threads)
    if not direct:
        return Each(shape, dtype)
    if _folded(left, right) is None:
        return Copied(shape, dtype)
    return Direct(left, right, dtype, threads)


@dataclass(frozen=True, slots=True)
class Empty:
    """A result without elements."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def run(self, left: np.ndarray, right: np.ndarray, out: np.ndarray, finish: Finish) -> None:
        """Nothing is left to do."""


class Each(Empty):
    """A batch of large matrices, one after the other."""

    def run(self, left: np.ndarray, right: np.ndarray, out: np.ndarray, finish: Finish) -> None:
        """Each product finds its own plan."""
        batch = self.shape[:-2]
        left = np.broadcast_to(left, (*batch, *left.shape[-2:]))
        right = np.broadcast_to(right, (*batch, *right.shape[-2:]))
        for place in np.ndindex(batch):
            own = finish
            if finish.other is not None:
                own = replace(finish, other=finish.other[place])
            out[place] = gemm(left[place], right[place], own, self.dtype)


class Copied(Empty):
    """Batches in more dims than the kernel walks: row-major copies of both operands."""

    def run(self, left: np.ndarray, right: np.ndarray, out: np.ndarray, finish: Finish) -> None:
        """As one batch."""
        batch = self.shape[:-2]
        left = np.broadcast_to(left, (*batch, *left.shape[-2:]))
        right = np.broadcast_to(right, (*batch, *right.shape[-2:]))
        flat = (-1, *self.shape[-2:])
        if finish.other is not None:
            finish = replace(finish, other=finish.other.reshape(flat))
        out.reshape(flat)[...] = gemm(
            left.reshape(-1, *left.shape[-2:]), right.reshape(-1, *right.shape[-2:]), finish,
            self.dtype)  # fmt: skip


def _collides(count: int, step: int) -> bool:
    """Whether cache lines `step` bytes apart drive each other out of a first cache: it keeps lines
    of equal addresses modulo 4096 in eight places, of which half are left for this."""
    return count * step > 1 << 16 or count > 4 * (4096 // math.gcd(step, 4096))


def _parts(count: int, size: int) -> int:
    return -(-count // size)


def _strides(array: np.ndarray) -> tuple[int, ...]:
    size = array.itemsize
    return tuple([step // size for step in array.strides])


def _extras(finish: Finish, out: np.ndarray) -> tuple[Any, Any, int, int]:
    """bias, other, and how far apart other's matrices and rows lie."""
    bias = out if finish.bias is None else finish.bias
    if finish.other is None:
        return bias, out, 0, 0
    steps = _strides(finish.other)
    return bias, finish.other, steps[-3] if len(steps) > 2 else 0, steps[-2]


# ---- large: packed


DEPTH_BLOCK = 384
ROW_BLOCK = 96
COLUMN_BLOCK = 512
"""About what a block of k, rows and columns is: NR x DEPTH_BLOCK stays in the first cache,
ROW_BLOCK x DEPTH_BLOCK in the second."""


def _aligned(count: int, dtype: np.dtype) -> np.ndarray:
    """New memory that begins with a cache line."""
    extra = 64 // dtype.itemsize
    owner = np.empty(count + extra, dtype)
    start = -address(owner) // dtype.itemsize % extra
    return owner[start : start + count]


class Packed:
    """Block of k by block of k: all panels of both matrices are packed, then multiplied."""

    def __init__(self, left: np.ndarray, right: np.ndarray, dtype: np.dtype, threads: int) -> None:
        self.rows, depth = left.shape
        self.columns = right.shape[1]
        self.shape, self.dtype = (self.rows, self.columns), dtype
        self.sums = SUMS[left.dtype]
        self.tile = tile = tile_of(self.sums)
        self.wide = SUM_DTYPES[self.sums]
        blocks = max(_parts(depth, DEPTH_BLOCK), 1)
        self.edges = [depth * block // blocks for block in range(blocks + 1)]
        self.most = _parts(depth, blocks)
        self.pack = kernel(kernels.pack_operands, S=OF_NUMPY[left.dtype.name], T=self.sums,
                           **tile.constants)  # fmt: skip
        self.packs = max(1, min((self.rows + self.columns) * self.most // 16384, 4 * threads))
        self.strides = (*_strides(left), *_strides(right))
        self.grid = _grid(self.rows, self.columns, tile, threads)

    def run(self, left: np.ndarray, right: np.ndarray, out: np.ndarray, finish: Finish) -> None:
        """Two launches for each block of k."""
        rows, columns, tile, wide = self.rows, self.columns, self.tile, self.wide
        row_blocks, column_blocks = self.grid
        packed_a = _aligned(_parts(rows, tile.rows) * tile.rows * self.most, wide)
        packed_b = _aligned(_parts(columns, tile.columns) * tile.columns * self.most, wide)
        last = len(self.edges) - 2
        partial = out if out.dtype == wide else np.empty(out.shape if last else 1, wide)
        multiply = kernel(kernels.multiply_packed, O=OF_NUMPY[out.dtype.name], T=self.sums,
                          **dict(zip(FINISH, finish.constants, strict=True)),
                          **tile.constants)  # fmt: skip
        bias, other, _, other_row = _extras(finish, out)
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
    row_blocks, column_blocks = _parts(rows, ROW_BLOCK), _parts(columns, COLUMN_BLOCK)
    if threads == 1:
        return row_blocks, column_blocks
    wanted = _parts(row_blocks * column_blocks, 2 * threads) * 2 * threads
    row_blocks = min(_parts(wanted, column_blocks), _parts(rows, tile.rows))
    column_blocks = min(_parts(wanted, row_blocks), _parts(columns, tile.columns))
    return row_blocks, column_blocks


# ---- small, and batches of small


class Direct:
    """All matrices of a batch in one launch. `panels`: B will be given as `Repeated` packs it."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __init__(self, left: np.ndarray, right: np.ndarray, dtype: np.dtype, threads: int,
                 panels: bool = False) -> None:  # fmt: skip
        rows, depth = left.shape[-2:]
        columns = right.shape[-1]
        self.shape, self.dtype = (*left.shape[:-1], columns), dtype
        self.source, self.sums = OF_NUMPY[left.dtype.name], SUMS[left.dtype]
        tile = self.tile = tile_of(self.sums)
        a_row, a_step = _strides(left)[-2:]
        b_step, b_column = _strides(right)[-2:]
        foreign = self.source is not self.sums
        pack_a = (foreign or rows < tile.rows or (a_step != 1 and depth * a_step > 1 << 14)
                  or (panels and depth > DEPTH_BLOCK))  # fmt: skip
        pack_b = (
            foreign
            or b_column != 1
            or columns < tile.columns
            or (rows > 4 * tile.rows and _collides(depth, b_step * right.itemsize))
        )
        b_form = kernels.PACK if pack_b else kernels.IN_PLACE
        if panels:
            b_form, b_step, b_column = kernels.PANELS, tile.columns, 1
        (outer, inner), (a_outer, a_inner), (b_outer, b_inner) = _folded(left, right)
        depth_blocks = 1
        if pack_a and b_form != kernels.IN_PLACE and dtype == SUM_DTYPES[self.sums]:
            depth_blocks = max(1, _parts(depth, DEPTH_BLOCK))
        packed = (pack_a, b_form == kernels.PACK, max(1, _parts(depth, depth_blocks)))
        blocks = _units(outer * inner, (rows, columns, depth), packed, tile, threads)
        row_blocks, column_blocks, self.tasks = blocks
        self.numbers = (a_outer, a_inner, a_row, a_step, int(pack_a), b_outer, b_inner, b_step,
                        b_column, b_form, outer * inner, inner, rows, columns, depth,
                        row_blocks, column_blocks, depth_blocks)  # fmt: skip
        self.head = struct.pack("18q", *self.numbers)
        self.kernels: dict[Any, Kernel] = {}

    def kernel(self, finish: Finish) -> Kernel:
        """The kernel that ends with what `finish` says."""
        constants = finish.constants
        found = self.kernels.get(constants)
        if found is None:
            result = OF_NUMPY[self.dtype.name]
            found = self.kernels[constants] = kernel(
                kernels.multiply_direct, S=self.source, O=result, T=self.sums,
                **dict(zip(FINISH, constants, strict=True)), **self.tile.constants)  # fmt: skip
        return found

    def run(self, left: np.ndarray, right: np.ndarray, out: np.ndarray, finish: Finish) -> None:
        """One launch."""
        bias, other, *steps = _extras(finish, out)
        run = self.kernel(finish)
        if CHECKED:
            run.parallel(self.tasks, left, right, out, bias, other, *self.numbers, *steps,
                         finish.alpha, finish.beta)  # fmt: skip
            return
        # most numbers are packed already: benchmarks/matmul.py "128"
        packed = b"".join((
            _POINTERS(*map(address, (left, right, out, bias, other))), self.head,
            _FACTORS(*steps, finish.alpha, finish.beta)))  # fmt: skip
        if self.tasks == 1:
            run.entry(packed, 0, 1)
        else:
            threads.run(run, packed, self.tasks)


class Repeated:
    """One right operand of many products, [K, N] in float32 or float64, packed once."""

    def __init__(self, right: np.ndarray) -> None:
        sums = SUMS[right.dtype]
        tile = tile_of(sums)
        depth, columns = right.shape
        self.right = right
        self.panels = _aligned(_parts(columns, tile.columns) * tile.columns * depth, right.dtype)
        pack = kernel(kernels.pack_operands, S=sums, T=sums, **tile.constants)
        pack.parallel(max(1, min(right.size // 16384, 4 * settings.get_num_threads())), right,
                      right, self.panels, self.panels, 0, 0, *_strides(right), 0, columns,
                      depth)  # fmt: skip
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


_POINTERS = struct.Struct("5Q").pack
_FACTORS = struct.Struct("2q2d").pack
SHARE = 1 << 18
"""Multiply-adds for each thread from which work is shared (some 5 us; handing it over takes 1)."""
BLOCK = 40 * 1024
"""Elements of A in a block of rows: what half a second cache holds. Of what a processor calls its
own, other threads of the core may hold the other half."""
PACKING = 8
"""What it costs to pack an element, in multiply-adds."""
TAIL = 0.25
"""The part of a task that a thread waits for others in the end."""


def _units(matrices: int, shape: tuple[int, int, int], packed: tuple[bool, bool, int], tile: Tile,
           threads: int) -> tuple[int, int, int]:  # fmt: skip
    """Blocks of rows and columns of a matrix, and the number of tasks.

    `packed`: whether A and B are, and a block's depth. Each unit packs what it reads, so that few
    units pack little; many keep all threads busy to the end.
    """
    rows, columns, depth = shape
    row_panels, panels = _parts(rows, tile.rows), _parts(columns, tile.columns)
    high = max(ROW_BLOCK, BLOCK // packed[2])
    if packed[0]:
        high = min(high, kernels.PACKED // packed[2])
    least = _parts(row_panels, max(1, high // tile.rows))
    work = matrices * rows * columns * depth
    if threads == 1 or work < threads * SHARE:
        return least, 1, 1
    if matrices >= 4 * threads:
        return least, 1, min(matrices * least, 4 * threads)

    def cost(blocks: tuple[int, int]) -> float:
        high, wide = _parts(row_panels, blocks[0]), _parts(panels, blocks[1])
        unit = high * wide * tile.rows * tile.columns * depth
        unit += PACKING * depth * (high * tile.rows * packed[0] + wide * tile.columns * packed[1])
        return unit * (_parts(matrices * blocks[0] * blocks[1], threads) + TAIL)

    most = 4 * threads
    choices = [
        (high, wide)
        for high in range(least, max(least, min(row_panels, most)) + 1)
        for wide in range(1, min(panels, most) + 1)
        if high * wide <= max(most, least)
    ]
    row_blocks, column_blocks = min(choices, key=cost)
    return row_blocks, column_blocks, matrices * row_blocks * column_blocks


def _folded(left: np.ndarray, right: np.ndarray) -> Any:
    """Batch dims as two, with the strides that both operands have in them; None if it takes more.

    Dims are joined where a step in the outer one is a whole turn of the inner one, for both.
    """
    dims: list[tuple[int, int, int]] = []
    lefts, rights = _strides(left), _strides(right)
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
