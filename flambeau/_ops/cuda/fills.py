"""Copies, casts, fills and choices on GPUs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.expr import Expr
from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core.layout import contiguous_strides
from flambeau._ops.copying.copies import format_strides
from flambeau._ops.cuda.elementwise import Fusion
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.table import on_gpu, writing_on_gpu
from flambeau._ops.cuda.transposing import transposed
from flambeau._ops.indexing.writes import checked_number
from flambeau._ops.table import pointwise as kind
from flambeau._ops.table.scalars import filling
from flambeau._runtime import cpu
from flambeau._tensor.device_array import DeviceArray, empty

RAW = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
"""Types that elements are moved in where they stay as they are."""
BYTE = np.dtype(np.uint8)


@cache
def _loop(title: str, compute: np.dtype[Any]) -> Fusion:
    x, y, c = (E.parameter(name) for name in ("x", "y", "condition"))
    bodies: dict[str, tuple[Any, list[str]]] = {
        "copy": (x, ["x"]), "choose": (Expr("where", c, x, y), ["condition", "x", "y"]),
    }  # fmt: skip
    expression, names = bodies[title]
    return Fusion(title, [expression], names, compute)


def copy(target: DeviceArray, source: DeviceArray) -> bool:
    """Write values, broadcast and converted; whether there is a kernel for that."""
    if target.dtype == source.dtype:
        return _move(target, source)
    if NAMES[target.dtype] not in OF_NUMPY or NAMES[source.dtype] not in OF_NUMPY:
        return False
    if source.dtype.kind == "b":
        source = source.view(BYTE)
    return _loop("copy", source.dtype).run((source,), (target,))


def _move(target: DeviceArray, source: DeviceArray) -> bool:
    if target.itemsize not in RAW:
        if not target.flags.c_contiguous or not source.flags.c_contiguous:
            return False
        if target.shape != source.shape:
            return False
        target, source = (a.reshape(-1).view(RAW[8]) for a in (target, source))
    raw = RAW[target.itemsize]
    target, source = target.view(raw), source.view(raw)
    return transposed(target, source) or _loop("copy", raw).run((source,), (target,))


def bits_of(value: Any, dtype: np.dtype[Any]) -> int:
    """A number's bits in a type, as an integer of 64 bits at most."""
    array = np.ascontiguousarray(filling(value, dtype)).reshape(1)
    return int(array.view(RAW[dtype.itemsize])[0])


def fill(target: DeviceArray, value: Any) -> bool:
    """Write one number everywhere; it has to fit into the type."""
    if target.itemsize not in RAW:
        filling(value, target.dtype)
        return False
    raw = RAW[target.itemsize]
    return _loop("copy", raw).run((bits_of(value, target.dtype),), (target.view(raw),))


def choose(target: DeviceArray, condition: DeviceArray, x: Any, y: Any) -> bool:
    """Write elements of `x` where a condition holds, else of `y`: arrays of the target's type, or
    numbers as bits."""
    if target.itemsize not in RAW or condition.dtype.kind != "b":
        return False
    raw = RAW[target.itemsize]
    x, y = (value.view(raw) if isinstance(value, np.ndarray) else value for value in (x, y))
    return _loop("choose", raw).run((condition, x, y), (target.view(raw),))


def new(shape: Any, strides: Any, dtype: Any, like: DeviceArray) -> Any:
    """New memory on the device of another array; strides None: row-major."""
    wanted = contiguous_strides(tuple(shape)) if strides is None else strides
    return empty(shape, wanted, dtype, like.place.index or 0)


def new_like(data: DeviceArray, dtype: Any = None) -> Any:
    """New memory that keeps the layout of dense arrays."""
    return new(data.shape, cpu.preserved_strides(data), dtype or data.dtype, data)


def plain(data: DeviceArray) -> Any:
    """An array in row-major memory: itself if it is. Raises NotImplementedError."""
    if data.flags.c_contiguous:
        return data
    result = new(data.shape, None, data.dtype, data)
    if not copy(result, data):
        raise NotImplementedError(NAMES[data.dtype])
    return result


def done(written: bool, result: Any) -> Any:
    """A result, if a kernel wrote it."""
    return result if written else NotImplemented


# ---- rows


@on_gpu("clone")
@repeated
def clone(data: DeviceArray, memory_format: Any = None) -> Any:
    """A copy in new memory."""
    return to_copy(data, None, memory_format)


