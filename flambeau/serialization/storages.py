"""Storages of a checkpoint: their names in files, and how records become memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import file_options
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.typed_storage import CLASS_NAMES, TypedStorage, wrap_typed
from flambeau.serialization.allowed import Row
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.checks import brief, expect
from flambeau.serialization.checksums import WORTH_SHARING, Workers, copy_and_sum
from flambeau.serialization.locations import Restore

LARGEST = 2**63 - 1
ALIGNMENT = 16  # of untyped bytes, which may turn out to be complex128


@dataclass(frozen=True, slots=True)
class StorageType:
    """A storage class as files name it: `torch.FloatStorage` holds float32."""

    name: str
    dtype: dt.dtype

    @property
    def full_name(self) -> tuple[str, str]:
        """The module and the name under which files refer to it."""
        return ("torch.storage" if self is UNTYPED else "torch"), self.name


UNTYPED = StorageType("UntypedStorage", dt.uint8)
STORAGE_TYPES = {entry: StorageType(name, entry) for entry, name in CLASS_NAMES.items()}
QUANTIZED = frozenset((
    "QInt8Storage", "QInt32Storage", "QUInt8Storage", "QUInt4x2Storage", "QUInt2x4Storage",
))  # fmt: skip
STORAGE_ROWS = {
    **{f"torch.{name}": Row(StorageType(name, dt.uint8)) for name in QUANTIZED},
    "torch.storage.UntypedStorage": Row(UNTYPED),
    "torch.UntypedStorage": Row(UNTYPED),
    **{f"torch.{entry.name}": Row(entry) for entry in STORAGE_TYPES.values()},
    **{f"torch.cuda.{entry.name}": Row(entry) for entry in STORAGE_TYPES.values()},
}


class LoadedStorage(TypedStorage):
    """A storage from a file: its bytes and the element type that the file gives them."""

    foreign: bool  # untyped bytes in the other byte order; a tensor's dtype says how to swap

    def __init__(
        self,
        memory: UntypedStorage,
        dtype: dt.dtype,
        *,
        foreign: bool = False,
    ) -> None:
        self._untyped_storage = memory
        self.dtype = dtype
        self.foreign = foreign

    def __reduce__(self) -> Any:
        return wrap_typed, (self._untyped_storage, self.dtype)

    @property
    def array(self) -> np.ndarray:
        """The bytes."""
        return self._untyped_storage.array

    def swap(self, dtype: dt.dtype) -> None:
        """Bring untyped bytes of the other byte order into this machine's, once."""
        if self.foreign:
            swap_bytes(self.array, dtype)
            self.foreign = False


@dataclass(frozen=True, slots=True)
class StorageIdentity:
    """The checked form of ("storage", type, key, location, numel)."""

    type: StorageType
    key: str
    location: str
    numel: int

    @property
    def nbytes(self) -> int:
        """The number of bytes that the elements take."""
        return self.numel * self.type.dtype.itemsize


def parse_identity(identity: tuple[Any, ...], length: int = 5) -> StorageIdentity:
    """Check a persistent id from a file. Raises UnpicklingError."""
    word = as_text(identity[0]) if identity else None
    expect(word == "storage", f"Only persistent_load of storage is allowed, but got {brief(word)}")
    expect(len(identity) == length, f"a storage id has {length} parts, got {len(identity)}")
    kind, key, location, numel = identity[1:5]
    key, location = as_text(key), as_text(location)
    expect(type(kind) is StorageType, f"a storage id names no storage type, but {brief(kind)}")
    if kind.name in QUANTIZED:
        raise NotImplementedError(f"torch.{kind.name}: quantized tensors are not supported")
    expect(type(key) is str, f"the key of a storage must be a str, got {type(key)}")
    expect(type(location) is str, f"the location of a storage must be a str, got {type(location)}")
    is_count = type(numel) is int and 0 <= numel <= LARGEST
    expect(is_count, f"a storage cannot have {brief(numel)} elements")
    return StorageIdentity(kind, key, location, numel)


def as_text(value: Any) -> Any:
    """A word of the format; `encoding="bytes"` leaves those of Python 2 as bytes."""
    return value.decode("latin1") if type(value) is bytes else value


