"""Copies between devices: `to`, with its gradient, and the same for storages."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core import modes
from flambeau._core.device import CPU, device
from flambeau._ops.copying.copies import is_contiguous
from flambeau._ops.cuda import copies
from flambeau._ops.table.namespace import ops
from flambeau._runtime.cpu import element_strides
from flambeau._tensor import device_array
from flambeau._tensor.device_array import DeviceArray
from flambeau._tensor.peer_copies import across
from flambeau._tensor.sparse import SparseTensor, sparse_tensor
from flambeau._tensor.storage import UntypedStorage, elsewhere
from flambeau._tensor.tensor import Tensor, new, provides
from flambeau.autograd.graph import Node
from flambeau.autograd.history import edge_of


class ToCopy(Node):
    """The node of a copy to another device: the gradient goes back."""

    __slots__ = ("source",)
    title = "ToCopyBackward0"

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(edge_of(tensor))
        self.source = tensor.device

    def apply(self, grad: Any) -> tuple[Any, ...]:
        return (moved(grad, self.source),)


def moved_array(data: np.ndarray, place: device) -> np.ndarray:
    """A copy of an array on a device, or on the host."""
    if isinstance(data, DeviceArray) and place.type == "cuda":
        return across(data, place.index or 0)  # type: ignore[no-any-return]
    if isinstance(data, DeviceArray):
        data = device_array.to_host(data)
    if place.type == "cpu":
        order = element_strides(data)
        dense = lay.is_dense(data.shape, order)
        return data if dense else np.ascontiguousarray(data).reshape(data.shape)
    return device_array.from_host(data, place)  # type: ignore[no-any-return]


def moved(tensor: Any, place: device, *, copy: bool = False, memory_format: Any = None) -> Any:
    """A tensor on a device: itself if it is there and no copy is wanted."""
    if tensor.device == place:
        return ops.clone(tensor, memory_format=memory_format) if copy else tensor
    if isinstance(tensor, SparseTensor):
        places = moved(tensor._places, place, copy=copy)
        entries = moved(tensor._entries, place, copy=copy)
        return sparse_tensor(places, entries, tensor._size, tensor._coalesced)
    if memory_format not in (None, lay.preserve_format):
        tensor = tensor.contiguous(memory_format=memory_format)
    result: Any = new(Tensor)
    result._data = moved_array(tensor._data, place)
    if tensor.requires_grad and modes.grad.enabled:
        result._node = ToCopy(tensor)
        result._requires_grad = True
    elif modes.grad.enabled is None:
        result._inference = True
    return result


def all_moved(value: Any, place: device) -> Any:
    """An argument or result with its tensors on a device."""
    if isinstance(value, Tensor):
        return moved(value, place)
    if isinstance(value, (list, tuple)):
        items = [all_moved(item, place) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


@provides("to_device")
def to(tensor: Any, place: device, dtype: dt.dtype | None, copy: bool, memory_format: Any) -> Any:
    """`Tensor.to` with a device: the cast happens where the tensor lies, then it moves."""
    if dtype is not None and dtype is not tensor.dtype:
        tensor, copy = ops._to_copy(tensor, dtype=dtype, memory_format=memory_format), False
    same_format = memory_format in (None, lay.preserve_format)
    copy = copy or not (same_format or is_contiguous(tensor, memory_format=memory_format))
    return moved(tensor, place, copy=copy, memory_format=memory_format)


def storage_to(storage: UntypedStorage, place: device) -> UntypedStorage:
    """A copy of a storage on a device; itself if it is there."""
    if storage.device == place:
        return storage
    return UntypedStorage(moved_array(storage.array, place))


elsewhere.append(storage_to)


@provides("assign_across")
def assign(target: Tensor, source: Tensor) -> None:
    """Write values to a tensor where one of the two, at least, is on a GPU."""
    copies.assign(target._data, source._data)


__all__ = ["CPU", "all_moved", "moved", "storage_to", "to"]
