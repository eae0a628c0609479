"""Launches the kernel of bags of rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler.types import OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.conv.launch_depthwise import types_of
from flambeau._ops.indexing import kernels
from flambeau._runtime.launch import Kernel, kernel

VECTORS = 8
"""Vectors of columns that are summed at a time."""
TASK_NUMBERS = 1 << 14
"""Numbers that are worth a task of their own."""


@cache
def _kernel(dtype: np.dtype[Any], index: np.dtype[Any], mode: str,
            weighted: bool) -> tuple[Kernel, np.dtype[Any]]:  # fmt: skip
    statics, wide = types_of(dtype)
    run = kernel(kernels.reduce_bags, **statics, I=OF_NUMPY[index.name], R=VECTORS, MODE=mode,
                 WEIGHTED=weighted)  # fmt: skip
    return run, wide


def reduce(weight: np.ndarray, indices: np.ndarray, starts: np.ndarray, mode: str,
           samples: np.ndarray | None, padding: int) -> tuple[np.ndarray, ...]:  # fmt: skip
    """As `bags.reduce`; starts do not fall, and positions are in range."""
    run, wide = _kernel(weight.dtype, indices.dtype, mode, samples is not None)
    count, width = len(starts), weight.shape[1]
    weight, indices = np.ascontiguousarray(weight), np.ascontiguousarray(indices)
    limits = np.append(starts, indices.size).astype(np.int64)
    values = np.empty((count, width), weight.dtype)
    bags = np.empty(indices.shape, indices.dtype)
    sizes = np.empty(count, indices.dtype)
    positions = np.zeros((count, width), indices.dtype)
    weights = limits if samples is None else np.ascontiguousarray(samples, wide)
    size = indices.size * width
    tasks = max(1, min(count, size // TASK_NUMBERS, 4 * get_num_threads()))
    run.parallel(tasks, weight, indices, limits, weights, values, bags, sizes, positions, count,
                 width, padding)  # fmt: skip
    return values, bags, sizes, positions
