"""What stands between the brackets of `x[...]`, taken apart item by item."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from flambeau._core.modes import watch
from flambeau._core.settings import warn_user
from flambeau._ops.indexing.positions import FULL, INTEGERS
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.scalars import type_name
from flambeau._tensor.conversion import tensor
from flambeau._tensor.examples import Example
from flambeau._tensor.symbolic_numbers import is_symbolic
from flambeau._tensor.tensor import Tensor, wrap

LONGEST_TUPLE = 32
"""Sequences as long as this are one index, never a tuple of indices."""


def as_items(index: Any) -> tuple[Any, ...]:
    """The index as a tuple; short sequences that hold other things than numbers are tuples too."""
    if isinstance(index, tuple):
        return tuple(index)
    if not is_sequence(index) or isinstance(index, np.ndarray):
        return (index,)
    if index.__class__ is list and all(item.__class__ is int for item in index):
        return (index,)
    length = len(index)
    if length < LONGEST_TUPLE and any(_makes_a_tuple(index[i]) for i in range(length)):
        warn_user(NO_TUPLE)
        return tuple(index[i] for i in range(length))
    return (index,)


NO_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in "
    "pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as "
    "tensor index, x[torch.tensor(seq)], which will result either in an error or a different result"
)


def is_sequence(value: Any) -> bool:
    """What Python's C interface calls a sequence; tensors are not meant."""
    if isinstance(value, (Tensor, dict)) or (
        isinstance(value, np.generic) and not isinstance(value, (str, bytes))
    ):
        return False
    return hasattr(type(value), "__getitem__")


def _makes_a_tuple(item: Any) -> bool:
    return item is None or item is ... or isinstance(item, (Tensor, slice)) or is_sequence(item)


def too_many(ndim: int) -> IndexError:
    """More items than dims."""
    return IndexError(f"too many indices for tensor of dimension {ndim}")


def tensor_indices(ndim: int, index: Any) -> list[Any] | None:
    """The indices that a tensor, or a tuple of `:` and integer tensors, stands for, else None."""
    if index.__class__ is Tensor:
        return [index] if 0 < index._data.ndim <= ndim else None
    if index.__class__ is not tuple or len(index) > ndim:
        return None
    found: list[Any] = []
    for item in index:
        if item.__class__ is Tensor and item._data.ndim and item._data.dtype in INTEGERS:
            found.append(item)
        elif item.__class__ is slice and item == FULL:
            found.append(None)
        else:
            return None
    while found and found[-1] is None:
        found.pop()
    return found


def is_number(data: np.ndarray) -> bool:
    """Whether an index tensor means what its int would: not what is a mask."""
    return data.ndim == 0 and data.dtype in INTEGERS


def new_dims(ndim: int, index: tuple[Any, ...]) -> list[int] | None:
    """Where an index of None, `:` and Ellipsis adds dims, one after the other; None for others."""
    places: list[int] = []
    dim = used = 0
    slices = sum([item.__class__ is slice for item in index])
    for item in index:
        if item is None:
            places.append(dim)
        elif item is ... and used < ndim and slices <= ndim:
            dim += ndim - slices
            used += ndim - slices
            continue
        elif item.__class__ is slice and item == FULL:
            used += 1
        else:
            return None
        dim += 1
    return places if used <= ndim else None


def slice_bounds(item: slice, size: Any) -> tuple[Any, Any, Any]:
    """`item.indices(size)`, also where some of it are symbols."""
    if not (watch.active and any(map(is_symbolic, (item.start, item.stop, size)))):
        return item.indices(size)
    start = 0 if item.start is None else _within(item.start, size)
    stop = size if item.stop is None else _within(item.stop, size)
    return start, stop, 1 if item.step is None else item.step


def as_written(item: slice, size: Any, start: Any, stop: Any) -> tuple[Any, Any]:
    """The bounds of a slice; of a size that is a symbol as they were given, for those who trace."""
    if size.__class__ is int:
        return start, stop
    return item.start or 0, sys.maxsize if item.stop is None else item.stop


def _within(bound: Any, size: Any) -> Any:
    """A bound of a slice, counted from the start and no further than the end."""
    if bound < 0:
        bound = bound + size
        return 0 if bound < 0 else bound
    return bound if bound <= size else size


