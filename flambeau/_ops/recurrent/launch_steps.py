"""Launching large LSTM and GRU layers: all steps in one launch (`kernels/steps.py`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.products.gemm_direct import panels_of
from flambeau._ops.products.gemm_tiles import SUMS, Tile, tile_within
from flambeau._ops.products.kernels.gemm import PACKED
from flambeau._ops.recurrent.kernels import steps as kernels
from flambeau._runtime.launch import Kernel, kernel

PARTS = 2
"""Parts of a step for each thread: more wait less for the slowest thread, and pack more."""
LEAST = 1 << 18
"""Multiply-adds of a part: about 5 us, some times what it takes to wait for the step before."""


def fits(gates: np.ndarray, units: int) -> bool:
    """Whether the units of gates [T, N, 3 or 4 units] are whole vectors, few enough for a tile."""
    tile = tile_within(SUMS[gates.dtype], units)
    return tile is not None and gates.shape[-1] * tile.rows <= PACKED


def _tile(dtype: np.dtype[Any], units: int) -> Tile:
    """The tile of a layer that fits."""
    tile = tile_within(SUMS[dtype], units)
    assert tile is not None
    return tile


def _kernel(native: Any, dtype: np.dtype[Any], tile: Tile) -> Kernel:
    return kernel(native, T=OF_NUMPY[NAMES[dtype]], **tile.constants)


def _parts(gates: np.ndarray, units: int, tile: Tile) -> int:
    threads = get_num_threads()
    if threads == 1:
        return 1
    most = min(PARTS * threads, units // tile.columns)
    return max(1, min(most, math.prod(gates.shape[1:]) * units // LEAST))


def _high(depth: int, tile: Tile) -> int:
    """How many sequences are packed together."""
    return min(kernels.ROWS, PACKED // depth) // tile.rows * tile.rows


def lstm(source: np.ndarray, weight: np.ndarray, hidden: np.ndarray, cell: np.ndarray,
         outputs: np.ndarray, cells: np.ndarray, gates: np.ndarray,
         backwards: bool) -> None:  # fmt: skip
    """Fill outputs, cells [T, N, H] and gates [T, N, 4 H]."""
    steps, rows, units = outputs.shape
    tile = _tile(source.dtype, units)
    _kernel(kernels.lstm_steps, source.dtype, tile).parallel(
        steps * _parts(gates, units, tile), source, panels_of(weight.T, tile), hidden, cell,
        outputs, cells, gates, np.zeros(steps, np.int64), steps, rows, units, _high(units, tile),
        int(backwards),
    )  # fmt: skip


def lstm_backward(gates: np.ndarray, slopes: np.ndarray, weight: np.ndarray, cell: np.ndarray,
                  cells: np.ndarray, grad: np.ndarray, of_hidden: np.ndarray, of_cell: np.ndarray,
                  backwards: bool) -> None:  # fmt: skip
    """Fill slopes and of_hidden, and turn of_cell into the gradient of the first cell state."""
    steps, rows, units = cells.shape
    tile = _tile(gates.dtype, units)
    _kernel(kernels.lstm_steps_backward, gates.dtype, tile).parallel(
        (steps + 1) * _parts(gates, units, tile), gates, slopes, panels_of(weight, tile), cell,
        cells, grad, of_hidden, of_cell, np.zeros(steps + 1, np.int64), steps, rows, units,
        _high(4 * units, tile), int(backwards),
    )  # fmt: skip


def gru(source: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, hidden: np.ndarray,
        outputs: np.ndarray, gates: np.ndarray, from_hidden: np.ndarray,
        backwards: bool) -> None:  # fmt: skip
    """Fill outputs [T, N, H], gates and from_hidden [T, N, 3 H]."""
    steps, rows, units = outputs.shape
    tile = _tile(source.dtype, units)
    if bias is None:
        bias = np.zeros(3 * units, source.dtype)
    _kernel(kernels.gru_steps, source.dtype, tile).parallel(
        steps * _parts(gates, units, tile), source, panels_of(weight.T, tile), bias, hidden,
        outputs, gates, from_hidden, np.zeros(steps, np.int64), steps, rows, units,
        _high(units, tile), int(backwards),
    )  # fmt: skip


def gru_backward(gates: np.ndarray, from_hidden: np.ndarray, slopes: np.ndarray,
                 inner_slopes: np.ndarray, weight: np.ndarray, hidden: np.ndarray,
                 outputs: np.ndarray, grad: np.ndarray, of_hidden: np.ndarray,
                 backwards: bool) -> None:  # fmt: skip
    """Fill both kinds of slopes, and of_hidden, which is 0."""
    steps, rows, units = outputs.shape
    tile = _tile(gates.dtype, units)
    _kernel(kernels.gru_steps_backward, gates.dtype, tile).parallel(
        (steps + 1) * _parts(gates, units, tile), gates, from_hidden, slopes, inner_slopes,
        panels_of(weight, tile), hidden, outputs, grad, of_hidden, np.zeros(steps + 1, np.int64),
        steps, rows, units, _high(3 * units, tile), int(backwards),
    )  # fmt: skip
