"""Copies between devices: `to`, with its gradient, and the same for storages; pinned memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core import modes
from flambeau._core.device import device
from flambeau._ops.copying.copies import copy_in_format, is_contiguous
from flambeau._ops.table.namespace import ops
from flambeau._runtime import device_memory
from flambeau._runtime.device_memory import On
from flambeau._tensor.sparse import SparseTensor, sparse_tensor
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.graph import Node
from flambeau.autograd.history import edge_of

PINNED = "pinned"


class ToCopy(Node):
    """The node of a copy to another device: the gradient goes back."""

    __slots__ = ("source",)
    title = "ToCopyBackward0"

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(edge_of(tensor))
        self.source = tensor.device

    def apply(self, grad: Any) -> tuple[Any, ...]:
        return (moved(grad, self.source),)


def moved(tensor: Any, place: device, *, copy: bool = False, memory_format: Any = None) -> Any:
    """A tensor on a device: itself if it is there and no copy is wanted."""
    if tensor.device == place and not copy:
        return tensor
    if isinstance(tensor, SparseTensor):
        places = moved(tensor._places, place, copy=copy)
        entries = moved(tensor._entries, place, copy=copy)
        return sparse_tensor(places, entries, tensor._size, tensor._coalesced)
    with On(str(place)):
        result: Any = wrap(copy_in_format(tensor._data, tensor._data.dtype, memory_format))
    if modes.grad.enabled and tensor.requires_grad:
        result._node = ToCopy(tensor)
        result._requires_grad = True
    return result


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
    return UntypedStorage(_bytes_in(storage.array, str(place)))


def _bytes_in(array: np.ndarray, place: str) -> np.ndarray:
    with On(place):
        return array.copy()


# ---- pinned memory of the host, from which copies to a device need not wait


def pinned(tensor: Any) -> Any:
    """A copy of a CPU tensor in pinned memory; itself if it is there."""
    if tensor.device.type != "cpu":
        raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
    if is_pinned(tensor):
        return tensor
    device_memory.add(PINNED)
    with On(PINNED):
        return wrap(copy_in_format(tensor._data, tensor._data.dtype, None))


def is_pinned(tensor: Any) -> bool:
    """Whether a tensor lies in pinned memory."""
    return device_memory.place_of(tensor._data) == PINNED
