"""New tensors: uninitialised, and filled with a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core.device import CPU, Defaults, refuse_pinned
from flambeau._core.promotion import dtype_of_number
from flambeau._ops.copying.copies import format_strides
from flambeau._ops.factories.making import (
    OPTIONS,
    OtherLayout,
    beyond,
    fill_number,
    finish,
    made,
    no_memory,
    of_out,
    on_gpu,
    options,
    shape_of,
    untouched,
)
from flambeau._ops.table.op import composite
from flambeau._runtime import cpu
from flambeau._tensor.tensor import Tensor


def _sparse(shape: Any, dtype: Any, layout: Any, requires_grad: bool, error: Exception) -> Any:
    """A sparse tensor without entries, where that layout is asked for; else the error."""
    if layout in COMPRESSED and len(shape) >= 2:
        from flambeau._ops.sparse.compressed_constructors import empty_of

        return empty_of(shape, dtype or dt.default_dtype(), layout).requires_grad_(requires_grad)
    if layout is not lay.sparse_coo:
        raise error from None
    from flambeau._ops.sparse.constructors import sparse_coo_tensor

    # `options` has seen to the device
    return sparse_coo_tensor.body(size=shape, dtype=dtype, device=CPU, requires_grad=requires_grad)


COMPRESSED = (lay.sparse_csr, lay.sparse_csc)
"""Layouts whose tensors can be made without entries: blocks have no size of their own."""


@composite(f"zeros(int[] size, {OPTIONS}) -> Tensor", regular=True, method=False)
def zeros(
    *sizes: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros.

    Its shape is given as numbers, or as one sequence.

    >>> import flambeau as torch
    >>> torch.zeros(2, 3, dtype=torch.int64)
    tensor([[0, 0, 0],
            [0, 0, 0]])
    """
    if pin_memory is not False:
        refuse_pinned("zeros", pin_memory)
    shape = shape_of(sizes if size is None else (size,), "zeros")
    try:
        numpy_dtype = options(of_out("zeros", out, dtype, layout, device), layout, device)
        data = (
            np.zeros(shape, numpy_dtype) if not Defaults.elsewhere else made(shape, numpy_dtype, 0)
        )
    except OtherLayout as error:
        return _sparse(shape, dtype, layout, requires_grad, error)  # type: ignore[no-any-return]
    except (ValueError, MemoryError) as error:
        raise no_memory(shape, error) from None
    return finish(data, requires_grad, out)


@composite(f"ones(int[] size, {OPTIONS}) -> Tensor", regular=True, method=False)
def ones(
    *sizes: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones.

    Its shape is given as numbers, or as one sequence.

    >>> import flambeau as torch
    >>> torch.ones(2, 3)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    if pin_memory is not False:
        refuse_pinned("ones", pin_memory)
    shape = shape_of(sizes if size is None else (size,), "ones")
    try:
        numpy_dtype = options(of_out("ones", out, dtype, layout, device), layout, device)
        if Defaults.elsewhere:
            data = made(shape, numpy_dtype, 1)
        else:
            data = np.empty(shape, numpy_dtype)
            data.fill(1)  # np.ones takes three times as long for few
    except (ValueError, MemoryError) as error:
        raise no_memory(shape, error) from None
    return finish(data, requires_grad, out)


@composite(f"empty(int[] size, {OPTIONS}) -> Tensor", undetermined=True, bare=True, method=False)
def empty(
    *sizes: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor with whatever was in its memory.

    Its shape is given as numbers, or as one sequence.

    >>> import flambeau as torch
    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("empty", pin_memory)
    shape = shape_of(sizes if size is None else (size,), "empty")
    try:
        numpy_dtype = options(of_out("empty", out, dtype, layout, device), layout, device)
    except OtherLayout as error:
        return _sparse(shape, dtype, layout, requires_grad, error)  # type: ignore[no-any-return]
    strides = None if memory_format is None else format_strides(shape, memory_format)
    if Defaults.elsewhere and on_gpu():
        return finish(made(shape, numpy_dtype, None, strides), requires_grad, out)
    if strides is None:
        try:
            return finish(untouched(np.empty(shape, numpy_dtype)), requires_grad, out)
        except (ValueError, MemoryError) as error:
            return finish(beyond(shape, numpy_dtype, error), requires_grad, out)
    return finish(untouched(cpu.empty_strided(shape, strides, numpy_dtype)), requires_grad, out)


@composite(
    f"full(int[] size, Scalar fill_value, {OPTIONS}) -> Tensor",
    bare=True,
    regular=True,
    method=False,
)
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor filled with a number; without `dtype`, the number's own type.

    Its shape is `size`.

    >>> import flambeau as torch
    >>> torch.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if pin_memory is not False:
        refuse_pinned("full", pin_memory)
    if not isinstance(size, (tuple, list)):
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not "
                        f"{type(size).__name__}")  # fmt: skip
    fill_value = fill_number("full", fill_value)
    dtype = of_out("full", out, dtype, layout, device)
    if dtype is None:
        dtype = dtype_of_number(fill_value)
    numpy_dtype = options(dtype, layout, device)
    return finish(made(shape_of((size,), "full"), numpy_dtype, fill_value), requires_grad, out)