def swap_bytes(array: np.ndarray, dtype: dt.dtype) -> None:
    """Reverse the bytes of each element, of each part for complex ones, in place."""
    width = dtype.to_real().itemsize
    if width == 1:
        return
    array[: array.size // width * width].view(f"u{width}").byteswap(inplace=True)


class ArchiveStorages:
    """Loads the storages of one archive, each once.

    `mapped` is the writable mapping that storages shall view instead of being copied, or None.
    The threads of `workers` copy and check large records ahead of the pickle that asks for them.
    """

    def __init__(
        self,
        reader: ArchiveReader,
        restore: Restore,
        *,
        foreign: bool,
        workers: Workers,
        mapped: Any = None,
        folder: str = "data",
        suffix: str = "",
    ) -> None:
        self.reader = reader
        self.folder = folder
        self.suffix = suffix
        self.restore = restore
        self.foreign = foreign
        self.mapped = mapped
        self.loaded: dict[str, LoadedStorage] = {}
        self.begun: dict[str, tuple[np.ndarray, Callable[[], int]]] = {}
        if mapped is None and workers.sharing and not file_options.thread.skip_data:
            self._begin(workers)

    def _begin(self, workers: Workers) -> None:
        for name in self.reader.names():
            is_large = self.reader.size(name) >= WORTH_SHARING
            if is_large and name.startswith(f"{self.folder}/") and self.reader.is_stored(name):
                target = np.empty(self.reader.size(name), np.uint8)
                verify = self.reader.has_crc32(name)
                finish = workers.copy(self.reader.filler(name), target, verify=verify)
                self.begun[name] = target, finish

    def __call__(self, raw_identity: tuple[Any, ...]) -> LoadedStorage:
        """The storage for a persistent id."""
        identity = parse_identity(raw_identity)
        storage = self.loaded.get(identity.key)
        if storage is None:
            storage = self.loaded[identity.key] = self._load(identity)
        if storage.dtype is identity.type.dtype:
            return storage
        if identity.nbytes > storage.nbytes():
            raise _size_error(identity, storage.nbytes())
        foreign = storage.foreign
        return self._typed(storage.untyped(), identity.type.dtype, foreign=foreign)

    def _typed(self, memory: UntypedStorage, dtype: dt.dtype, *, foreign: bool) -> LoadedStorage:
        return LoadedStorage(memory, dtype, foreign=foreign)

    def _load(self, identity: StorageIdentity) -> LoadedStorage:
        name = f"{self.folder}/{identity.key}{self.suffix}"
        available = self.reader.size(name)
        slack = available - identity.nbytes
        # A buffer whose length is no multiple of the element size keeps its last bytes.
        if not 0 <= slack < identity.type.dtype.itemsize:
            raise _size_error(identity, available)
        array = self._bytes(name, identity.nbytes, identity.type.dtype.itemsize)
        if self.foreign:
            swap_bytes(array, identity.type.dtype)
        memory = UntypedStorage(array)
        memory.is_ours = self.mapped is None
        restored = self.restore(memory, identity.location)
        untyped = self.foreign and identity.type is UNTYPED
        return self._typed(restored, identity.type.dtype, foreign=untyped)

    def _bytes(self, name: str, nbytes: int, itemsize: int) -> np.ndarray:
        if file_options.thread.skip_data:
            return np.zeros(nbytes, np.uint8)
        if name in self.begun:
            target, finish = self.begun.pop(name)
            self.reader.confirm(name, finish())
            return target[:nbytes]
        offset = self.reader.offset(name)
        alignment = itemsize if itemsize > 1 else ALIGNMENT
        is_mappable = self.reader.is_stored(name) and offset % alignment == 0
        # Bytes of the other order are swapped in place, which a shared mapping would write back.
        if self.mapped is not None and is_mappable and not self.foreign:
            return np.frombuffer(self.mapped, np.uint8, nbytes, offset)
        return self._copied(name, nbytes)

    def _copied(self, name: str, nbytes: int) -> np.ndarray:
        if not self.reader.is_stored(name):
            return np.frombuffer(self.reader.view(name), np.uint8, nbytes).copy()
        target = np.empty(self.reader.size(name), np.uint8)
        crc32 = copy_and_sum(self.reader.filler(name), 0, target, self.reader.has_crc32(name))
        self.reader.confirm(name, crc32)
        return target[:nbytes]


def _size_error(identity: StorageIdentity, available: int) -> UnpicklingError:
    return UnpicklingError(
        f"storage {identity.key} shall hold {identity.numel} elements of {identity.type.dtype}, "
        f"{identity.nbytes} bytes, but its record has {available}"
    )
