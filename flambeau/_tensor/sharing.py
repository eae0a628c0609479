"""Tensors whose memory moves to where other processes see it."""

from __future__ import annotations

import gc

import numpy as np

from flambeau._runtime.cpu import address
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor, storage_of


def move_to_shared_memory(tensor: Tensor, finds_views: bool) -> None:
    """Move the storage of a tensor, which it and the tensor that it is a view of look at then.

    `finds_views`: so do all other views. Nobody keeps a list of them; finding them takes as long as
    the garbage collector takes to look at everything.
    """
    storage = storage_of(tensor)
    if storage.is_shared():
        return
    root = tensor if tensor._root is None else tensor._root
    family = [root] if root is tensor else [root, tensor]
    if finds_views:
        family = [root, *(x for x in gc.get_referrers(root) if _is_view_of(root, x))]
    members = [member for member in family if storage_of(member) is storage]
    before = storage.start
    storage.share_memory_()
    for member in members:
        member._data = _at_new_place(member._data, before, storage)


def _is_view_of(root: Tensor, found: object) -> bool:
    return isinstance(found, Tensor) and found._root is root


def _at_new_place(data: np.ndarray, before: int, storage: UntypedStorage) -> np.ndarray:
    """The same elements in the memory that was at `before`."""
    if data.size == 0:
        return data
    offset = address(data) - before
    return np.ndarray(data.shape, data.dtype, storage.array, offset, data.strides)
