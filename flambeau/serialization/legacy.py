"""Files from before PyTorch 1.6: a row of pickles and, behind them, the bytes of the storages."""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._tensor.storage import UntypedStorage
from flambeau.serialization.checks import brief, expect
from flambeau.serialization.locations import Restore
from flambeau.serialization.pickler import SavedStorages, TensorPickler
from flambeau.serialization.storages import LoadedStorage, as_text, parse_identity, swap_bytes
from flambeau.serialization.whole_writes import WholeWrites

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
LENGTH = struct.Struct("<q")

# One pickle from a position: (position, persistent_load or None) -> (object, next position).
ReadPickle = Callable[[int, Any], tuple[Any, int]]


def load_legacy(data: memoryview, read_pickle: ReadPickle, restore: Restore) -> tuple[Any, int]:
    """The object of a legacy file and where the file goes on behind it.

    Raises RuntimeError for a wrong magic number or protocol, UnpicklingError for broken content.
    """
    magic, position = read_pickle(0, None)
    if magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version, position = read_pickle(position, None)
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {brief(version)}")
    system, position = read_pickle(position, None)
    foreign = isinstance(system, dict) and _is_big_endian(system)
    storages = LegacyStorages(len(data), restore)
    result, position = read_pickle(position, storages)
    keys, position = read_pickle(position, None)
    return result, storages.fill(data, position, keys, foreign=foreign)


def _is_big_endian(system: dict[Any, Any]) -> bool:
    return system.get("little_endian", system.get(b"little_endian")) is False


class LegacyStorages:
    """Makes the storages that the pickle refers to; their content comes after it."""

    def __init__(self, file_size: int, restore: Restore) -> None:
        self.unclaimed = file_size
        self.restore = restore
        self.roots: dict[str, tuple[np.ndarray, dt.dtype]] = {}
        self.loaded: dict[str, LoadedStorage] = {}

    def __call__(self, raw_identity: tuple[Any, ...]) -> LoadedStorage:
        """The storage for a persistent id; its bytes are zero for now."""
        identity = parse_identity(raw_identity, 6)
        if identity.key not in self.loaded:
            # Together the storages cannot be longer than the file that holds them.
            self.unclaimed -= identity.nbytes
            expect(self.unclaimed >= 0, f"the file is too short for storage {identity.key}")
            array = np.zeros(identity.nbytes, np.uint8)
            restored = self.restore(UntypedStorage(array), identity.location)
            self.roots[identity.key] = (array, identity.type.dtype)
            self.loaded[identity.key] = LoadedStorage(restored, identity.type.dtype)
        return self._view(self.loaded[identity.key], identity.type.dtype, raw_identity[5])

    def _view(self, storage: LoadedStorage, dtype: dt.dtype, view: Any) -> LoadedStorage:
        if view is None:
            return self._typed(storage.untyped(), dtype)
        expect(type(view) is tuple and len(view) == 3, "the view of a storage has three parts")
        _, offset, numel = view
        is_fine = type(offset) is int and type(numel) is int and offset >= 0 and numel >= 0
        expect(is_fine, f"{brief(view)} is no view of a storage")
        start, end = offset * dtype.itemsize, (offset + numel) * dtype.itemsize
        expect(end <= storage.nbytes(), f"{brief(view)} lies outside its storage")
        return self._typed(storage.untyped()[start:end], dtype)

    def _typed(self, memory: UntypedStorage, dtype: dt.dtype) -> LoadedStorage:
        return LoadedStorage(memory, dtype)

    def fill(self, data: memoryview, position: int, keys: Any, *, foreign: bool) -> int:
        """Read the content of all storages, in the order of `keys`; returns where it ends."""
        # Texts first: hashing whatever else a file lists may fail, or take years.
        keys = [as_text(key) for key in keys] if type(keys) is list else [None]
        is_list = all(type(key) is str for key in keys)
        expect(is_list and sorted(keys) == sorted(self.roots), "the storage keys differ")
        for key in keys:
            array, dtype = self.roots[key]
            expect(position + LENGTH.size <= len(data), f"the file ends before storage {key}")
            (numel,) = LENGTH.unpack_from(data, position)
            position += LENGTH.size
            expect(numel * dtype.itemsize == array.size, f"storage {key} has another length")
            expect(position + array.size <= len(data), f"the file ends inside storage {key}")
            array[...] = np.frombuffer(data, np.uint8, array.size, position)
            position += array.size
            if foreign:
                swap_bytes(array, dtype)
            placed = self.loaded[key].untyped()
            if placed.array is not array:  # it was restored to another device
                placed.copy_(UntypedStorage(array))
        return position


def save_legacy(obj: Any, sink: Any, protocol: int, pickler: type[TensorPickler]) -> None:
    """Write `obj` in the legacy format."""
    sink = WholeWrites(sink)
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        sink.write(pickle.dumps(header, protocol))
    storages = SavedStorages()
    pickler(sink, protocol, storages, legacy=True).dump(obj)
    keys = sorted(storages.by_key)
    sink.write(pickle.dumps(keys, protocol))
    for key in keys:
        content = storages.content(key)
        nbytes = content.size
        itemsize = storages.by_key[key].type.dtype.itemsize
        if nbytes % itemsize:
            raise RuntimeError(f"a storage of {nbytes} bytes holds no whole elements")
        sink.write(LENGTH.pack(nbytes // itemsize))
        sink.write(content)
