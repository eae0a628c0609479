"""New tensors with the shape, or the type, of another."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from flambeau._core import layout as lay
from flambeau._core.device import Defaults, refuse_pinned
from flambeau._ops.copying.copies import format_strides, write_number
from flambeau._ops.factories.making import (
    OPTIONS,
    fill_number,
    finish,
    made,
    memory,
    on_gpu,
    options,
    shape_of,
    untouched,
)
from flambeau._ops.table.binder import no_tensor
from flambeau._ops.table.op import composite
from flambeau._runtime import cpu
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor


def _sparse_like(tensor: Any, dtype: Any, device: Any, number: Any = 0) -> Any:
    """A sparse tensor without entries, for another sparse tensor; of compressed layouts with
    `number` at its places."""
    if tensor.layout is not lay.sparse_coo:
        from flambeau._ops.sparse.compressed_methods import like as like_compressed

        return like_compressed(tensor, number, dtype, device)
    from flambeau._ops.sparse.methods import like

    return like(tensor, dtype, device)


def _like(tensor: Tensor, dtype: Any, layout: Any, device: Any, memory_format: Any,
          number: Any = None, fills: bool = False) -> np.ndarray:  # fmt: skip
    """New memory with the shape (and, unless told otherwise, the dense strides) of a tensor.

    `fills`: where it is wanted, and with `number` in it; else on the host, as it is.
    """
    try:
        data = tensor._data
    except AttributeError:
        if isinstance(tensor, Tensor):  # sparse, or of a class that takes part
            raise
        name = sys._getframe(1).f_code.co_name
        raise no_tensor(name, "input", 1, tensor) from None
    if data.__class__ is np.ndarray and data.base is None and data.flags.c_contiguous and (
        dtype is layout is device is memory_format is None
    ):  # fmt: skip
        result = memory(data.shape, data.dtype)
        if number is not None:
            write_number(result, number)
        return result
    place = device or tensor.device
    numpy_dtype = options(tensor.dtype if dtype is None else dtype, layout, place)
    data = tensor._data
    if memory_format is None or memory_format is lay.preserve_format:
        strides = cpu.preserved_strides(data)
    else:
        strides = format_strides(data.shape, memory_format)
    if fills:
        return made(data.shape, numpy_dtype, number, strides)
    if strides is None:
        return memory(data.shape, numpy_dtype)
    return cpu.empty_strided(data.shape, strides, numpy_dtype)


_LIKE = f"{OPTIONS}, MemoryFormat? memory_format=None"


@composite(
    f"empty_like(Tensor self, {_LIKE}) -> Tensor",
    undetermined=True,
    bare=True,
    batch="like",
    method=False,
)
def empty_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """An uninitialised tensor shaped like another.

    The result has the shape of `input`.

    >>> import flambeau as torch
    >>> torch.empty_like(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("empty_like", pin_memory)
    try:
        data = _like(input, dtype, layout, device, memory_format, fills=True)
    except NotStrided:
        return _sparse_like(input, dtype, device)  # type: ignore[no-any-return]
    return finish(untouched(data) if data.__class__ is np.ndarray else data, requires_grad)


@composite(
    f"zeros_like(Tensor self, {_LIKE}) -> Tensor",
    regular=True,
    bare=True,
    batch="like",
    method=False,
    elementwise=True,
)
def zeros_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Zeros shaped like another tensor.

    The result has the shape of `input`.

    >>> import flambeau as torch
    >>> torch.zeros_like(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("zeros_like", pin_memory)
    try:
        data = _like(input, dtype, layout, device, memory_format, 0, fills=True)
    except NotStrided:
        return _sparse_like(input, dtype, device)  # type: ignore[no-any-return]
    return finish(data, requires_grad)


@composite(
    f"ones_like(Tensor self, {_LIKE}) -> Tensor",
    regular=True,
    bare=True,
    batch="like",
    method=False,
    elementwise=True,
)
def ones_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Ones shaped like another tensor.

    The result has the shape of `input`.

    >>> import flambeau as torch
    >>> torch.ones_like(torch.zeros(2, dtype=torch.int32))
    tensor([1, 1], dtype=torch.int32)
    """
    if pin_memory is not False:
        refuse_pinned("ones_like", pin_memory)
    try:
        data = _like(input, dtype, layout, device, memory_format, 1, fills=True)
    except NotStrided:
        if input.layout is lay.sparse_coo:
            raise
        return _sparse_like(input, dtype, device, 1)  # type: ignore[no-any-return]
    return finish(data, requires_grad)


@composite(f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor", regular=True,
           bare=True, batch="like", method=False,
           elementwise=True)  # fmt: skip
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A number repeated in the shape of another tensor.

    >>> import flambeau as torch
    >>> torch.full_like(torch.zeros(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    if pin_memory is not False:
        refuse_pinned("full_like", pin_memory)
    number = fill_number("full_like", fill_value)
    return finish(_like(input, dtype, layout, device, memory_format, number, True), requires_grad)


@composite(
    f"new_zeros(Tensor self, int[] size, {OPTIONS}) -> Tensor",
    regular=True,
    bare=True,
    batch="new",
    function=False,
)
def new_zeros(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
              layout: Any = None, pin_memory: bool = False,
              requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Zeros of a shape, with the type of this tensor, on its device.

    size: ints one by one, or a list or tuple of them.
    dtype, device: others than this tensor's.
    requires_grad: whether the result is a leaf that gradients are kept for; this tensor's history
        has no part in it.

    >>> import flambeau as torch
    >>> torch.ones(1, dtype=torch.int32).new_zeros(2)
    tensor([0, 0], dtype=torch.int32)
    """
    if pin_memory is not False:
        refuse_pinned("new_zeros", pin_memory)
    numpy_dtype = options(dtype or self.dtype, layout, device or self.device)
    shape = shape_of(sizes if size is None else (size,), "new_zeros")
    if Defaults.elsewhere and on_gpu():
        return finish(made(shape, numpy_dtype, 0), requires_grad)
    return finish(memory(shape, numpy_dtype, np.zeros), requires_grad)


@composite(
    f"new_ones(Tensor self, int[] size, {OPTIONS}) -> Tensor",
    regular=True,
    bare=True,
    batch="new",
    function=False,
)
def new_ones(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
             layout: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Ones of a shape, with the type of this tensor.

    >>> import flambeau as torch
    >>> torch.ones(1, dtype=torch.int32).new_ones(2)
    tensor([1, 1], dtype=torch.int32)
    """
    if pin_memory is not False:
        refuse_pinned("new_ones", pin_memory)
    numpy_dtype = options(dtype or self.dtype, layout, device or self.device)
    shape = shape_of(sizes if size is None else (size,), "new_ones")
    if Defaults.elsewhere and on_gpu():
        return finish(made(shape, numpy_dtype, 1), requires_grad)
    return finish(memory(shape, numpy_dtype, np.ones), requires_grad)


@composite(
    f"new_empty(Tensor self, int[] size, {OPTIONS}) -> Tensor",
    undetermined=True,
    bare=True,
    batch="new",
    function=False,
)
def new_empty(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
              layout: Any = None, pin_memory: bool = False,
              requires_grad: bool = False) -> Tensor:  # fmt: skip
    """An uninitialised tensor of a shape, with the type of this tensor.

    >>> import flambeau as torch
    >>> torch.ones(1).new_empty(2, 3).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("new_empty", pin_memory)
    numpy_dtype = options(dtype or self.dtype, layout, device or self.device)
    shape = shape_of(sizes if size is None else (size,), "new_empty")
    return finish(made(shape, numpy_dtype, None), requires_grad)


@composite(
    f"new_full(Tensor self, int[] size, Scalar fill_value, {OPTIONS}) -> Tensor",
    bare=True,
    batch="new",
    function=False,
)
def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A number repeated in a shape, with the type of this tensor.

    >>> import flambeau as torch
    >>> torch.ones(1).new_full((2, 2), 7)
    tensor([[7., 7.],
            [7., 7.]])
    """
    if pin_memory is not False:
        refuse_pinned("new_full", pin_memory)
    numpy_dtype = options(dtype or self.dtype, layout, device or self.device)
    number = fill_number("new_full", fill_value)
    return finish(made(shape_of((size,), "new_full"), numpy_dtype, number), requires_grad)