class Items:
    """Items resolved against a shape: steps that make a view, and indices for what they give.

    `steps`: ("select", dim, index), ("slice", dim, start, stop, step) or ("unsqueeze", dim), each
    for the shape that the steps before it give. `indices`: a tensor or None per dim of the view
    (a mask stands for all its dims); empty if there are no tensors.
    """

    def __init__(self, shape: tuple[int, ...], items: tuple[Any, ...], *,
                 optimize: bool = True) -> None:  # fmt: skip
        self.shape = list(shape)
        self.ndim = len(shape)
        self.steps: list[tuple[Any, ...]] = []
        self.indices: list[Any] = []
        self.optimize = optimize
        self.dim = 0
        self.position = 0
        converted = [_converted(item) for item in items]
        self.specified = sum(_dims_of(item) for item in converted)
        if self.specified > self.ndim:
            raise too_many(self.ndim)
        for self.position, item in enumerate(converted):
            HANDLERS.get(item.__class__, Items.tensor)(self, item)

    def integer(self, index: int) -> None:
        size = self.shape[self.dim] if self.dim < len(self.shape) else 0
        if not -(1 << 63) <= index < (1 << 63):
            raise ValueError("Overflow when unpacking long long")
        if not -size <= index < size:
            raise IndexError(
                f"index {index} is out of bounds for dimension {self.position} with size {size}"
            )
        self.steps.append(("select", self.dim, index))
        del self.shape[self.dim]

    def sliced(self, item: slice) -> None:
        slice_step(item)
        if self.dim >= len(self.shape):  # behind a second Ellipsis
            self._behind_all_dims(item)
            return
        size = self.shape[self.dim]
        start, stop, step = slice_bounds(item, size)
        unchanged = not item.start and (item.stop is None or stop == size) and step == 1
        if not unchanged or not self.optimize:
            self.steps.append(("slice", self.dim, *as_written(item, size, start, stop), step))
            self.shape[self.dim] = (stop - start + step - 1) // step if stop > start else 0
        self.dim += 1

    def _behind_all_dims(self, item: slice) -> None:
        if item.start:
            wrap_dim(self.dim, len(self.shape))
        self.dim += 1

    def ellipsis(self, _: Any) -> None:
        self.dim += self.ndim - self.specified

    def new_dim(self, _: Any) -> None:
        self.steps.append(("unsqueeze", self.dim))
        self.shape.insert(self.dim, 1)
        self.dim += 1

    def boolean(self, item: bool) -> None:
        """A new dim of size 1 that is indexed with [0] or with nothing."""
        self.steps.append(("unsqueeze", self.dim))
        self.shape.insert(self.dim, 1)
        self.record(wrap(np.zeros(int(item), np.int64)), 1)

    def tensor(self, item: Tensor) -> None:
        data = item._data
        if data.ndim or data.dtype.kind not in "biu" or data.__class__ is Example:
            self.record(item, data.ndim if data.dtype in (np.bool_, np.uint8) else 1)
        elif data.dtype in (np.bool_, np.uint8):
            self.boolean(bool(data))
        else:
            self.integer(int(data))

    def record(self, item: Tensor, dims: int) -> None:
        missing = self.dim - self.covered()
        self.indices += [None] * missing + [item]
        self.dim += dims

    def covered(self) -> int:
        """How many dims the indices so far stand for."""
        return sum(1 if item is None else _mask_dims(item) for item in self.indices)


def slice_step(item: slice) -> int:
    """The step of a slice, which must be positive."""
    step = 1 if item.step is None else item.step.__index__()
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    return int(step)


def _mask_dims(item: Tensor) -> int:
    return item._data.ndim if item._data.dtype in (np.bool_, np.uint8) else 1


HANDLERS: dict[type, Callable[..., None]] = {
    int: Items.integer, slice: Items.sliced, EllipsisType: Items.ellipsis,
    type(None): Items.new_dim, bool: Items.boolean, Tensor: Items.tensor,
}  # fmt: skip


def _converted(item: Any) -> Any:
    """One item as an int, slice, None, Ellipsis, bool or Tensor."""
    if item.__class__ in HANDLERS or isinstance(item, Tensor):
        return item
    if isinstance(item, (int, np.integer)):
        return int(item)
    if is_sequence(item):
        return index_tensor(item)
    if hasattr(type(item), "__index__") and not isinstance(item, np.generic):
        return item.__index__()
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        f"indices (got {type_name(item)})"
    )


def _dims_of(item: Any) -> int:
    """How many dims of the tensor an item uses up."""
    if item is None or item is ... or item.__class__ is bool:
        return 0
    if isinstance(item, Tensor):
        return _mask_dims(item)
    return 1


def index_tensor(values: Sequence[Any]) -> Tensor:
    """A list or ndarray as index: bools and uint8 stay, all other numbers become int64."""
    if values.__class__ is list and all(item.__class__ is int for item in values):
        return wrap(_integers(values))
    if isinstance(values, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(values).__name__}'")
    made = tensor(values)
    if made._data.dtype in (np.bool_, np.uint8):
        return made
    if made._data.dtype.kind in "cW":
        raise TypeError("'complex' object cannot be interpreted as an integer")
    return wrap(made._data.astype(np.int64))


def _integers(values: Sequence[int]) -> np.ndarray:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
