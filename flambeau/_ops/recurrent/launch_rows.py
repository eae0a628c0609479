"""Launching small LSTM layers: one call for all steps (`_ops/recurrent/kernels/rows.py`)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.recurrent.kernels import rows as kernels
from flambeau._runtime.features import vector_bits
from flambeau._runtime.launch import Kernel, kernel

LARGEST_STEP = 1 << 22
"""Multiply-adds of a step up to which its product needs no blocks for the caches."""
LARGEST_WEIGHT = 1 << 20
"""Bytes of the weights that are read again in each step."""
TASK = 1 << 18
"""Multiply-adds of a task at least."""
ROWS = 4
"""Sequences that are multiplied together."""


def fits(gates: np.ndarray, units: int) -> bool:
    """Whether a layer with gates [T, N, 4 units] is small, and whole vectors wide."""
    rows, width = gates.shape[1:]
    lanes = vector_bits() // 8 // gates.itemsize
    small = (
        rows * units * width <= LARGEST_STEP and units * width * gates.itemsize <= LARGEST_WEIGHT
    )
    return small and units % lanes == 0


def _panels(weight: np.ndarray, lanes: int) -> tuple[np.ndarray, int]:
    """A [depth, columns] matrix as panels, and how many vectors wide these are."""
    depth, columns = weight.shape
    vectors = 2 if columns % (2 * lanes) == 0 else 1
    panels = weight.reshape(depth, -1, vectors * lanes).transpose(1, 0, 2)
    return np.ascontiguousarray(panels), vectors


@cache
def _kernel(native: Any, dtype: np.dtype[Any], lanes: int, vectors: int) -> Kernel:
    return kernel(native, T=OF_NUMPY[NAMES[dtype]], W=lanes, NV=vectors, R=ROWS)


def _tasks(steps: int, rows: int, products: int) -> int:
    work = steps * rows * products
    return max(1, min(get_num_threads(), rows // ROWS, work // TASK))


def lstm(source: np.ndarray, weight: np.ndarray, hidden: np.ndarray, cell: np.ndarray,
         outputs: np.ndarray, cells: np.ndarray, gates: np.ndarray,
         backwards: bool) -> None:  # fmt: skip
    """Fill outputs, cells [T, N, H] and gates [T, N, 4 H]."""
    steps, rows, units = outputs.shape
    lanes = vector_bits() // 8 // source.itemsize
    panels, vectors = _panels(weight.T, lanes)
    products = np.empty((rows, 4 * units), source.dtype)
    _kernel(kernels.lstm_rows, source.dtype, lanes, vectors).parallel(
        _tasks(steps, rows, 4 * units * units), source, panels, hidden, cell, outputs, cells,
        gates, products, steps, rows, units, int(backwards),
    )  # fmt: skip


def lstm_backward(gates: np.ndarray, slopes: np.ndarray, weight: np.ndarray, cell: np.ndarray,
                  cells: np.ndarray, grad: np.ndarray, of_hidden: np.ndarray, of_cell: np.ndarray,
                  backwards: bool) -> None:  # fmt: skip
    """Fill slopes, and turn the states' gradients into those of the first states."""
    steps, rows, units = cells.shape
    lanes = vector_bits() // 8 // slopes.itemsize
    panels, vectors = _panels(weight, lanes)
    _kernel(kernels.lstm_rows_backward, slopes.dtype, lanes, vectors).parallel(
        _tasks(steps, rows, 4 * units * units), gates, slopes, panels, cell, cells, grad,
        of_hidden, of_cell, steps, rows, units, int(backwards),
    )  # fmt: skip
