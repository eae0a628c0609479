"""A matrix times a vector, by the pool's own threads.

OpenBLAS is as fast, but the threads that it multiplies with look for more work for some 40 ms, and
take cores from the kernels that follow (benchmarks/RESULTS.md, ResNet-18).
"""

from __future__ import annotations

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.products.gemm_tiles import strides
from flambeau._ops.products.kernels import gemv as kernels
from flambeau._runtime.features import vector_bits
from flambeau._runtime.launch import kernel

TOGETHER = 4
"""Rows that are read side by side."""
TASK = 1 << 16
"""Elements of the matrix for a task at least: some 5 us."""


def gemv(matrix: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    """`matrix @ x` for [M, K] and [K] of one float type; None where elements of the matrix follow
    each other in neither dim."""
    count, depth = matrix.shape
    down, along = strides(matrix)
    if along == 1 and (down >= depth or count == 1):
        native, row, more = kernels.rows_with_vector, down, {"ROWS": TOGETHER}
    elif down == 1 and (along >= count or depth == 1):
        native, row, more = kernels.columns_with_vector, along, {}
    else:
        return None
    out = np.empty(count, matrix.dtype)
    element = OF_NUMPY[NAMES[matrix.dtype]]
    tasks = max(1, min(matrix.size // TASK, 4 * get_num_threads()))
    kernel(native, T=element, W=vector_bits() // element.bits, **more).parallel(
        tasks, matrix, np.ascontiguousarray(x), out, count, depth, row
    )
    return out
