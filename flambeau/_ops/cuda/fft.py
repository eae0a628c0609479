"""Fourier transforms on GPUs through cuFFT; without it the host computes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.types import NAMES
from flambeau._ops.cuda.table import on_gpu
from flambeau._ops.table.namespace import ops
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.libraries.cufft import RANK, transform
from flambeau._runtime.cuda.libraries.finding import MissingLibrary
from flambeau._runtime.cuda.libraries.matrices import contiguous
from flambeau._runtime.cuda.memory import Current
from flambeau._tensor import device_array
from flambeau._tensor.tensor import wrap

COMPLEX: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.complex64),
    "float64": np.dtype(np.complex128),
}
REAL: dict[str, np.dtype[Any]] = {
    "complex64": np.dtype(np.float32),
    "complex128": np.dtype(np.float64),
}


def _order(data: Any, dims: tuple[int, ...]) -> list[int]:
    """The dims with those transformed innermost."""
    return [*(dim for dim in range(data.ndim) if dim not in dims), *dims]


def _run(data: Any, dims: tuple[int, ...], last: int, dtype: np.dtype[Any],
         forward: bool) -> Any:  # fmt: skip
    """One pass over up to three dims; `last` is the size of the last one in the result, and the
    greater one of the last dim's two sizes is that of the real side."""
    order = _order(data, dims)
    given = device_array.contiguous(data.transpose(order))
    sizes = [data.shape[dim] for dim in dims]
    batch = given.size // max(math.prod(sizes), 1)
    real = last if dtype.kind == "f" else sizes[-1]
    shape = (*given.shape[:-1], last)
    result = device_array.empty(shape, contiguous(shape).strides, dtype, Current.device)
    plan = transform(Current.device, NAMES[data.dtype], dtype.name, (*sizes[:-1], real), batch)
    plan.run(address(given), address(result), forward)
    return result, np.argsort(order)


def _scaled(result: Any, normalization: int, count: int) -> Any:
    """By nothing, the root of the size, or the size."""
    if not normalization:
        return result
    factor = 1 / math.sqrt(count) if normalization == 1 else 1 / count
    if result.dtype.kind == "f":
        return ops.mul(wrap(result), factor)._data
    numbers = np.ndarray.view(result, REAL[NAMES[result.dtype]])
    return np.ndarray.view(ops.mul(wrap(numbers), factor)._data, result.dtype)


def _all(data: Any, dims: tuple[int, ...], forward: bool) -> Any:
    """Complex transforms over any dims, three at a time, the last of them scaled by none."""
    for start in range(0, len(dims), RANK):
        part = dims[start : start + RANK]
        result, back = _run(data, part, data.shape[part[-1]], data.dtype, forward)
        data = result.transpose(back)
    return data


def _done(data: Any, normalization: int, count: int) -> Any:
    """The result, scaled, in the strides that it has."""
    order = sorted(range(data.ndim), key=lambda dim: -data.strides[dim])
    flat = data.transpose(order)
    if not flat.flags.c_contiguous:
        flat = device_array.contiguous(flat)
    return _scaled(flat, normalization, count).transpose(np.argsort(order))


@on_gpu("_fft_c2c")
def c2c(data: Any, dim: Any, normalization: int, forward: bool) -> Any:
    """Complex to complex over some dims."""
    dims = tuple(dim)
    if not dims or not data.size or NAMES[data.dtype] not in REAL or len(set(dims)) < len(dims):
        return NotImplemented
    count = math.prod([data.shape[d] for d in dims])
    try:
        return _done(_all(data, dims, forward), normalization, count)
    except MissingLibrary:
        return NotImplemented


@on_gpu("_fft_r2c")
def r2c(data: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    """Real to complex over some dims; `onesided` keeps size // 2 + 1 values of the last one."""
    dims = tuple(dim)
    if not dims or not data.size or NAMES[data.dtype] not in COMPLEX or len(set(dims)) < len(dims):
        return NotImplemented
    kind = COMPLEX[NAMES[data.dtype]]
    if not onesided:
        wide = ops.complex(wrap(data), ops.zeros_like(wrap(data)))._data
        return c2c(wide, dims, normalization, True)
    count = math.prod([data.shape[d] for d in dims])
    last = dims[-RANK:]
    try:
        result, back = _run(data, last, data.shape[dims[-1]] // 2 + 1, kind, True)
        return _done(_all(result.transpose(back), dims[:-RANK], True), normalization, count)
    except MissingLibrary:
        return NotImplemented


@on_gpu("_fft_c2r")
def c2r(data: Any, dim: Any, normalization: int, last_dim_size: int) -> Any:
    """The inverse of a half spectrum: real, with `last_dim_size` values along the last dim."""
    dims = tuple(dim)
    if not dims or not data.size or NAMES[data.dtype] not in REAL or len(set(dims)) < len(dims):
        return NotImplemented
    if data.shape[dims[-1]] != last_dim_size // 2 + 1:
        return NotImplemented
    count = math.prod([data.shape[d] for d in dims[:-1]]) * last_dim_size
    try:
        data = _all(data, dims[:-RANK], False)
        result, back = _run(data, dims[-RANK:], last_dim_size, REAL[NAMES[data.dtype]], False)
        return _done(result.transpose(back), normalization, count)
    except MissingLibrary:
        return NotImplemented
