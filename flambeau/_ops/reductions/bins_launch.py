"""Launches the kernels of histograms."""

from __future__ import annotations

import numpy as np

from flambeau._compiler.types import OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.reductions import kernels
from flambeau._runtime.launch import kernel

GRAIN = 1 << 14
"""Values that are worth a task."""


def even_places(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each value of shape (n,) between evenly spaced edges of the same type, float32 or
    float64; -1 outside."""
    out = np.empty(values.shape, np.int64)
    step = values.strides[0] // values.itemsize
    tasks = max(1, min(values.size // GRAIN, 4 * get_num_threads()))
    kernel(kernels.even_places, T=OF_NUMPY[values.dtype.name]).parallel(
        tasks, values, np.ascontiguousarray(edges), out, values.size, step, edges.size - 1
    )
    return out
