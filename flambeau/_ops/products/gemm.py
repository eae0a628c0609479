"""Matrix products by compiled kernels: shapes and layouts in, tasks and launches out.

Which products come here instead of to NumPy's BLAS is for the callers to ask (`wanted`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flambeau._core import precision, settings
from flambeau._ops.products.gemm_direct import Direct, Repeated, folded
from flambeau._ops.products.gemm_finish import NOTHING, Finish, finish_of
from flambeau._ops.products.gemm_tiles import usable
from flambeau._ops.products.kernels import gemm as kernels
from flambeau._ops.products.panels import Panels
from flambeau._ops.products.tiles import GROUPED, is_shortened, tile_for

__all__ = ["Finish", "Repeated", "finish_of", "gemm", "kernels", "usable"]


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


PLANS: dict[Any, Direct | Panels | Each | Copied | Empty] = {}
"""How to multiply operands of these shapes, strides and dtypes."""
MOST_PLANS = 4096
precision.FOLLOWERS.append(PLANS.clear)
SHORTENED = 1 << 20
"""Multiply-adds of a matrix from which on float32 is rounded to bfloat16 where that is allowed."""
FEW_ROWS, WIDE, FAR = 12, 1 << 17, 1 << 21
"""Fewer rows than these, beside a right operand of at least WIDE numbers, or any rows beside one of
FAR: it is packed as it is read, which is most of what the product costs (benchmarks/matmul.py)."""
LARGE = 1 << 24
"""Multiply-adds of one matrix of a batch from which on all threads are at work on it together."""
DIRECT = 1 << 26
"""Multiply-adds of one matrix up to which operands are read where they lie, or packed a block at
a time (benchmarks/matmul.py)."""


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
    work = rows * columns * depth
    if left.dtype in GROUPED or (work >= SHORTENED and is_shortened(left.dtype)):
        return _grouped(left, right, shape, dtype, threads)
    direct = depth <= kernels.DEPTH and work <= DIRECT
    if not batch:
        few = depth * columns >= (WIDE if rows < FEW_ROWS else FAR)
        if direct and not few:
            return Direct(left, right, dtype, threads)
        return Panels(left, right, dtype, tile_for(left.dtype), threads)
    if not direct:
        return Each(shape, dtype)
    if folded(left, right) is None:
        return Copied(shape, dtype)
    return Direct(left, right, dtype, threads)


def _grouped(left: np.ndarray, right: np.ndarray, shape: tuple[int, ...], dtype: np.dtype,
             threads: int) -> Any:  # fmt: skip
    """How types are multiplied that instructions take in groups."""
    batch = math.prod(shape[:-2])
    large = shape[-2] * shape[-1] * left.shape[-1] >= LARGE
    if left.ndim > 2 and large and batch < 4 * threads:  # noqa: PLR2004
        return Each(shape, dtype)
    if left.ndim > 2 and folded(left, right) is None:  # noqa: PLR2004
        return Copied(shape, dtype)
    return Panels(left, right, dtype, tile_for(left.dtype), threads)


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
