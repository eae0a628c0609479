"""Attention as one kernel over all heads: see `_ops.attention.kernels`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY, Scalar, f32
from flambeau._core.settings import get_num_threads
from flambeau._ops.attention import kernels, tile_kernels
from flambeau._ops.launching.memory_formats import are_in_rows, empty_in_order_of
from flambeau._ops.products.gemm_tiles import aligned
from flambeau._ops.products.kernels.tiles.matrices import MR, NR
from flambeau._ops.products.tiles import BFLOAT16, tile_for
from flambeau._runtime.cpu import element_strides
from flambeau._runtime.features import vector_bits
from flambeau._runtime.launch import Kernel, kernel

TILES = {512: (8, 2), 256: (6, 2), 128: (6, 2)}
"""Rows and vectors of a tile by the bits of a vector register."""
BLOCKS = 4
"""Tiles of queries that are worked on together."""
LANES = 16
"""Units of a chunk, and sums of a tile's row."""
CHUNK = 256
"""Queries of a unit of work, at least, where there are fewer heads than threads could use."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Types and tile sizes for one dtype."""

    held: Scalar
    computed: Scalar
    rows: int
    vectors: int
    lanes: int

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The type of the arithmetic."""
        return np.dtype(np.float32 if self.computed is f32 else np.float64)

    @property
    def panel(self) -> int:
        """Columns of a tile."""
        return self.vectors * self.lanes

    @property
    def block(self) -> int:
        """Queries that are worked on together."""
        return BLOCKS * self.rows

    def kernel(self, native: Any, causal: bool, masked: bool) -> Kernel:
        """A kernel for this plan."""
        return kernel(native, CAUSAL=causal, MASKED=masked, S=self.held, T=self.computed,
                      ROWS=self.block, MR=self.rows, NV=self.vectors, W=self.lanes)  # fmt: skip


def plan_of(dtype: np.dtype[Any]) -> Plan:
    """The plan for tensors of a dtype; half types are computed in float32."""
    held = OF_NUMPY[NAMES[dtype]]
    computed = held if held.bits >= 32 else f32
    rows, vectors = TILES[vector_bits()]
    return Plan(held, computed, rows, vectors, vector_bits() // computed.bits)


def _readable(array: np.ndarray) -> np.ndarray:
    """The array, or a copy whose last dim is dense."""
    if array.shape[-1] <= 1 or array.strides[-1] == array.itemsize:
        return array
    return np.ascontiguousarray(array)


def _mask_of(mask: np.ndarray | None, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The mask as numbers to add, broadcast over what it does not distinguish."""
    if mask is None:
        return np.broadcast_to(np.zeros(1, dtype), shape)
    if mask.dtype.kind == "b":
        mask = np.where(mask, dtype.type(0), dtype.type(-np.inf))
    full = (*mask.shape[:-1], shape[-1])
    dense = np.ascontiguousarray(np.broadcast_to(mask, full), dtype)
    return np.broadcast_to(dense, shape)


def _strides(*arrays: np.ndarray) -> np.ndarray:
    """The strides of batch, head and row of each array."""
    return np.array([stride for a in arrays for stride in element_strides(a)[:3]], np.int64)


