"""New tensors whose memory lies in an order of the caller's choice."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import layout as lay
from flambeau._core.device import refuse_pinned
from flambeau._ops.factories.making import OPTIONS, finish, made, options
from flambeau._ops.table.op import composite
from flambeau._tensor.tensor import Tensor


def _strided(size: Any, stride: Any, numpy_dtype: Any) -> np.ndarray:
    if len(size) != len(stride):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of "
                           f"strides ({len(stride)})")  # fmt: skip
    if min([*size, *stride], default=0) < 0:
        raise strided_too_far(size, stride)
    try:
        return made(tuple(size), numpy_dtype, None, tuple(stride))
    except ValueError:
        raise strided_too_far(size, stride) from None


def strided_too_far(size: Any, stride: Any) -> RuntimeError:
    """The error for sizes and strides whose reach no storage has."""
    return RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and "
                        f"strides={list(stride)}")  # fmt: skip


@composite(
    f"empty_strided(int[] size, int[] stride, {OPTIONS}) -> Tensor", undetermined=True, method=False
)
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None,
                  device: Any = None, pin_memory: bool = False,
                  requires_grad: bool = False) -> Tensor:  # fmt: skip
    """An uninitialised tensor with strides of your choice.

    Its shape is `size`.

    >>> import flambeau as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    if pin_memory is not False:
        refuse_pinned("empty_strided", pin_memory)
    numpy_dtype = options(dtype, layout, device)
    return finish(_strided(size, stride, numpy_dtype), requires_grad)


@composite(
    f"new_empty_strided(Tensor self, int[] size, int[] stride, {OPTIONS}) -> Tensor",
    undetermined=True,
    batch="new strided",
    function=False,
)
def new_empty_strided(self: Tensor, size: Any, stride: Any, *, dtype: Any = None,
                      layout: Any = None, device: Any = None, pin_memory: bool = False,
                      requires_grad: bool = False) -> Tensor:  # fmt: skip
    """An uninitialised tensor with a size and strides of your choice and the type of this one.

    >>> import flambeau as torch
    >>> torch.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    if pin_memory is not False:
        refuse_pinned("new_empty_strided", pin_memory)
    numpy_dtype = options(dtype or self.dtype, layout, device or self.device)
    return finish(_strided(size, stride, numpy_dtype), requires_grad)


@composite(f"empty_permuted(int[] size, int[] physical_layout, {OPTIONS}) -> Tensor", method=False)
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None,
                   device: Any = None, pin_memory: bool = False,
                   requires_grad: bool = False) -> Tensor:  # fmt: skip
    """An uninitialised tensor whose dims lie in memory in a given order, outermost first.

    >>> import flambeau as torch
    >>> torch.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    if pin_memory is not False:
        refuse_pinned("empty_permuted", pin_memory)
    if len(physical_layout) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = "
            f"{len(physical_layout)}"
        )
    if sorted(physical_layout) != list(range(len(size))):
        raise RuntimeError("Duplicate dim not allowed")
    inner = lay.contiguous_strides([size[dim] for dim in physical_layout])
    stride = [0] * len(size)
    for dim, step in zip(physical_layout, inner, strict=True):
        stride[dim] = step
    numpy_dtype = options(dtype, layout, device)
    return finish(_strided(size, stride, numpy_dtype), requires_grad)
