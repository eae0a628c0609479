"""Masks on GPUs: which elements are not zero, selections and writes by masks and indices. How many
elements there are is asked of the device, which the host waits for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.gpu.pointwise_text import divisor
from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core import settings
from flambeau._core.layout import around
from flambeau._ops.cuda import fills, indexing
from flambeau._ops.cuda.elementwise import SHORT
from flambeau._ops.cuda.fills import RAW
from flambeau._ops.cuda.indexing import _as_one, take
from flambeau._ops.cuda.kernels import masks as kernels
from flambeau._ops.cuda.scans import _scan
from flambeau._ops.cuda.table import checked, on_gpu, writing_on_gpu
from flambeau._runtime.cuda.launch import kernel
from flambeau._tensor.device_array import DeviceArray, block_of, to_host

THREADS = 256
BOOL, INT64 = np.dtype(bool), np.dtype(np.int64)


def _blocks(units: int) -> int:
    return -(-units // THREADS)


def places_of(mask: DeviceArray) -> Any:
    """The places of a mask's elements that are true, in row-major order; None if there is none."""
    if not mask.size:
        return None
    flat = fills.plain(mask).reshape(-1)
    counts = _scan(flat, 0, None, False)
    if counts is NotImplemented:
        raise NotImplementedError(NAMES[mask.dtype])
    total = int(to_host(counts[-1:])[0])
    if not total:
        return None
    found = fills.new((total,), None, INT64, mask)
    form = Shape(threads=THREADS, aligned=False, reads=("mask", "counts"))
    made = kernel(kernels.places, form, T=OF_NUMPY[NAMES[flat.dtype]], THREADS=THREADS)
    made(_blocks(flat.size), flat, counts, found, flat.size)
    return found


@on_gpu("_nonzero")
@checked
def nonzero(data: DeviceArray) -> Any:
    """One row per element that is not zero: its place in each dim."""
    if data.dtype != BOOL or not data.ndim:
        return NotImplemented
    flat = places_of(data)
    if flat is None:
        return NotImplemented
    columns = fills.new((data.ndim, flat.size), None, INT64, data)
    form = Shape(threads=THREADS, aligned=False, reads=("flat",))
    made = kernel(kernels.column, form, THREADS=THREADS)
    for dim, size in enumerate(data.shape):
        apart = math.prod(data.shape[dim + 1 :])
        made(_blocks(flat.size), flat, columns[dim], flat.size, apart, size)
    return columns.T


def _mask(data: DeviceArray, indices: Any) -> Any:
    """(first dim, mask) where the only index is a mask over dims of the array; else None."""
    given = [(d, index) for d, index in enumerate(indices) if index is not None]
    if len(given) != 1 or not isinstance(given[0][1], DeviceArray):
        return None
    dim, mask = given[0]
    fits = mask.dtype == BOOL and mask.ndim and mask.shape == data.shape[dim : dim + mask.ndim]
    return (dim, mask) if fits else None


def _as_rows(data: DeviceArray, dim: int, many: int) -> DeviceArray:
    """A row-major array with several dims taken as one."""
    shape = (*data.shape[:dim], math.prod(data.shape[dim : dim + many]), *data.shape[dim + many :])
    return data.reshape(shape)


@on_gpu("masked_select")
@checked
def masked_select(data: DeviceArray, mask: Any) -> Any:
    """The elements where a mask of the same shape is true."""
    found = _mask(data, [mask])
    if found is None or mask.shape != data.shape:
        return NotImplemented
    return _selected(data, *found)


def _selected(data: DeviceArray, dim: int, mask: DeviceArray) -> Any:
    place = places_of(mask)
    if place is None:
        return NotImplemented
    flat = _as_rows(fills.plain(data), dim, mask.ndim)
    return take(flat, dim, place, (*flat.shape[:dim], place.size, *flat.shape[dim + 1 :]))


@on_gpu("index.Tensor")
@checked
def index(data: DeviceArray, indices: Any) -> Any:
    """Elements or slices where a mask is true, or at places."""
    found = _mask(data, indices)
    return indexing.index_tensor(data, indices) if found is None else _selected(data, *found)


@on_gpu("_index_backward")
@checked
def index_backward(grad: DeviceArray, shape: Any, indices: Any) -> Any:
    """What each element got: the gradient of indexing."""
    masks = [index for index in indices if getattr(index, "dtype", None) == BOOL]
    if not masks:
        return indexing.index_backward(grad, shape, indices)
    zeros = fills.new(shape, None, grad.dtype, grad)
    found = _mask(zeros, indices)
    place = None if found is None else places_of(found[1])
    if found is None or place is None or not fills.fill(zeros, 0):
        return NotImplemented
    dim, many = found[0], found[1].ndim
    wanted = (*zeros.shape[:dim], place.size, *zeros.shape[dim + many :])
    done = _put(_as_rows(zeros, dim, many), dim, place, fills.plain(grad), wanted)
    return done if done is NotImplemented else zeros


@writing_on_gpu("index_put")
@checked
def index_put(data: DeviceArray, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write numbers where a mask is true, or at places."""
    if accumulate or not data.flags.c_contiguous or settings.are_deterministic_algorithms_enabled():
        return NotImplemented
    if values.dtype != data.dtype or not data.size:
        return NotImplemented
    if isinstance(values, DeviceArray) and block_of(values) is block_of(data):
        return NotImplemented
    found = _mask(data, indices)
    if found is not None:
        dim, mask = found
        if mask.shape == data.shape and values.size == 1:
            value = values.reshape(()) if isinstance(values, DeviceArray) else values.item()
            return fills.masked_fill_(data, mask, value)
        place, many, shape = places_of(mask), mask.ndim, None
        if place is None:
            return NotImplemented
    else:
        places = _as_one(data, indices)
        if places is None:
            return NotImplemented
        dim, many, place = places[0], places[1] - places[0] + 1, places[2]
        shape = place.shape
    wanted = (*data.shape[:dim], *(shape or (place.size,)), *data.shape[dim + many :])
    return _put(_as_rows(data, dim, many), dim, place, values, wanted)


def _put(data: DeviceArray, dim: int, place: DeviceArray, values: DeviceArray,
         wanted: tuple[int, ...]) -> Any:  # fmt: skip
    """Write slices to places of a dim."""
    single = values.size == 1
    source = fills.new((1,) if single else wanted, None, data.dtype, data)
    written = (
        fills.copy(source, values.reshape(-1) if single else values)
        if isinstance(values, DeviceArray)
        else fills.fill(source, values.item())
    )
    if not written:
        return NotImplemented
    outer, size, inner = around(data.shape, dim)
    units = outer * place.size * inner
    raw = RAW[data.itemsize]
    form = Shape(threads=THREADS, aligned=False, reads=("index", "source"))
    made = kernel(kernels.put_rows, form, T=OF_NUMPY[raw.name], I=OF_NUMPY[NAMES[place.dtype]],
                  SINGLE=single, THREADS=THREADS, BIG=units >= SHORT)  # fmt: skip
    if units:
        made(_blocks(units), data.view(raw), place, source.view(raw), units, size,
             *divisor(inner), *divisor(place.size))  # fmt: skip
    return data