def _rows_first(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """New memory [batch, heads, rows, width] in which the heads of a row lie side by side."""
    batch, heads, rows, width = shape
    return np.empty((batch, rows, heads, width), dtype).transpose(0, 2, 1, 3)


def _up(count: int, step: int) -> int:
    return -(-count // step) * step


def attend(query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None,
           is_causal: bool, scale: float) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """[B, H, L, E] by [B, H, S, E]: the weighted values, and the log of each row's sum."""
    plan = plan_of(query.dtype)
    batch, heads, queries, width = query.shape
    keys, width_out = value.shape[2:]
    dtype = plan.numpy_dtype
    given = query, key, value, mask
    query, key, value = _readable(query), _readable(key), _readable(value)
    added = _mask_of(mask, (batch, heads, queries, keys), dtype)
    if width == width_out and are_in_rows(*given):
        out = empty_in_order_of(given[0])
    else:
        out = np.empty((batch, heads, queries, width_out), query.dtype)
    log_sums = np.empty((batch, heads, queries), dtype)
    chunk = _chunk(batch * heads, queries, math.lcm(plan.block, MR))
    chunks = -(-queries // chunk)
    units = batch * heads * chunks
    tasks = min(units, 4 * get_num_threads())
    cells = tiles_for(query.dtype, queries)
    if cells:
        room = _tile_room(keys, width, width_out)
        scratch = aligned(tasks * room, np.dtype(np.int32))
        found = kernel(tile_kernels.attend_in_tiles, CAUSAL=is_causal, MASKED=mask is not None,
                       S=plan.held, UNIT=cells, W=LANES)  # fmt: skip
    else:
        padded, wide = _up(keys, plan.panel), _up(width_out, plan.panel)
        room = padded * width + wide * keys + plan.block * (width + padded + wide)
        scratch = np.empty(tasks * room, dtype)
        found = plan.kernel(kernels.attend, is_causal, mask is not None)
    found.parallel(
        tasks, query, key, value, added, _strides(query, key, value, added, out), out, log_sums,
        scratch, room, heads, units, chunks, chunk, queries, keys, width, width_out, scale,
    )  # fmt: skip
    return out, log_sums


FEW = 8
"""Queries below which tiles of 16 or 32 rows are hardly filled."""


def tiles_for(dtype: np.dtype[Any], queries: int) -> str:
    """Which form of AMX's tiles multiplies here; "" where vectors do."""
    return tile_for(BFLOAT16).cells if dtype == BFLOAT16 and queries >= FEW else ""


def _tile_room(keys: int, width: int, width_out: int) -> int:
    """Units of memory of a task: see `tile_kernels`."""
    keys, width, width_out = _up(keys, NR), _up(width, NR), _up(width_out, NR)
    panels = (keys * width + width_out * keys) // 2
    return panels + MR * (max(keys, width) // 2 + keys + width_out)


def _chunk(heads: int, queries: int, block: int) -> int:
    """How many queries a unit of work takes: all of a head's, or fewer for few heads."""
    wanted = 4 * get_num_threads()
    if heads >= wanted or queries <= CHUNK:
        return max(queries, 1)
    return max(_up(-(-queries * heads // wanted), block), CHUNK // block * block)


def attend_backward(grad: np.ndarray, query: np.ndarray, key: np.ndarray, value: np.ndarray,
                    mask: np.ndarray | None, is_causal: bool, scale: float, out: np.ndarray,
                    log_sums: np.ndarray) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Gradients of query, key and value from weights computed again."""
    plan = plan_of(query.dtype)
    batch, heads, queries, width = query.shape
    keys, width_out = value.shape[2:]
    dtype = plan.numpy_dtype
    sources = [_readable(array) for array in (query, key, value)]
    grad, out = _readable(grad), _readable(out)
    added = _mask_of(mask, (batch, heads, queries, keys), dtype)
    results = [_rows_first(array.shape, array.dtype) for array in sources]
    units = batch * heads
    every = _up(keys + plan.rows, plan.panel)
    wide, wide_out = _up(width, plan.panel), _up(width_out, plan.panel)
    room = every * (width + width_out) + wide * keys + every * (wide + wide_out)
    room += plan.block * (2 * wide + wide_out + 2 * every)
    tasks = min(units, 4 * get_num_threads())
    found = plan.kernel(kernels.attend_backward, is_causal, mask is not None)
    found.parallel(
        tasks, *sources, added, out, grad, *results,
        _strides(*sources, added, out, grad, *results), np.ascontiguousarray(log_sums),
        np.empty(tasks * room, dtype), room, heads, units, queries, keys, width, width_out, scale,
    )  # fmt: skip
    return tuple(results)
