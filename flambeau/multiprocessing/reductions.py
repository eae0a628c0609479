"""How queues and pipes send tensors and storages: a descriptor of their memory, and where in it."""

from __future__ import annotations

import os
import weakref
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from flambeau._core.dtype import dtype as Dtype  # noqa: N812  `dtype` is what tensors have
from flambeau._runtime.cpu import address, over
from flambeau._runtime.shared_memory import SharedMemory
from flambeau._tensor.sharing import move_to_shared_memory
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor, storage_of, wrap
from flambeau._tensor.typed_storage import TypedStorage, wrap_typed
from flambeau.nn.parameter import Parameter

NON_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
    "support crossing process boundaries.  If you just want to transfer the data, call detach() on "
    "the tensor before serializing (e.g., putting it on the queue)."
)

received: weakref.WeakValueDictionary[tuple[int, int], UntypedStorage] = (
    weakref.WeakValueDictionary()
)
"""Storages that came from other processes, by their file: each is mapped once."""


def init_reductions() -> None:
    """Let queues and pipes of this process send memory, not copies of it."""
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(Parameter, reduce_tensor)
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, reduce_typed_storage)


def reduce_tensor(tensor: Any) -> Any:
    """A tensor moves to shared memory; its attributes stay here. On other devices it is copied.

    Views of it that were taken before keep the old memory, unless it was there already.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(NON_LEAF)
    if tensor.device.type != "cpu":
        return tensor.__reduce_ex__(2)
    move_to_shared_memory(tensor, finds_views=False)
    storage, data = storage_of(tensor), tensor._data
    offset = address(data) - storage.start if data.size else 0
    place = data.dtype, data.shape, data.strides, offset
    return rebuild_tensor, (type(tensor), storage, place, tensor.requires_grad)


def rebuild_tensor(kind: type, storage: UntypedStorage, place: Any, requires_grad: bool) -> Any:
    """A tensor over memory that has been received."""
    dtype, shape, strides, offset = place
    data = over(storage.array, shape, dtype, offset, strides)
    result: Any = wrap(data)
    result._storage = storage
    if kind is Parameter:
        return Parameter(result, requires_grad)
    result._requires_grad = requires_grad
    return result


def reduce_storage(storage: UntypedStorage) -> Any:
    """A storage as the descriptor of its file."""
    storage.share_memory_()
    if storage.shared is None:  # a file that the program maps
        return map_file, (storage.filename, storage.nbytes())
    return rebuild_storage, (DupFd(storage.shared.descriptor), storage.nbytes())


def rebuild_storage(handle: Any, size: int) -> UntypedStorage:
    """The storage whose memory a file is."""
    descriptor = handle.detach()
    status = os.fstat(descriptor)
    known = received.get((status.st_dev, status.st_ino))
    if known is not None:
        os.close(descriptor)
        return known
    shared = SharedMemory(size, descriptor)
    received[shared.key()] = storage = UntypedStorage(0).take_over(shared)
    return storage


def map_file(filename: str, size: int) -> UntypedStorage:
    """The storage that `from_file` made."""
    return UntypedStorage.from_file(filename, True, size)


def reduce_typed_storage(storage: Any) -> Any:
    """A typed storage as an untyped one, and the type."""
    return rebuild_typed_storage, (storage._untyped_storage, storage.dtype)


def rebuild_typed_storage(storage: UntypedStorage, dtype: Dtype) -> TypedStorage:
    """A storage of a type over memory that has been received."""
    return wrap_typed(storage, dtype)
