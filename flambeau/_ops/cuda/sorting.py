"""Sorting along a dim on GPUs, and the first elements in order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core.layout import contiguous_strides
from flambeau._ops.cuda import fills
from flambeau._ops.cuda.kernels import sorting as kernels
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.table import checked, on_gpu
from flambeau._ops.table.dims import wrap_dim
from flambeau._runtime.cuda.launch import kernel
from flambeau._tensor.device_array import DeviceArray

THREADS = 256
LARGEST_BLOCK = 2048
"""Words that a block sorts by itself."""
SORTED = ("float32", "float16", "bfloat16", "int32", "int16", "int8", "uint8")
"""Types whose order 32 bits hold."""
INT64, WORD = np.dtype(np.int64), np.dtype(np.uint64)
MOST = 1 << 31


def _first(data: DeviceArray, dim: int, count: int, down: bool) -> Any:
    """(elements, places): the first `count` in order along a dim."""
    if not data.ndim or not data.size or not count or NAMES[data.dtype] not in SORTED:
        return NotImplemented
    if not data.flags.c_contiguous:
        return NotImplemented
    dim = wrap_dim(dim, data.ndim)
    n, inner = data.shape[dim], math.prod(data.shape[dim + 1 :])
    width = max(64, 1 << (n - 1).bit_length())
    rows = data.size // n
    if not 0 < count <= n or rows * width >= MOST:
        return NotImplemented
    keys = fills.new((rows, width), None, WORD, data)
    T = OF_NUMPY[NAMES[data.dtype]]
    statics = {"N": width, "THREADS": THREADS}
    made = kernel(kernels.words, _form("x"), T=T, DOWN=down, **statics)
    made(_blocks(keys.size), data, keys, keys.size, n, inner)
    _sort(keys, width)
    shape = (*data.shape[:dim], count, *data.shape[dim + 1 :])
    values, places = (fills.new(shape, None, dtype, data) for dtype in (data.dtype, INT64))
    made = kernel(kernels.elements, _form("x", "keys"), T=T, **statics)
    made(_blocks(values.size), data, keys, values, places, values.size, n, count, inner)
    return values, places


def _form(*reads: str) -> Shape:
    return Shape(threads=THREADS, aligned=False, reads=reads)


def _blocks(units: int) -> int:
    return -(-units // THREADS)


def _sort(keys: DeviceArray, width: int) -> None:
    """Every row of words in order."""
    whole = min(width, LARGEST_BLOCK)
    threads = min(whole // 2, THREADS)
    form = Shape(threads=threads, aligned=False, reads=())
    block = kernel(kernels.within_blocks, form, B=whole, N=width, THREADS=threads)
    far = kernel(kernels.step, _form(), N=width, THREADS=THREADS)
    block(keys.size // whole, keys, 2, whole)
    size = 2 * whole
    while size <= width:
        apart = size // 2
        while apart >= whole:
            far(_blocks(keys.size // 2), keys, keys.size // 2, size, apart)
            apart //= 2
        block(keys.size // whole, keys, size, size)
        size *= 2


@on_gpu("sort.stable")
@repeated
@checked
def sort(data: DeviceArray, dim: int, descending: bool, stable: Any = None) -> Any:
    """The elements in order along a dim, and where each was."""
    steps = tuple(step * data.itemsize for step in contiguous_strides(data.shape))
    if not data.ndim or data.strides != steps:  # the result would lie as the operand does
        return NotImplemented
    return _first(data, dim, data.shape[wrap_dim(dim, data.ndim)], descending)


@on_gpu("topk")
@repeated
@checked
def topk(data: DeviceArray, k: Any, dim: int, largest: bool, in_order: bool = True) -> Any:
    """The `k` largest or smallest elements along a dim, in order, and where each was."""
    return NotImplemented if isinstance(k, bool) else _first(data, dim, k, largest)
