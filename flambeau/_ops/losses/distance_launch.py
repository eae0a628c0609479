"""Launches the kernels of distances, of rows in float32 or float64."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from flambeau._compiler.types import OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.losses import kernels
from flambeau._runtime.features import vector_bits
from flambeau._runtime.launch import Kernel, kernel

KINDS = {0.0: "count", 1.0: "sum", 2.0: "squares", float("inf"): "largest"}
"""The norms that there are kernels for, by their exponents."""
ROWS = 4
"""Rows whose distances are computed at a time."""
TASK_NUMBERS = 1 << 14
"""Differences that are worth a task of their own."""


@cache
def _kernel(name: str, dtype: np.dtype[Any], p: float) -> tuple[Kernel, int]:
    """A kernel, and the lanes of its vectors."""
    lanes = vector_bits() // (8 * dtype.itemsize)
    run = kernel(getattr(kernels, name), T=OF_NUMPY[dtype.name], W=lanes, R=ROWS, KIND=KINDS[p])
    return run, lanes


def _tasks(units: int, work: int) -> int:
    return max(1, min(units, work // TASK_NUMBERS, 4 * get_num_threads()))


def _columns(x: np.ndarray, lanes: int) -> np.ndarray:
    """Rows (B, R, M) as columns, and zeros up to a number of columns that vectors fill."""
    batch, rows, width = x.shape
    columns = np.zeros((batch, width, -(-rows // lanes) * lanes), x.dtype)
    columns[..., :rows] = x.swapaxes(1, 2)
    return columns


def _batched(*arrays: np.ndarray) -> list[np.ndarray]:
    """Arrays with one batch dim, the product of all that they have together."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
    wide = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in arrays]
    return [np.ascontiguousarray(x.reshape(prod(batch), *x.shape[-2:])) for x in wide]


def distances(x1: np.ndarray, x2: np.ndarray, p: float) -> np.ndarray:
    """[*, P, R] from [*, P, M] and [*, R, M]; p is one of KINDS."""
    shape = (*np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), x1.shape[-2], x2.shape[-2])
    first, second = _batched(x1, x2)
    run, lanes = _kernel("distances", first.dtype, p)
    columns = _columns(second, lanes)
    batch, rows, width = first.shape
    out = np.empty((batch, rows, second.shape[1]), first.dtype)
    run.parallel(_tasks(batch * -(-rows // ROWS), out.size * width), first, columns, out, batch,
                 rows, second.shape[1], width, columns.shape[2], 0)  # fmt: skip
    return out.reshape(shape)


def pairs(x: np.ndarray, p: float) -> np.ndarray:
    """The distances of the pairs (i, j), i < j, of rows [N, M]."""
    run, lanes = _kernel("distances", x.dtype, p)
    x = np.ascontiguousarray(x)
    rows, width = x.shape
    columns = _columns(x[None], lanes)
    out = np.empty(rows * (rows - 1) // 2, x.dtype)
    run.parallel(_tasks(-(-rows // ROWS), out.size * width), x, columns, out, 1, rows, rows, width,
                 columns.shape[2], 1)  # fmt: skip
    return out


def slopes(weights: np.ndarray, sizes: np.ndarray, x1: np.ndarray, x2: np.ndarray,
           p: float) -> np.ndarray:  # fmt: skip
    """[*, P, M]: gradients of x1 [*, P, M], where `weights` are those of its distances `sizes`
    [*, P, R] from x2 [*, R, M]. p is one of KINDS but 0."""
    return _slopes(_over_sizes(weights, sizes, p), sizes, x1, x2, p)


def slopes_of_pairs(weights: np.ndarray, sizes: np.ndarray, x: np.ndarray,
                    p: float) -> np.ndarray:  # fmt: skip
    """The same of `pairs`, for x [N, M]."""
    both = _square(_over_sizes(weights, sizes, p), len(x))
    return _slopes(both, _square(sizes, len(x)) if np.isinf(p) else both, x, x, p)


def _over_sizes(weights: np.ndarray, sizes: np.ndarray, p: float) -> np.ndarray:
    """What the kernel multiplies differences by, where a slope is one over the distance."""
    if p != 2:  # noqa: PLR2004
        return weights
    return np.divide(weights, sizes, out=np.zeros_like(weights), where=sizes != 0)


def _square(values: np.ndarray, rows: int) -> np.ndarray:
    """The matrix of what all pairs have; a row has nothing with itself."""
    full = np.zeros((rows, rows), values.dtype)
    full[np.tri(rows, k=-1, dtype=bool).T] = values
    return full + full.T


def _slopes(weights: np.ndarray, sizes: np.ndarray, x1: np.ndarray, x2: np.ndarray,
            p: float) -> np.ndarray:  # fmt: skip
    """`slopes` from weights that `_over_sizes` has made; only for p = inf are sizes read."""
    lead = weights.shape[:-2]
    weights, sizes, first, second = _batched(weights, sizes, x1, x2)
    run, _ = _kernel("distance_slopes", first.dtype, p)
    batch, rows, width = first.shape
    out = np.empty_like(first)
    tasks = _tasks(batch * -(-rows // ROWS), weights.size * width)
    run.parallel(tasks, weights, sizes, first, second, out, batch, rows, second.shape[1], width)
    return out.reshape(*lead, rows, width)
