"""Arrays of tensors that stand for one example of a batch: see `autograd.batches`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._tensor.device_array import DeviceArray, to_host
from flambeau._tensor.meta import Meta, zeros_of
from flambeau._tensor.numberless import Numberless

NO_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)
NO_BRANCH = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
    "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
NO_SHAPE = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
    "over aten::{}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need "
    "this feature."
)
NO_MEMORY = "Cannot access data pointer of Tensor that doesn't have storage"
NO_NUMBERS = "vmap: the numbers of one example were asked for, which stands for all of the batch"


class Example(Numberless):
    """The array of one example: a shape, strides and a type. Whoever asks it for numbers would take
    one example's for all, so it refuses.

    `level`: the use of `vmap`; `value`: the batch, examples along the first dim, or, if not
    `is_batched`, what is the same in every example. Views of it stand for nothing.
    """

    no_numbers, no_item = RuntimeError(NO_NUMBERS), RuntimeError(NO_ITEM)
    no_branch, no_memory = RuntimeError(NO_BRANCH), RuntimeError(NO_MEMORY)
    level: Any = None
    value: Any = None
    is_batched = False

    def copy(self, order: Any = "C") -> Any:
        """The array of a copy of the batch."""
        copied = super().view(np.ndarray).copy(order).view(Example)
        copied.level, copied.is_batched = self.level, self.is_batched
        copied.value = None if self.value is None else self.value.clone()
        return copied


def numbers_under(data: np.ndarray) -> np.ndarray:
    """The array with the numbers of all examples that an array may stand for: for checks, which
    are about each example, or about all. Tensors without memory pass for zeros."""
    while data.__class__ is Example:
        data = data.value._data  # type: ignore[attr-defined]
    if isinstance(data, DeviceArray):
        return to_host(data)
    return zeros_of(data) if data.__class__ is Meta else data


def is_near(data: np.ndarray) -> bool:
    """Whether the host can look at an array's numbers without waiting for a device."""
    while data.__class__ is Example:
        data = data.value._data  # type: ignore[attr-defined]
    return not isinstance(data, DeviceArray)


def without_zeros(data: np.ndarray) -> bool:
    """Whether there are numbers to be seen, and none is 0: formulas that divide ask so."""
    numbers = numbers_under(data)
    return not isinstance(numbers, Numberless) and bool((numbers != 0).all())
