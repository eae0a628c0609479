"""Pools of planes on GPUs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import NAMES, OF_NUMPY, f32, f64
from flambeau._core.layout import channels_last_strides
from flambeau._ops.cuda import fills, indexing
from flambeau._ops.cuda.kernels import pooling as kernels
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.softmaxes import _floats
from flambeau._ops.cuda.table import checked, on_gpu
from flambeau._ops.launching.memory_formats import is_suggested_last
from flambeau._ops.pooling import windows
from flambeau._runtime.cuda.launch import kernel
from flambeau._tensor.device_array import DeviceArray

THREADS = 256
MOST_TAPS = 81
"""Places of a window that are written out in a kernel."""


def _planes(data: Any) -> Any:
    """[N, C, H, W], of which samples may lack."""
    return data if data.ndim == 4 else data[None]  # noqa: PLR2004


def _fits(data: Any, kernel_: Any) -> bool:
    return isinstance(data, DeviceArray) and data.ndim in (3, 4) and data.size > 0 and _floats(
        data.dtype) and math.prod(kernel_) <= MOST_TAPS  # fmt: skip


def _steps(data: Any) -> tuple[int, ...]:
    return tuple(step // data.itemsize for step in data.strides)


def _result(like: Any, shape: tuple[int, ...], last: bool, dtype: Any = None) -> Any:
    strides = channels_last_strides(shape) if last and len(shape) == 4 else None  # noqa: PLR2004
    return fills.new(shape, strides, dtype or like.dtype, like)


def _launch(native: Any, arrays: tuple[Any, ...], out: Any, sizes: tuple[int, ...],
            steps: tuple[int, ...], last: bool, **statics: Any) -> None:  # fmt: skip
    type = OF_NUMPY[NAMES[out.dtype]]
    compute = f64 if type.size == f64.size else f32
    form = Shape(threads=THREADS, aligned=False)
    made = kernel(native, form, T=type, A=compute, LAST=last, THREADS=THREADS, **statics)
    made(-(-out.size // THREADS), *arrays, out.size, *sizes, *steps)


def _max(data: DeviceArray, spatial: Any, places: bool) -> Any:
    size, step, pad, dilation, output = spatial
    if not _fits(data, size):
        return NotImplemented
    last = is_suggested_last(data)
    shape = (*data.shape[:-2], *output)
    out = _result(data, shape, last)
    found = _result(data, shape, last, np.dtype(np.int64)) if places else None
    given = _planes(data)
    sizes = (*given.shape[1:], *output)
    native = kernels.max_pool_places if places else kernels.max_pool
    arrays = (given, out, found) if places else (given, out)
    if out.size:
        _launch(native, arrays, out, sizes, _steps(given), last and data.ndim == 4,  # noqa: PLR2004
                LOW=-math.inf, KERNEL=size, STEP=step, PAD=pad, DILATION=dilation)  # fmt: skip
    return (out, found) if places else out


@on_gpu("max_pool2d")
@repeated
@checked
def max_pool2d(data: DeviceArray, size: Any, stride: Any = None, padding: Any = 0,
               dilation: Any = 1, ceil_mode: bool = False) -> Any:  # fmt: skip
    """The largest value of every window."""
    numbers = windows._max_numbers(
        data, "max_pool2d", 2, size, stride, padding, dilation, ceil_mode
    )
    return _max(data, numbers, False)


@on_gpu("max_pool2d_with_indices")
@repeated
@checked
def max_pool2d_with_indices(data: DeviceArray, size: Any, stride: Any = None, padding: Any = 0,
                            dilation: Any = 1, ceil_mode: bool = False) -> Any:  # fmt: skip
    """The same, and the position of each in its plane."""
    numbers = windows._max_numbers(
        data, "max_pool2d", 2, size, stride, padding, dilation, ceil_mode
    )
    return _max(data, numbers, True)


@on_gpu("_max_pool2d_backward")
@repeated
@checked
def max_pool2d_backward(grad: Any, data: DeviceArray, output: Any, size: Any, stride: Any = None,
                        padding: Any = 0, dilation: Any = 1,
                        ceil_mode: bool = False) -> Any:  # fmt: skip
    """Gradients where each window's largest element lies."""
    numbers = windows._max_numbers(
        data, "max_pool2d", 2, size, stride, padding, dilation, ceil_mode
    )
    if not isinstance(grad, DeviceArray) or grad.dtype != data.dtype:
        return NotImplemented
    found = _max(data, numbers, True)
    if found is NotImplemented:
        return found
    size, step, pad, dilated, rows = numbers
    last = is_suggested_last(data)
    out = _result(data, data.shape, last)
    places, given = _planes(found[1]), _planes(grad)
    sizes = (*_planes(data).shape[1:], *rows)
    _launch(kernels.max_pool_backward, (places, given, out), out, sizes,
            (*_steps(places), *_steps(given)), last and data.ndim == 4, KERNEL=size, STEP=step,  # noqa: PLR2004
            PAD=pad, DILATION=dilated)  # fmt: skip
    return out