@on_gpu("_to_copy")
@repeated
def to_copy(data: DeviceArray, dtype: Any = None, memory_format: Any = None) -> Any:
    """A copy in another type or memory format."""
    wanted = data.dtype if dtype is None else dtype.numpy_dtype
    if memory_format is None or str(memory_format) == "torch.preserve_format":
        strides = cpu.preserved_strides(data)
    else:
        strides = format_strides(data.shape, memory_format)
    if data.dtype.kind == "c" and wanted.kind != "c":
        return NotImplemented
    result = new(data.shape, strides, wanted, data)
    return done(copy(result, data), result)


@writing_on_gpu("copy_")
@repeated
def copy_(target: DeviceArray, source: Any) -> Any:
    """Overwrite with the values of another array."""
    return done(isinstance(source, DeviceArray) and copy(target, source), target)


@on_gpu("fill.Scalar")
@repeated
def filled(data: DeviceArray, value: Any) -> Any:
    """Every element a number, in new memory."""
    result = new_like(data)
    return done(fill(result, value), result)


@writing_on_gpu("fill.Scalar")
@repeated
def fill_(data: DeviceArray, value: Any) -> Any:
    """Every element a number."""
    return done(fill(data, value), data)


@writing_on_gpu("fill.Tensor")
@repeated
def fill_by_tensor_(data: DeviceArray, value: Any) -> Any:
    """Every element the number of a 0-dim tensor."""
    if value.ndim:
        return NotImplemented
    if isinstance(value, np.generic):
        return done(fill(data, value.item()), data)
    return done(copy(data, value), data)


@on_gpu("zero")
@repeated
def zero(data: DeviceArray) -> Any:
    """Every element 0, in new memory."""
    return filled(data, 0)


@writing_on_gpu("zero")
@repeated
def zero_(data: DeviceArray) -> Any:
    """Every element 0."""
    return done(fill(data, 0), data)


@on_gpu("_where")
@repeated
def where(condition: Any, x: Any, y: Any) -> Any:
    """Elements of one or the other, of one type."""
    arrays: list[Any] = [a for a in (condition, x, y) if isinstance(a, DeviceArray)]
    if not isinstance(condition, DeviceArray):
        return NotImplemented
    shape = kind.broadcast_shape([a.shape for a in (condition, x, y)])
    strides = kind.result_strides(arrays, shape, len(arrays) < len((condition, x, y)))
    dtype = x.dtype
    x, y = (v if isinstance(v, DeviceArray) else bits_of(v.item(), v.dtype) for v in (x, y))
    result = new(shape, strides if len(shape) > 1 else None, dtype, condition)
    return done(choose(result, condition, x, y), result)


@on_gpu("masked_fill.Scalar", "masked_fill.Tensor")
@repeated
def masked_filled(data: DeviceArray, mask: Any, value: Any) -> Any:
    """A copy with a number where a mask holds."""
    if not isinstance(mask, DeviceArray) or mask.dtype.kind != "b":
        return NotImplemented
    shape = kind.broadcast_shape([data.shape, mask.shape])
    strides = cpu.preserved_strides(data) if shape == data.shape else None
    result = new(shape, strides, data.dtype, data)
    return done(_fill_where(result, mask, value, data), result)


@writing_on_gpu("masked_fill.Scalar", "masked_fill.Tensor")
@repeated
def masked_fill_(data: DeviceArray, mask: Any, value: Any) -> Any:
    """A number where a mask holds."""
    if not isinstance(mask, DeviceArray) or mask.dtype.kind != "b":
        return NotImplemented
    if kind.broadcast_shape([data.shape, mask.shape]) != data.shape:
        return NotImplemented
    return done(_fill_where(data, mask, value, data), data)


def _fill_where(target: DeviceArray, mask: DeviceArray, value: Any, data: DeviceArray) -> bool:
    """Write a number, or the value of a 0-dim array, where a mask holds, else `data`."""
    if isinstance(value, DeviceArray):
        if value.ndim:
            return False
        if value.dtype != data.dtype:
            cast = new((), None, data.dtype, data)
            if not copy(cast, value):
                return False
            value = cast
    else:
        if data.itemsize not in RAW:
            return False
        number = value.item() if isinstance(value, np.generic) else value
        value = bits_of(checked_number(number, data.dtype), data.dtype)
    return choose(target, mask, value, data)
