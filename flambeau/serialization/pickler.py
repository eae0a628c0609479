"""`TensorPickler`: writes objects as torch does, with its names and its storage references.

Python's own pickler in Python is the base: the one in C insists that every name it writes can be
imported, and `torch._utils` cannot where only flambeau is installed.
"""

from __future__ import annotations

import io
import pickle
import types
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._core.layout import Size, contiguous_strides, layout, memory_format
from flambeau._runtime.cpu import address
from flambeau._tensor.storage import Storage
from flambeau._tensor.tensor import Tensor, storage_of, strides_of
from flambeau.serialization import rebuild
from flambeau.serialization.names import PACKAGE, torch_name
from flambeau.serialization.storages import (
    STORAGE_TYPES,
    UNTYPED,
    LoadedStorage,
    StorageType,
)

PLAIN_TYPES = frozenset((int, float, str, bool, bytes, type(None), list, tuple, dict, OrderedDict))


@dataclass(frozen=True, slots=True)
class StorageReference:
    """A storage on its way into a file, seen as elements of `type`."""

    storage: Storage
    type: StorageType


class SavedStorages:
    """The storages of one file, each under its key, in the order of their first mention."""

    def __init__(self, make_key: Callable[[int], str] = str) -> None:
        self.make_key = make_key
        self.keys: dict[Any, str] = {}
        self.by_key: dict[str, StorageReference] = {}

    def identity(self, reference: StorageReference) -> tuple[Any, ...]:
        """The persistent id. RuntimeError if the bytes are saved under two element types."""
        storage = reference.storage
        nbytes = storage.nbytes()
        # Two objects may stand for the same memory; empty storages have no address to compare.
        place = (storage.start, nbytes) if nbytes else id(storage)
        key = self.keys.get(place)
        if key is None:
            key = self.keys[place] = self.make_key(len(self.keys))
            self.by_key[key] = reference
        elif nbytes and self.by_key[key].type is not reference.type:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that "
                "view the same data as different types"
            )
        numel = nbytes // reference.type.dtype.itemsize
        return ("storage", reference.type, key, "cpu", numel)


PythonPickler: Any = pickle._Pickler


class TensorPickler(PythonPickler):
    """Pickles any object; tensors become references into `storages`.

    `legacy` adds the sixth part that storage ids have in files from before PyTorch 1.6.
    """

    dispatch: dict[type, Callable[..., None]] = dict(PythonPickler.dispatch)

    def __init__(
        self, file: Any, protocol: int, storages: SavedStorages, *, legacy: bool = False
    ) -> None:
        super().__init__(file, protocol)
        self.storages = storages
        self.legacy = legacy

    def persistent_id(self, obj: Any) -> Any:
        """The id of a storage; None for everything else."""
        if type(obj) in PLAIN_TYPES:
            return None
        if isinstance(obj, Storage):
            obj = _reference(obj)
        if type(obj) is not StorageReference:
            return None
        identity = self.storages.identity(obj)
        return (*identity, None) if self.legacy else identity

    def reducer_override(self, obj: Any) -> Any:
        """Torch's way to write tensors and its own small types."""
        if type(obj) in PLAIN_TYPES:
            return NotImplemented
        if isinstance(obj, Tensor):
            return NotImplemented if _reduces_itself(type(obj)) else reduce_tensor(obj)
        reducer = REDUCERS.get(type(obj))
        return NotImplemented if reducer is None else reducer(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a class or function by name: ours under torch's names, others under their own."""
        known = torch_name(obj)
        if known is None:
            super().save_global(obj, name)
            return
        self.write_name(obj, *known)

    def write_name(self, obj: Any, module: str, name: str) -> None:
        """Write a global without asking whether this process could import it."""
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def save_type(self, obj: type) -> None:
        """Write a class; `type(None)` and its like have their own form."""
        if torch_name(obj) is None:
            super().save_type(obj)
            return
        self.save_global(obj)

    def save_storage_type(self, obj: StorageType) -> None:
        """Write the name of a storage class."""
        self.write_name(obj, *obj.full_name)

    dispatch[types.FunctionType] = save_global
    dispatch[type] = save_type
    dispatch[StorageType] = save_storage_type
    dispatch[dt.dtype] = save_global
    dispatch[memory_format] = save_global


def pickle_tensors(obj: Any, protocol: int) -> tuple[bytes, SavedStorages]:
    """The pickle of `obj` and the storages that it refers to."""
    storages = SavedStorages()
    buffer = io.BytesIO()
    TensorPickler(buffer, protocol, storages).dump(obj)
    return buffer.getvalue(), storages


def _reference(storage: Storage) -> StorageReference:
    if isinstance(storage, LoadedStorage):
        return StorageReference(storage, STORAGE_TYPES.get(storage.dtype, UNTYPED))
    return StorageReference(storage, UNTYPED)


def _reduces_itself(cls: type) -> bool:
    """Whether a user's subclass of Tensor brings its own way to be pickled."""
    for ancestor in cls.__mro__:
        if ancestor.__module__.partition(".")[0] == PACKAGE:
            return False
        if "__reduce_ex__" in vars(ancestor) or "__reduce__" in vars(ancestor):
            return True
    return False


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """The call that rebuilds a tensor, as torch writes it."""
    state = {name: value for name, value in vars(tensor).items() if rebuild.is_user_attribute(name)}
    if tensor._is_param:
        return _reduce_parameter(tensor, state)
    function, arguments = _reduce_plain(tensor, tensor.requires_grad)
    if type(tensor) is Tensor and not state:
        return function, arguments
    return rebuild.rebuild_from_type_v2, (function, type(tensor), arguments, state)


def _reduce_parameter(tensor: Tensor, state: dict[str, Any]) -> tuple[Any, ...]:
    requires_grad = tensor.requires_grad
    arguments: tuple[Any, ...] = (_Detached(tensor), requires_grad, OrderedDict())
    if not state:
        return rebuild.rebuild_parameter, arguments
    return rebuild.rebuild_parameter_with_state, (*arguments, state)


@dataclass(frozen=True, slots=True)
class _Detached:
    """The plain tensor inside a Parameter."""

    tensor: Tensor


def _reduce_plain(tensor: Tensor, requires_grad: bool) -> tuple[Any, tuple[Any, ...]]:
    storage = storage_of(tensor)
    size = tuple(tensor._data.shape)
    hooks: OrderedDict[int, Any] = OrderedDict()
    place = (_offset(tensor, storage), size, _strides(tensor), requires_grad, hooks)
    storage_type = STORAGE_TYPES.get(tensor.dtype)
    if storage_type is None:
        arguments = (StorageReference(storage, UNTYPED), *place, tensor.dtype)
        return rebuild.rebuild_tensor_v3, arguments
    return rebuild.rebuild_tensor_v2, (StorageReference(storage, storage_type), *place)


def _offset(tensor: Tensor, storage: Storage) -> int:
    if tensor._data.size == 0:
        return 0
    return (address(tensor._data) - storage.start) // tensor._data.itemsize


def _strides(tensor: Tensor) -> tuple[int, ...]:
    strides = strides_of(tensor)
    if tensor._data.size == 0 and not any(strides):
        # NumPy gives its own empty arrays strides of 0.
        return contiguous_strides(tensor._data.shape)
    return strides


def _reduce_device(value: device) -> tuple[Any, ...]:
    return device, ((value.type,) if value.index is None else (value.type, value.index))


REDUCERS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Size: lambda value: (Size, (tuple(value),)),
    device: _reduce_device,
    layout: lambda value: (rebuild.get_layout, (repr(value),)),
    _Detached: lambda value: _reduce_plain(value.tensor, False),
}
