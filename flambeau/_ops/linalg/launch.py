"""Launches the kernels of linear algebra, for matrices of float32 or float64."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler.types import OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.linalg import kernels
from flambeau._ops.linalg.checks import Array
from flambeau._runtime.features import vector_bits
from flambeau._runtime.launch import Kernel, kernel

BLOCK = 64
"""Up to this many rows substitution, above it halves and matrix products."""
ROWS = 4
"""Rows that are substituted at a time."""
FEW = 4
"""Up to this many columns vectors are so short."""
TASK_NUMBERS = 1 << 14
"""Multiplications that are worth a task of their own."""


def _tasks(units: int, work: int) -> int:
    return max(1, min(units, work // TASK_NUMBERS, 4 * get_num_threads()))


def _steps(array: Array) -> list[int]:
    return [step // array.itemsize for step in array.strides]


# ---- triangular systems


@cache
def _solver(dtype: np.dtype[Any], width: int, vectors: int, unit: bool) -> Kernel:
    return kernel(kernels.solve_lower, T=OF_NUMPY[dtype.name], W=width, C=vectors, R=ROWS,
                  UNIT=unit)  # fmt: skip


def substitute(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """X with A X = B for triangular A (*, n, n) and B (*, n, k)."""
    size, columns = b.shape[-2:]
    width = FEW if columns <= FEW else vector_bits() // (8 * a.itemsize)
    vectors = 2 if columns > width else 1
    tile = width * vectors
    tiles = -(-columns // tile)
    matrices = a.reshape(-1, size, size)
    x = np.zeros((len(matrices), size, tiles * tile), a.dtype)
    x[..., :columns] = b.reshape(-1, size, columns)
    run = _solver(a.dtype, width, vectors, unit)
    if upper:
        _solve_upper(run, matrices, x, tiles)
    else:
        _solve_lower(run, matrices, x, tiles)
    return x[..., :columns].reshape(b.shape)


def _solve_lower(run: Kernel, a: Array, x: Array, tiles: int) -> None:
    size = a.shape[-1]
    if size <= BLOCK:
        _launch(run, a, x, tiles)
        return
    middle = _middle(size)
    _solve_lower(run, a[:, :middle, :middle], x[:, :middle], tiles)
    x[:, middle:] -= a[:, middle:, :middle] @ x[:, :middle]
    _solve_lower(run, a[:, middle:, middle:], x[:, middle:], tiles)


def _solve_upper(run: Kernel, a: Array, x: Array, tiles: int) -> None:
    """Read from behind, upper triangles are lower ones."""
    size = a.shape[-1]
    if size <= BLOCK:
        _launch(run, a[:, ::-1, ::-1], x[:, ::-1], tiles)
        return
    middle = size - _middle(size)
    _solve_upper(run, a[:, middle:, middle:], x[:, middle:], tiles)
    x[:, :middle] -= a[:, :middle, middle:] @ x[:, middle:]
    _solve_upper(run, a[:, :middle, :middle], x[:, :middle], tiles)


def _middle(size: int) -> int:
    """About a half, of whole blocks."""
    return -(-size // (2 * BLOCK)) * BLOCK


def _launch(run: Kernel, a: Array, x: Array, tiles: int) -> None:
    batch, size, columns = x.shape
    x_steps = _steps(x)
    tasks = _tasks(batch * tiles, batch * size * size * columns)
    run.parallel(tasks, a, x, batch, size, tiles, *_steps(a), x_steps[0], x_steps[1])


# ---- elimination


@cache
def _eliminator(dtype: np.dtype[Any]) -> Kernel:
    width = vector_bits() // (8 * dtype.itemsize)
    return kernel(kernels.eliminate, T=OF_NUMPY[dtype.name], W=width)


def eliminate(columns: Array, pivots: Array, start: int, stop: int) -> None:
    """Factor the columns from `start` to `stop` of matrices (batch, n, m) that lie transposed, in
    place; pivots (batch, min(m, n)) are written there."""
    batch, _, height = columns.shape
    tasks = _tasks(batch, batch * height * (stop - start) ** 2)
    _eliminator(columns.dtype).parallel(tasks, columns, pivots, batch, height, pivots.shape[1],
                                        columns[0].size, start, stop)  # fmt: skip


@cache
def _exchanger(dtype: np.dtype[Any]) -> Kernel:
    return kernel(kernels.exchange, T=OF_NUMPY[dtype.name])


def exchange(columns: Array, pivots: Array, start: int, stop: int) -> None:
    """Carry a panel's row exchanges to the other columns of one matrix, which lies transposed."""
    width, height = columns.shape
    tasks = _tasks(width, width * (stop - start))
    _exchanger(columns.dtype).parallel(tasks, columns, pivots, width, height, start, stop)


# ---- Cholesky factors

MOST_ROWS = 32
"""Larger matrices are LAPACK's."""


@cache
def _factorizer(dtype: np.dtype[Any]) -> Kernel:
    return kernel(kernels.cholesky, T=OF_NUMPY[dtype.name], W=vector_bits() // 64, ROOM=MOST_ROWS)


def cholesky(a: Array) -> Array | None:
    """L with A = L L^T for small matrices (*, n, n), or None where one is not positive-definite."""
    size = a.shape[-1]
    matrices = a.reshape(-1, size, size)
    batch = len(matrices)
    out, info = np.empty((batch, size, size), a.dtype), np.empty(batch, np.int32)
    tasks = _tasks(batch, batch * size**3)
    _factorizer(a.dtype).parallel(tasks, matrices, out, info, batch, size, *_steps(matrices))
    return None if info.any() else out.reshape(a.shape)
