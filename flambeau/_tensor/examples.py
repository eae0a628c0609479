"""Arrays of tensors that stand for one example of a batch: see `autograd.batches`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

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


MEMORY_ONLY = (np.may_share_memory, np.shares_memory)
"""Functions that look at where arrays lie, not at what they hold."""


class Example(np.ndarray):
    """The array of one example: a shape, strides and a type. Whoever asks it for numbers would take
    one example's for all, so it refuses.

    `level`: the use of `vmap`; `value`: the batch, examples along the first dim, or, if not
    `is_batched`, what is the same in every example. Views of it stand for nothing.
    """

    level: Any = None
    value: Any = None
    is_batched = False

    def copy(self, order: Any = "C") -> Any:
        """The array of a copy of the batch."""
        copied = super().view(np.ndarray).copy(order).view(Example)
        copied.level, copied.is_batched = self.level, self.is_batched
        copied.value = None if self.value is None else self.value.clone()
        return copied

    def item(self, *args: Any) -> NoReturn:
        """Refused, in torch's words."""
        raise RuntimeError(NO_ITEM)

    def tolist(self) -> NoReturn:
        """Refused, in torch's words."""
        raise RuntimeError(NO_MEMORY)

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(NO_NUMBERS)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in MEMORY_ONLY:
            raise RuntimeError(NO_NUMBERS)
        plain = [a.view(np.ndarray) if isinstance(a, Example) else a for a in args]
        return function(*plain, **kwargs)

    def view(self, *args: Any) -> Any:  # type: ignore[override]
        """Of the memory as an array: refused, but under another class."""
        if not args:
            raise RuntimeError(NO_MEMORY)
        return super().view(*args)

    def __setitem__(self, *args: Any) -> NoReturn:
        raise RuntimeError(NO_NUMBERS)

    def __bool__(self) -> NoReturn:
        raise RuntimeError(NO_BRANCH)

    __float__ = __int__ = __complex__ = __index__ = item  # type: ignore[assignment]


def _refuse(self: Example, *args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(NO_NUMBERS)


LOOKS = (
    "all any argmax argmin argsort astype byteswap choose clip compress conj conjugate cumprod "
    "cumsum dot dump dumps fill flatten max mean min nonzero partition prod put ravel repeat round "
    "searchsorted sort std sum take tobytes trace var"
)
"""Methods of arrays that look at numbers."""
for _name in LOOKS.split():
    setattr(Example, _name, _refuse)


def as_array(data: Any) -> np.ndarray:
    """An ndarray of a NumPy scalar; the array of an example says itself what it is."""
    return data if data.__class__ is Example else np.asarray(data)


def numbers_under(data: np.ndarray) -> np.ndarray:
    """The array with the numbers of all examples that an array may stand for: for checks, which
    are about each example, or about all."""
    while data.__class__ is Example:
        data = data.value._data  # type: ignore[attr-defined]
    return data