@on_gpu("avg_pool2d")
@repeated
@checked
def avg_pool2d(data: DeviceArray, size: Any, stride: Any = None, padding: Any = 0,
               ceil_mode: bool = False, counted: bool = True,
               divisor: Any = None) -> Any:  # fmt: skip
    """The mean of every window, or its sum over a divisor."""
    size, step, pad, output = windows._avg_windows(
        "avg_pool2d", 2, data.shape, size, stride, padding, ceil_mode, divisor
    )
    if not _fits(data, size):
        return NotImplemented
    last = is_suggested_last(data)
    out = _result(data, (*data.shape[:-2], *output), last)
    given = _planes(data)
    _launch(kernels.avg_pool, (given, out), out, (*given.shape[1:], *output), _steps(given),
            last and data.ndim == 4, KERNEL=size, STEP=step, PAD=pad, COUNTED=counted,  # noqa: PLR2004
            DIVISOR=divisor or 0)  # fmt: skip
    return out


@on_gpu("_avg_pool2d_backward")
@repeated
@checked
def avg_pool2d_backward(grad: DeviceArray, plane: Any, size: Any, stride: Any = None,
                        padding: Any = 0, ceil_mode: bool = False, counted: bool = True,
                        divisor: Any = None) -> Any:  # fmt: skip
    """Gradients spread evenly over their windows."""
    size, step, pad, _ = windows._numbers("avg_pool2d", 2, size, stride, padding)
    if not _fits(grad, size):
        return NotImplemented
    last = is_suggested_last(grad)
    out = _result(grad, (*grad.shape[:-2], *plane), last)
    given = _planes(grad)
    sizes = (given.shape[1], *plane, *given.shape[2:])
    _launch(kernels.avg_pool_backward, (given, out), out, sizes, _steps(given),
            last and grad.ndim == 4, KERNEL=size, STEP=step, PAD=pad, COUNTED=counted,  # noqa: PLR2004
            DIVISOR=divisor or 0)  # fmt: skip
    return out


@on_gpu("_scatter_planes")
@repeated
@checked
def scatter_planes(grad: DeviceArray, places: Any, plane: Any, apart: bool) -> Any:
    """Zeros with gradients at flat positions within each plane (the last dims)."""
    rank = len(plane)
    if not _floats(grad.dtype) or not isinstance(places, DeviceArray) or not grad.size:
        return NotImplemented
    shape = (*grad.shape[:-rank], *plane)
    count = math.prod(grad.shape[:-rank])
    zeros = fills.new((count, math.prod(plane)), None, grad.dtype, grad)
    if not fills.fill(zeros, 0):
        return NotImplemented
    given, index = (fills.plain(a).reshape(count, -1) for a in (grad, places))
    found = indexing._scatter(zeros, 1, index, given, not apart)
    return found if found is NotImplemented else found.reshape(shape)


@on_gpu("_gather_planes")
@repeated
@checked
def gather_planes(data: DeviceArray, places: Any, rank: int) -> Any:
    """The elements at flat positions within each plane."""
    if not isinstance(places, DeviceArray) or not data.size:
        return NotImplemented
    count = math.prod(data.shape[:-rank])
    given, index = (fills.plain(a).reshape(count, -1) for a in (data, places))
    found = indexing.gather(given, 1, index)
    return found if found is NotImplemented else found.reshape(places.shape)
