"""`torch.layout`, `torch.memory_format`, `torch.Size`, and strides of new tensors."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Any


class _Constant:
    """A named constant such as `torch.strided`; pickles and copies to itself."""

    __slots__ = ("name",)
    table: dict[str, _Constant]

    def __init__(self, name: str) -> None:
        self.name = name
        type(self).table[name] = self

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return (_constant, (type(self), self.name))

    def __deepcopy__(self, memo: Any) -> _Constant:
        return self


def _constant(cls: type[_Constant], name: str) -> _Constant:
    return cls.table[name]


class layout(_Constant):
    """How elements are stored: flambeau has `torch.strided` and `torch.sparse_coo`.

    >>> import flambeau as torch
    >>> torch.strided, torch.ones(1).layout is torch.strided
    (torch.strided, True)
    """

    table: dict[str, _Constant] = {}


class memory_format(_Constant):
    """The order of dims in memory.

    >>> import flambeau as torch
    >>> torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last).stride()
    (24, 1, 8, 2)
    """

    table: dict[str, _Constant] = {}


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
_mkldnn = layout("_mkldnn")
jagged = layout("jagged")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def around(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """How many elements there are before a dim, along it, and behind it."""
    return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints that prints as `torch.Size([2, 3])`.

    >>> import flambeau as torch
    >>> size = torch.Size([2, 3])
    >>> size.numel(), size[0], size + (4,)
    (6, 2, torch.Size([2, 3, 4]))
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        """A shape of whole numbers; TypeError for anything else.

        What is known to hold ints is made by `tuple.__new__(Size, ints)`, which does not look.
        """
        return tuple.__new__(cls, map(_whole, itertools.count(), sizes))

    def numel(self) -> int:
        """The number of elements."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            reflected = getattr(type(other), "__radd__", None)
            found = NotImplemented if reflected is None else reflected(other, self)
            if found is not NotImplemented:
                return found  # type: ignore[no-any-return]
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to "
                            "torch.Size")  # fmt: skip
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Size:
        return tuple.__new__(Size, tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return tuple.__new__(Size, found) if isinstance(index, slice) else found

    def __reduce__(self) -> Any:
        return (Size, (tuple(self),))


def _whole(place: int, size: Any) -> int:
    """One size of a shape, of a type that has `__index__`; ints that know more stay as they are."""
    if isinstance(size, int):
        return size
    try:
        return int(operator.index(size))
    except TypeError:
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {place} is "
                        f"'{type(size).__name__}')") from None  # fmt: skip


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a new row-major tensor; a dim of size 0 counts as 1."""
    return _contiguous_strides(tuple(shape))


@lru_cache(4096)  # programs repeat their shapes
def _contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def channels_last_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements with dim 1 innermost (NHWC and NDHWC)."""
    strides = [0] * len(shape)
    step = 1
    for dim in (1, *reversed(range(2, len(shape))), 0):
        strides[dim] = step
        step *= shape[dim]  # unlike row-major strides, 0 after a dim of size 0
    return tuple(strides)


def is_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the strides put dim 1 innermost, torch's loose rule for sizes of 1."""
    if len(shape) not in (4, 5):
        return False
    if strides[1] == 0:
        return False
    least = 0
    order = (1, *reversed(range(2, len(shape))), 0)
    for dim in order:
        if shape[dim] == 0 or strides[dim] < least:
            return False
        if dim == 0 and least == strides[1]:
            return False
        least = strides[dim]
        if shape[dim] > 1:
            least *= shape[dim]
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their memory without holes or overlaps, in some dim order."""
    step = 1
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n != 1):
        if size == 0:
            return True
        if stride != step:
            return False
        step *= size
    return True
