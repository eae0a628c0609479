"""Launches the kernels of `grid_sample` and its gradients; arguments as in `numpy_grid`."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._compiler.types import NAMES
from flambeau._core.settings import get_num_threads
from flambeau._ops.conv.launch_depthwise import types_of
from flambeau._ops.images import grid_kernels as kernels
from flambeau._ops.images.numpy_grid import MODES, PADDING_MODES
from flambeau._ops.launching.precision import Array
from flambeau._runtime.launch import Kernel, kernel

TASK_NUMBERS = 1 << 13
"""Numbers read at their positions that are worth a task of their own."""


def _kernel(native: Any, input: Array, options: tuple[str, str, bool]) -> Kernel:
    mode, padding_mode, align_corners = options
    return kernel(native, **types_of(input.dtype)[0], RANK=input.ndim - 2, MODE=MODES.index(mode),
                  PADDING=PADDING_MODES.index(padding_mode), ALIGN=bool(align_corners))  # fmt: skip


def _sizes(input: Array, grid: Array, groups: int = 1) -> Array:
    images, channels, *spatial = input.shape
    points = prod(grid.shape[1:-1])
    return np.array([images, channels, groups, points, prod(spatial), *spatial], np.int64)


def _tasks(units: int, numbers: int) -> int:
    return max(1, min(units, numbers // TASK_NUMBERS, 4 * get_num_threads()))


def _blocks(input: Array, grid: Array) -> int:
    return len(input) * -(-prod(grid.shape[1:-1]) // kernels.BLOCK)


def grid_sample(input: Array, grid: Array, mode: str, padding_mode: str,
                align_corners: bool) -> Array:  # fmt: skip
    """Read input at the grid's positions: `(N, C, *output)`."""
    result = np.empty((*input.shape[:2], *grid.shape[1:-1]), input.dtype)
    _kernel(kernels.sample, input, (mode, padding_mode, align_corners)).parallel(
        _tasks(_blocks(input, grid), result.size), np.ascontiguousarray(input),
        np.ascontiguousarray(grid), result, _sizes(input, grid),
    )  # fmt: skip
    return result


def grid_sample_backward(grad: Array, input: Array, grid: Array, mode: str, padding_mode: str,
                         align_corners: bool) -> tuple[Array, Array]:  # fmt: skip
    """The gradients of `grid_sample` with respect to input and grid."""
    options = mode, padding_mode, align_corners
    grad, input, grid = map(np.ascontiguousarray, (grad, input, grid))
    return _of_input(grad, input, grid, options), _of_grid(grad, input, grid, options)


def _of_input(grad: Array, input: Array, grid: Array, options: Any) -> Array:
    wide = types_of(input.dtype)[1]
    result = np.empty(input.shape, input.dtype)
    groups = min(input.shape[1], -(-4 * get_num_threads() // len(input)))
    work = np.empty(0 if wide == input.dtype else input.size, wide)
    _kernel(kernels.spread, input, options).parallel(
        _tasks(len(input) * groups, grad.size), grad, grid, result, work,
        _sizes(input, grid, groups),
    )  # fmt: skip
    return result


def _of_grid(grad: Array, input: Array, grid: Array, options: Any) -> Array:
    if options[0] == "nearest":
        return np.zeros(grid.shape, grid.dtype)
    result = np.empty(grid.shape, grid.dtype)
    _kernel(kernels.pull, input, options).parallel(
        _tasks(_blocks(input, grid), grad.size), input, grad, grid, result, _sizes(input, grid)
    )
    return result


def suits(dtype: np.dtype[Any], plane: int) -> bool:
    """Whether the kernels serve numbers of this type and planes of this size."""
    return NAMES[dtype] in ("float16", "bfloat16", "float32", "float64") and plane < 2**31
