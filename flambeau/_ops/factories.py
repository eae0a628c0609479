"""New tensors: filled, spaced, and shaped like others."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import check_available
from flambeau._ops.copying import format_strides
from flambeau._ops.dispatch import size_list
from flambeau._ops.namespace import ops
from flambeau._ops.op import composite
from flambeau._ops.pointwise import number_array
from flambeau._core import layout as lay
from flambeau._runtime import cpu
from flambeau._tensor.tensor import Tensor, wrap


def shape_of(size: Any, name: str = "zeros") -> tuple[int, ...]:
    """Sizes given loose or as one sequence, checked."""
    sizes = size_list(size)
    shape = tuple([int(n) for n in sizes])
    for n in shape:
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(shape)}"
            )
    return shape


def options(dtype: Any, layout: Any, device: Any) -> Any:
    """The NumPy dtype of a factory call, after a check of the other options."""
    check_available(device)
    if layout is not None and layout is not lay.strided:
        raise NotImplementedError(f"layout {layout} is not implemented in flambeau 0.1")
    return dt.Defaults.numpy_dtype if dtype is None else dtype.numpy_dtype


def finish(data: np.ndarray, requires_grad: bool, out: Tensor | None = None) -> Tensor:
    """The tensor over new memory, or `out` filled with it."""
    result = wrap(data)
    if out is not None:
        from flambeau._ops.op import REGISTRY
        from flambeau._ops.outputs import write_out

        return write_out(REGISTRY["zeros_like"], out, result)  # type: ignore[no-any-return]
    if requires_grad:
        result.requires_grad = True
    return result


OPTIONS = ("*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool pin_memory=False, bool requires_grad=False")  # fmt: skip


@composite(f"zeros(int[] size, {OPTIONS}) -> Tensor", method=False)
def zeros(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          pin_memory: bool = False, requires_grad: bool = False, names: Any = None) -> Tensor:
    """A tensor of zeros."""
    data = np.zeros(shape_of(size), options(dtype, layout, device))
    return finish(data, requires_grad, out)


@composite(f"ones(int[] size, {OPTIONS}) -> Tensor", method=False)
def ones(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         pin_memory: bool = False, requires_grad: bool = False, names: Any = None) -> Tensor:
    """A tensor of ones."""
    data = np.ones(shape_of(size), options(dtype, layout, device))
    return finish(data, requires_grad, out)


@composite(f"empty(int[] size, {OPTIONS}) -> Tensor", method=False)
def empty(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None,
          names: Any = None) -> Tensor:
    """A tensor with whatever was in its memory."""
    shape = shape_of(size)
    numpy_dtype = options(dtype, layout, device)
    strides = None if memory_format is None else format_strides(shape, memory_format)
    if strides is None:
        return finish(np.empty(shape, numpy_dtype), requires_grad, out)
    return finish(cpu.empty_strided(shape, strides, numpy_dtype), requires_grad, out)


@composite(f"full(int[] size, Scalar fill_value, {OPTIONS}) -> Tensor", method=False)
def full(size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None,
         device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
         names: Any = None) -> Tensor:
    """A tensor filled with a number; without `dtype`, the number's own type."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()  # type: ignore[attr-defined]
    if dtype is None:
        from flambeau._core.promotion import dtype_of_number

        dtype = dtype_of_number(fill_value)
    numpy_dtype = options(dtype, layout, device)
    data = np.full(shape_of((size,)), number_array(fill_value, numpy_dtype), numpy_dtype)
    return finish(data, requires_grad, out)


def _like(tensor: Tensor, dtype: Any, layout: Any, device: Any, memory_format: Any) -> np.ndarray:
    """New memory with the shape (and, unless told otherwise, the dense strides) of a tensor."""
    numpy_dtype = options(tensor.dtype if dtype is None else dtype, layout, device)
    data = tensor._data
    if memory_format is None or memory_format is lay.preserve_format:
        strides = cpu.preserved_strides(data)
    else:
        strides = format_strides(data.shape, memory_format)
    if strides is None:
        return np.empty(data.shape, numpy_dtype)
    return cpu.empty_strided(data.shape, strides, numpy_dtype)


_LIKE = f"{OPTIONS}, MemoryFormat? memory_format=None"


@composite(f"empty_like(Tensor self, {_LIKE}) -> Tensor", method=False)
def empty_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               pin_memory: bool = False, requires_grad: bool = False,
               memory_format: Any = None) -> Tensor:
    """An uninitialised tensor shaped like another."""
    return finish(_like(input, dtype, layout, device, memory_format), requires_grad)


@composite(f"zeros_like(Tensor self, {_LIKE}) -> Tensor", method=False)
def zeros_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               pin_memory: bool = False, requires_grad: bool = False,
               memory_format: Any = None) -> Tensor:
    """Zeros shaped like another tensor."""
    data = _like(input, dtype, layout, device, memory_format)
    data[...] = 0
    return finish(data, requires_grad)


@composite(f"ones_like(Tensor self, {_LIKE}) -> Tensor", method=False)
def ones_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
              pin_memory: bool = False, requires_grad: bool = False,
              memory_format: Any = None) -> Tensor:
    """Ones shaped like another tensor."""
    data = _like(input, dtype, layout, device, memory_format)
    data[...] = 1
    return finish(data, requires_grad)


@composite(f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor", method=False)
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None,
              device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
              memory_format: Any = None) -> Tensor:
    """A number repeated in the shape of another tensor."""
    data = _like(input, dtype, layout, device, memory_format)
    data[...] = number_array(fill_value, data.dtype)
    return finish(data, requires_grad)


@composite(f"new_zeros(Tensor self, int[] size, {OPTIONS}) -> Tensor", function=False)
def new_zeros(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, layout: Any = None,
              pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Zeros of a shape, with the type of this tensor."""
    numpy_dtype = options(dtype or self.dtype, layout, device)
    return finish(np.zeros(shape_of(size), numpy_dtype), requires_grad)


@composite(f"new_ones(Tensor self, int[] size, {OPTIONS}) -> Tensor", function=False)
def new_ones(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, layout: Any = None,
             pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Ones of a shape, with the type of this tensor."""
    numpy_dtype = options(dtype or self.dtype, layout, device)
    return finish(np.ones(shape_of(size), numpy_dtype), requires_grad)


@composite(f"new_empty(Tensor self, int[] size, {OPTIONS}) -> Tensor", function=False)
def new_empty(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, layout: Any = None,
              pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor of a shape, with the type of this tensor."""
    numpy_dtype = options(dtype or self.dtype, layout, device)
    return finish(np.empty(shape_of(size), numpy_dtype), requires_grad)


_ = ops
