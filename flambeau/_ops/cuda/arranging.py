"""Elements joined, padded, turned and repeated on GPUs: copies into parts of new memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.promotion import promote_types
from flambeau._ops.cuda import fills
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.table import on_gpu
from flambeau._ops.launching.memory_formats import is_suggested_last
from flambeau._ops.table.dims import wrap_dim
from flambeau._tensor.device_array import DeviceArray


def _slices(ndim: int, dim: int, part: slice) -> tuple[slice, ...]:
    return tuple(part if d == dim else slice(None) for d in range(ndim))


@on_gpu("cat")
@repeated
def cat(tensors: Any, dim: int = 0) -> Any:
    """Tensors one behind the other along a dim."""
    if not all(isinstance(t, DeviceArray) for t in tensors) or any(map(is_suggested_last, tensors)):
        return NotImplemented
    given = [t for t in tensors if t.shape != (0,)]
    if not given or not all(t.ndim for t in given):
        return NotImplemented
    first = given[0]
    dim = wrap_dim(dim, first.ndim)
    rest = [(*t.shape[:dim], *t.shape[dim + 1 :]) for t in given]
    if any(r != rest[0] or t.ndim != first.ndim for r, t in zip(rest, given, strict=True)):
        return NotImplemented
    element = dt.from_numpy_dtype(tensors[0].dtype)
    for t in tensors[1:]:
        element = promote_types(element, dt.from_numpy_dtype(t.dtype))
    length = sum(t.shape[dim] for t in given)
    shape = (*first.shape[:dim], length, *first.shape[dim + 1 :])
    out = fills.new(shape, None, element.numpy_dtype, first)
    start = 0
    for t in given:
        stop = start + t.shape[dim]
        if t.size and not fills.copy(out[_slices(out.ndim, dim, slice(start, stop))], t):
            return NotImplemented
        start = stop
    return out


@on_gpu("stack")
@repeated
def stack(tensors: Any, dim: int = 0) -> Any:
    """Tensors of one shape along a new dim."""
    if not tensors or not all(isinstance(t, DeviceArray) for t in tensors):
        return NotImplemented
    first = tensors[0]
    if any(t.shape != first.shape or t.dtype != first.dtype for t in tensors):
        return NotImplemented
    dim = wrap_dim(dim, first.ndim + 1)
    shape = (*first.shape[:dim], len(tensors), *first.shape[dim:])
    out = fills.new(shape, None, first.dtype, first)
    for k, t in enumerate(tensors):
        place: Any = tuple(k if d == dim else slice(None) for d in range(out.ndim))
        if t.size and not fills.copy(out[place], t):
            return NotImplemented
    return out


@on_gpu("constant_pad_nd")
@repeated
def pad(data: DeviceArray, sizes: Any, value: Any = 0) -> Any:
    """A number around the elements; negative sizes cut them off."""
    if len(sizes) % 2 or len(sizes) > 2 * data.ndim or not data.flags.c_contiguous:
        return NotImplemented
    pairs = [(0, 0)] * (data.ndim - len(sizes) // 2)
    pairs += [(sizes[k], sizes[k + 1]) for k in range(len(sizes) - 2, -1, -2)]
    shape = tuple(n + a + b for n, (a, b) in zip(data.shape, pairs, strict=True))
    if any(n < 0 for n in shape):
        return NotImplemented
    out = fills.new(shape, None, data.dtype, data)
    inner = tuple(slice(max(a, 0), n - max(b, 0)) for n, (a, b) in zip(shape, pairs, strict=True))
    kept = tuple(
        slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(data.shape, pairs, strict=True)
    )
    target, source = out[inner], data[kept]
    if not out.size:
        return out
    if not fills.fill(out, value):
        return NotImplemented
    return fills.done(not source.size or fills.copy(target, source), out)


@on_gpu("flip")
@repeated
def flip(data: DeviceArray, dims: Any) -> Any:
    """Elements in the opposite order along dims."""
    turned = {wrap_dim(d, data.ndim) for d in dims}
    if len(turned) != len(dims) or not data.flags.c_contiguous:
        return NotImplemented
    source = data[tuple(slice(None, None, -1 if d in turned else 1) for d in range(data.ndim))]
    out = fills.new(data.shape, None, data.dtype, data)
    return fills.done(not data.size or fills.copy(out, source), out)


@on_gpu("roll")
@repeated
def roll(data: DeviceArray, shifts: Any, dims: Any = ()) -> Any:
    """Elements moved round along a dim."""
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(shifts) != 1 or len(dims) > 1 or not data.flags.c_contiguous or not data.size:
        return NotImplemented
    source = data if dims else data.reshape(-1)
    dim = wrap_dim(dims[0], data.ndim) if dims else 0
    size = source.shape[dim]
    shift = shifts[0] % size
    out = fills.new(source.shape, None, data.dtype, data)
    for start, stop, target in ((0, size - shift, shift), (size - shift, size, 0)):
        part = source[_slices(source.ndim, dim, slice(start, stop))]
        place = out[_slices(source.ndim, dim, slice(target, target + stop - start))]
        if part.size and not fills.copy(place, part):
            return NotImplemented
    return out.reshape(data.shape)


@on_gpu("repeat")
@repeated
def repeat(data: DeviceArray, repeats: Any) -> Any:
    """Copies side by side along dims."""
    extra = len(repeats) - data.ndim
    if extra < 0 or any(n < 0 for n in repeats):
        return NotImplemented
    sizes = (1,) * extra + data.shape
    shape = tuple(n * r for n, r in zip(sizes, repeats, strict=True))
    out = fills.new(shape, None, data.dtype, data)
    if not out.size:
        return out
    pairs = [n for both in zip(repeats, sizes, strict=True) for n in both]
    source = data.reshape(tuple(n for size in sizes for n in (1, size)))
    spread: Any = np.broadcast_to(source, tuple(pairs), subok=True)
    return fills.done(fills.copy(out.reshape(tuple(pairs)), spread), out)


def _into_zeros(grad: DeviceArray, shape: Any, place: Any) -> Any:
    """Zeros with a gradient in one part: what views of a part hand back."""
    out = fills.new(tuple(shape), None, grad.dtype, grad)
    if not fills.fill(out, 0):
        return NotImplemented
    target = out[place]
    if target.shape != grad.shape:
        return NotImplemented
    return fills.done(not grad.size or fills.copy(target, grad), out)


@on_gpu("slice_backward")
@repeated
def slice_backward(
    grad: DeviceArray, sizes: Any, dim: int, start: Any, stop: Any, step: int
) -> Any:
    """The gradient of a slice."""
    dim = wrap_dim(dim, len(sizes))
    return _into_zeros(grad, sizes, _slices(len(sizes), dim, slice(start, stop, step)))


@on_gpu("select_backward")
@repeated
def select_backward(grad: DeviceArray, sizes: Any, dim: int, index: int) -> Any:
    """The gradient of a single slice."""
    dim = wrap_dim(dim, len(sizes))
    place: Any = tuple(index if d == dim else slice(None) for d in range(len(sizes)))
    return _into_zeros(grad, sizes, place)


@on_gpu("diagonal_backward")
@repeated
def diagonal_backward(grad: DeviceArray, sizes: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The gradient of a diagonal."""
    out = fills.new(tuple(sizes), None, grad.dtype, grad)
    if not fills.fill(out, 0):
        return NotImplemented
    place: Any = np.diagonal(out, offset, dim1, dim2)
    target = np.ndarray.view(place, out.__class__)
    return fills.done(not grad.size or fills.copy(target, grad), out)


@on_gpu("pixel_shuffle")
@repeated
def pixel_shuffle(data: DeviceArray, factor: int) -> Any:
    """Channels as pixels of a plane that is larger by a factor."""
    if data.ndim < 3 or factor < 1 or data.shape[-3] % (factor * factor) or not data.size:  # noqa: PLR2004
        return NotImplemented
    *batch, channels, height, width = data.shape
    if not data.flags.c_contiguous:
        return NotImplemented
    each, count = channels // (factor * factor), len(batch)
    parts = data.reshape((*batch, each, factor, factor, height, width))
    order = (*range(count), *[count + k for k in (0, 3, 1, 4, 2)])
    turned = parts.transpose(order)
    out = fills.new(turned.shape, None, data.dtype, data)
    shape = (*batch, each, height * factor, width * factor)
    return fills.done(fills.copy(out, turned), out.reshape(shape))
