"""Indexing on GPUs: rows of tables, gather, scatter, indices of tensors, and their gradients.

Places are not checked, as that would stop the device: what lies outside reads as 0 and is not
written to.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.expr import where
from flambeau._compiler.gpu.pointwise_text import divisor
from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import NAMES, OF_NUMPY, f32, f64
from flambeau._core import settings
from flambeau._core.layout import around
from flambeau._ops.cuda import fills
from flambeau._ops.cuda.elementwise import SHORT, loop_of
from flambeau._ops.cuda.fills import RAW
from flambeau._ops.cuda.kernels import indexing as kernels
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.table import checked, on_gpu
from flambeau._ops.table.dims import wrap_dim
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.launch import kernel
from flambeau._tensor.device_array import DeviceArray

THREADS = 256
INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))
LOOKED_AT = 1 << 28
"""Pairs of indices up to which sums of rows are made in order rather than by atomics."""
ATOMIC = ("float32", "float64", "int32", "int64")
COLUMNS = 4
TAKEN = 2
"""Vectors of a thread that copies rows of a table."""


def _raw(data: Any) -> Any:
    """A row-major array of plain integers, as elements are moved."""
    if data.itemsize not in RAW:
        raise NotImplementedError(NAMES[data.dtype])
    return fills.plain(data).view(RAW[data.itemsize])


def _is_index(index: Any) -> bool:
    return isinstance(index, DeviceArray) and index.dtype in INTEGERS


def _blocks(units: int) -> int:
    return -(-units // THREADS)


# ---- rows of tables


def take(data: DeviceArray, dim: int, index: DeviceArray, shape: tuple[int, ...]) -> Any:
    """The slices of a dim at places; a new array of the given shape."""
    outer, size, inner = around(data.shape, dim)
    source, index = _raw(data), fills.plain(index)
    out = fills.new(shape, None, data.dtype, data)
    count = index.size
    if not out.size:
        return out
    vector = 16 // data.itemsize
    while inner % vector or address(source) % 16 or address(out) % 16:
        vector //= 2
        if vector == 1:
            break
    width = inner // vector
    units = outer * count * width
    form = Shape(threads=THREADS, aligned=vector > 1, reads=("x", "index"))
    raw = OF_NUMPY[NAMES[source.dtype]]
    made = kernel(kernels.take_rows, form, T=raw, I=OF_NUMPY[NAMES[index.dtype]], V=vector,
                  U=TAKEN, THREADS=THREADS, BIG=units >= SHORT)  # fmt: skip
    made(_blocks(-(-units // TAKEN)), source, index, out.view(source.dtype), units, size,
         *divisor(width), *divisor(count))  # fmt: skip
    return out


@on_gpu("index_select")
@repeated
@checked
def index_select(data: DeviceArray, dim: int, index: Any) -> Any:
    """The slices at the given places of a dim."""
    if not _is_index(index) or not data.ndim or index.ndim > 1:
        return NotImplemented
    dim = wrap_dim(dim, data.ndim)
    return take(data, dim, index, (*data.shape[:dim], index.size, *data.shape[dim + 1 :]))


@on_gpu("embedding")
@repeated
@checked
def embedding(weight: DeviceArray, index: Any, padding: int = -1, by_freq: bool = False,
              sparse: bool = False) -> Any:  # fmt: skip
    """Rows of a table."""
    if not _is_index(index) or not isinstance(weight, DeviceArray) or weight.ndim != 2:  # noqa: PLR2004
        return NotImplemented
    return take(weight, 0, index, (*index.shape, weight.shape[1]))


@on_gpu("embedding_dense_backward")
@repeated
@checked
def embedding_dense_backward(grad: DeviceArray, index: Any, count: int, padding: int,
                             by_freq: bool) -> Any:  # fmt: skip
    """Sums of the gradients of each row of a table."""
    if by_freq or not _is_index(index) or grad.dtype.kind not in "fV":
        return NotImplemented
    return summed(grad, index, count, padding)


def summed(rows: DeviceArray, index: DeviceArray, count: int, skipped: int = -1) -> Any:
    """[count, D]: at each place the sum of its rows [*, D]."""
    width = rows.shape[-1]
    rows, index = fills.plain(rows), fills.plain(index)
    out = fills.new((count, width), None, rows.dtype, rows)
    if not index.size or not out.size:
        return out if fills.fill(out, 0) else NotImplemented
    settled = settings.are_deterministic_algorithms_enabled()
    if settled or index.size * index.size <= LOOKED_AT:
        if not fills.fill(out, 0):
            return NotImplemented
        return _in_order(out, rows, index, skipped)
    compute = f64 if rows.dtype.itemsize == 8 else f32  # noqa: PLR2004
    wide = np.dtype(np.float64 if compute is f64 else np.float32)
    total = out if out.dtype == wide else fills.new(out.shape, None, wide, rows)
    fills.fill(total, 0)
    _add(total, 0, index, rows, skipped)
    if total is not out:
        fills.copy(out, total)
    return out


def _in_order(out: DeviceArray, rows: DeviceArray, index: DeviceArray, skipped: int) -> Any:
    count, width = out.shape
    compute = f64 if rows.dtype.itemsize == 8 else f32  # noqa: PLR2004
    form = Shape(threads=THREADS, aligned=False, reads=("index", "source"))
    made = kernel(kernels.sum_rows, form, T=OF_NUMPY[NAMES[rows.dtype]],
                  I=OF_NUMPY[NAMES[index.dtype]], A=compute, OUT=OF_NUMPY[NAMES[out.dtype]],
                  C=COLUMNS,
                  THREADS=THREADS)  # fmt: skip
    jobs = index.size * -(-width // (COLUMNS * 32))
    made(-(-jobs // (THREADS // 32)), out, index, rows, count, width, index.size, skipped)
    return out


def _add(total: Any, dim: int, index: Any, rows: Any, skipped: int) -> None:
    """Add slices to those at the given places of a dim, by atomics."""
    outer, size, inner = around(total.shape, dim)
    units = outer * index.size * inner
    form = Shape(threads=THREADS, aligned=False, reads=("index", "source"))
    made = kernel(kernels.add_rows, form, T=OF_NUMPY[NAMES[rows.dtype]],
                  I=OF_NUMPY[NAMES[index.dtype]], A=OF_NUMPY[NAMES[total.dtype]], THREADS=THREADS,
                  BIG=units >= SHORT)  # fmt: skip
    made(_blocks(units), total, index, rows, units, size, *divisor(inner), *divisor(index.size),
         skipped)  # fmt: skip


# ---- elements


def _narrowed(data: DeviceArray, shape: tuple[int, ...], dim: int) -> Any:
    """The part of an array that an index of a shape reaches."""
    return data[tuple(slice(None) if d == dim else slice(0, n) for d, n in enumerate(shape))]


def _reaches(index: Any, data: DeviceArray, dim: int) -> bool:
    if index.ndim != data.ndim:
        return False
    pairs = enumerate(zip(index.shape, data.shape, strict=True))
    return all(n <= m for d, (n, m) in pairs if d != dim)


@on_gpu("gather")
@repeated
@checked
def gather(data: DeviceArray, dim: int, index: Any, sparse: bool = False) -> Any:
    """The element of each place of an index."""
    if not _is_index(index) or not data.ndim:
        return NotImplemented
    dim = wrap_dim(dim, data.ndim)
    if not _reaches(index, data, dim):
        return NotImplemented
    index = fills.plain(index)
    source = _raw(_narrowed(data, index.shape, dim))
    out = fills.new(index.shape, None, data.dtype, data)
    _, count, inner = around(index.shape, dim)
    form = Shape(threads=THREADS, aligned=False, reads=("x", "index"))
    made = kernel(kernels.gather_elements, form, T=OF_NUMPY[NAMES[source.dtype]],
                  I=OF_NUMPY[NAMES[index.dtype]], THREADS=THREADS,
                  BIG=out.size >= SHORT)  # fmt: skip
    if out.size:
        made(_blocks(out.size), source, index, out.view(source.dtype), out.size, data.shape[dim],
             *divisor(inner), *divisor(count))  # fmt: skip
    return out


def _scatter(data: DeviceArray, dim: int, index: Any, source: Any, add: bool) -> Any:
    """A copy with elements of a source at the places of an index."""
    if not _is_index(index) or not data.ndim:
        return NotImplemented
    dim = wrap_dim(dim, data.ndim)
    arrays = isinstance(source, DeviceArray)
    if not _reaches(index, data, dim) or (arrays and source.ndim != index.ndim):
        return NotImplemented
    if arrays and (source.dtype != data.dtype or not _covers(source, index)):
        return NotImplemented
    if any(
        n != m for d, (n, m) in enumerate(zip(index.shape, data.shape, strict=True)) if d != dim
    ):
        return NotImplemented
    halves = add and NAMES[data.dtype] in ("float16", "bfloat16")
    if add and not halves and NAMES[data.dtype] not in ATOMIC:
        return NotImplemented
    if add and settings.are_deterministic_algorithms_enabled():
        return NotImplemented
    wide = np.dtype(np.float32) if halves else data.dtype
    out = fills.new(data.shape, None, wide, data)
    if not fills.copy(out, data):
        return NotImplemented
    index = fills.plain(index)
    if not index.size:
        return _narrow(out, data)
    values, single = _values(source, index, wide, data)
    raw = wide if add else RAW[wide.itemsize]
    _, count, inner = around(index.shape, dim)
    form = Shape(threads=THREADS, aligned=False, reads=("index", "source"))
    made = kernel(kernels.scatter_elements, form, T=OF_NUMPY[raw.name],
                  I=OF_NUMPY[NAMES[index.dtype]], ADD=add, SINGLE=single, THREADS=THREADS,
                  BIG=index.size >= SHORT)  # fmt: skip
    made(_blocks(index.size), out.view(raw), index, values.view(raw), index.size, data.shape[dim],
         *divisor(inner), *divisor(count))  # fmt: skip
    return _narrow(out, data)


def _covers(source: Any, index: Any) -> bool:
    return all(n <= m for n, m in zip(index.shape, source.shape, strict=True))


def _values(source: Any, index: Any, wide: np.dtype[Any], like: DeviceArray) -> tuple[Any, bool]:
    """What is written: an array as large as the index, or a single number in memory."""
    if not isinstance(source, DeviceArray):
        single = fills.new((1,), None, wide, like)
        if not fills.fill(single, source):
            raise NotImplementedError(wide.name)
        return single, True
    values = fills.plain(source[tuple(slice(0, n) for n in index.shape)])
    if values.dtype != wide:
        cast = fills.new(values.shape, None, wide, like)
        fills.copy(cast, values)
        values = cast
    return values, False


def _narrow(out: Any, data: DeviceArray) -> Any:
    if out.dtype == data.dtype:
        return out
    result = fills.new(data.shape, None, data.dtype, data)
    return result if fills.copy(result, out) else NotImplemented


@on_gpu("scatter.src")
@repeated
@checked
def scatter(data: DeviceArray, dim: int, index: Any, source: Any) -> Any:
    """A copy with other elements at places of a dim."""
    return _scatter(data, dim, index, source, False)


@on_gpu("scatter.value")
@repeated
@checked
def scatter_value(data: DeviceArray, dim: int, index: Any, value: Any) -> Any:
    """A copy with a number at places of a dim."""
    return _scatter(data, dim, index, value, False)


@on_gpu("scatter_add")
@repeated
@checked
def scatter_add(data: DeviceArray, dim: int, index: Any, source: Any) -> Any:
    """A copy with elements added at places of a dim."""
    return _scatter(data, dim, index, source, True)


# ---- indices of tensors


def wrapped(place: Any, size: Any) -> Any:
    """A place counted from the start."""
    return where(place < 0, place + size, place)


def joined(above: Any, place: Any, size: Any) -> Any:
    """The place in two dims taken as one."""
    return above * size + where(place < 0, place + size, place)


INT64 = np.dtype(np.int64)


def _as_one(data: DeviceArray, indices: Any) -> Any:
    """(first dim, last dim, places in these dims taken as one); None where indices are masks, or
    stand apart."""
    given = [(d, index) for d, index in enumerate(indices) if index is not None]
    if not given or not all(_is_index(index) for _, index in given):
        return None
    first, last = given[0][0], given[-1][0]
    if last - first + 1 != len(given):
        return None
    shape = np.broadcast_shapes(*[index.shape for _, index in given])
    place = fills.new(shape, None, INT64, data)
    size = data.shape[first]
    if not loop_of(wrapped, INT64).run((given[0][1], size), (place,)):
        return None
    for d, index in given[1:]:
        if not loop_of(joined, INT64).run((place, index, data.shape[d]), (place,)):
            return None
    return first, last, place


@on_gpu("index.Tensor")
@repeated
@checked
def index_tensor(data: DeviceArray, indices: Any) -> Any:
    """Elements or slices at the places of index tensors beside each other."""
    found = _as_one(data, indices)
    if found is None:
        return NotImplemented
    first, last, place = found
    sizes = data.shape[first : last + 1]
    flat = fills.plain(data).reshape(
        (*data.shape[:first], math.prod(sizes), *data.shape[last + 1 :])
    )
    shape = (*data.shape[:first], *place.shape, *data.shape[last + 1 :])
    return take(flat, first, place, shape)


@on_gpu("index_put")
@repeated
@checked
def index_put(data: DeviceArray, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """A copy with values added at places: the gradient of indexing."""
    if not accumulate or not isinstance(values, DeviceArray) or values.dtype != data.dtype:
        return NotImplemented
    halves = NAMES[data.dtype] in ("float16", "bfloat16")
    if not halves and NAMES[data.dtype] not in ATOMIC:
        return NotImplemented
    if settings.are_deterministic_algorithms_enabled():
        return NotImplemented
    found = _as_one(data, indices)
    if found is None:
        return NotImplemented
    first, last, place = found
    wide = np.dtype(np.float32) if halves else data.dtype
    out = fills.new(data.shape, None, wide, data)
    if not fills.copy(out, data):
        return NotImplemented
    shape = (*data.shape[:first], *place.shape, *data.shape[last + 1 :])
    source = values
    if values.shape != shape:
        source = fills.new(shape, None, data.dtype, data)
        fills.copy(source, values)
    flat = out.reshape((*data.shape[:first], -1, *data.shape[last + 1 :]))
    if place.size and out.size:
        _add(flat, first, place, fills.plain(source), -1)
    return _narrow(out, data)


# ---- triangles


def _triangle(data: DeviceArray, diagonal: int, upper: bool) -> Any:
    if data.ndim < 2:  # noqa: PLR2004
        return NotImplemented
    source = _raw(data)
    out = fills.new(data.shape, None, data.dtype, data)
    form = Shape(threads=THREADS, aligned=False, reads=("x",))
    made = kernel(kernels.triangle, form, T=OF_NUMPY[NAMES[source.dtype]], UPPER=upper,
                  THREADS=THREADS, U=4)  # fmt: skip
    if out.size:
        made(-(-out.size // (4 * THREADS)), source, out.view(source.dtype), out.size,
             *data.shape[-2:], diagonal)  # fmt: skip
    return out


@on_gpu("tril")
@repeated
@checked
def tril(data: DeviceArray, diagonal: int = 0) -> Any:
    """What lies on and below a diagonal."""
    return _triangle(data, diagonal, False)


@on_gpu("triu")
@repeated
@checked
def triu(data: DeviceArray, diagonal: int = 0) -> Any:
    """What lies on and above a diagonal."""
    return _triangle(data, diagonal, True)


@on_gpu("_index_backward")
@repeated
@checked
def index_backward(grad: DeviceArray, shape: Any, indices: Any) -> Any:
    """What each element got: the gradient of indexing."""
    zeros = fills.new(shape, None, grad.dtype, grad)
    if not fills.fill(zeros, 0):
        return NotImplemented
    given = [index for index in indices if index is not None]
    if len(given) == 1 and indices[0] is not None and _is_index(given[0]) and zeros.ndim:
        width = math.prod(zeros.shape[1:])
        found = _as_one(zeros, indices)
        if found is None or grad.dtype.kind not in "fV" or not zeros.size:
            return NotImplemented
        rows = fills.plain(grad).reshape(found[2].size, width)
        return summed(rows, found[2], zeros.shape[0]).reshape(zeros.shape)
    return index_put(zeros, indices, grad, True)


@on_gpu("index_add")
@repeated
@checked
def index_add(data: DeviceArray, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    """A copy with slices of a source added at places of a dim."""
    if alpha != 1 or not _is_index(index) or not isinstance(source, DeviceArray) or not data.ndim:
        return NotImplemented
    dim = wrap_dim(dim, data.ndim)
    wanted = (*data.shape[:dim], index.size, *data.shape[dim + 1 :])
    if index.ndim != 1 or source.shape != wanted or source.dtype != data.dtype:
        return NotImplemented
    places = [None] * dim + [index]
    return index_put(data, places, source, True)
