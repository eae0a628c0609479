"""`TensorPickler`: writes objects as torch does, with its names and its storage references.

Python's own pickler in Python is the base: the one in C insists that every name it writes can be
imported, and `torch._utils` cannot where only flambeau is installed.
"""

from __future__ import annotations

import io
import pickle
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.layout import memory_format
from flambeau._tensor.attributes import FIELDS, fields_of
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau._tensor.typed_storage import TypedStorage
from flambeau.serialization.locations import location_tag
from flambeau.serialization.names import torch_name
from flambeau.serialization.reducers import Detached, StorageReference, reduce_plain, reducer_of
from flambeau.serialization.storages import (
    STORAGE_TYPES,
    UNTYPED,
    StorageType,
)

PLAIN_TYPES = frozenset((int, float, str, bool, bytes, type(None), list, tuple, dict, OrderedDict))
FLAGS = {True: pickle.NEWTRUE, False: pickle.NEWFALSE}
SHORT_TUPLES = {1: pickle.TUPLE1, 2: pickle.TUPLE2, 3: pickle.TUPLE3}


def integer(value: int) -> bytes:
    """The opcode of a number that is not negative."""
    for opcode, size in ((pickle.BININT1, 1), (pickle.BININT2, 2), (pickle.BININT, 4)):
        if value >> 8 * size == 0 and value < 1 << 31:
            return opcode + value.to_bytes(size, "little")
    content = pickle.encode_long(value)
    return pickle.LONG1 + bytes((len(content),)) + content


class SavedStorages:
    """The storages of one file, each under its key, in the order of their first mention."""

    def __init__(self, make_key: Callable[[int], Any] = str) -> None:
        self.make_key = make_key
        self.keys: dict[Any, Any] = {}
        self.by_key: dict[Any, StorageReference] = {}
        self.sizes: dict[Any, int] = {}

    def identity(self, reference: StorageReference) -> tuple[Any, ...]:
        """The persistent id. RuntimeError if the bytes are saved under two element types."""
        storage = reference.storage
        nbytes = storage.nbytes()
        # Two objects may stand for the same memory; empty storages have no address to compare.
        place = (storage.start, nbytes) if nbytes else id(storage)
        key = self.keys.get(place)
        if key is None:
            key = self.keys[place] = self.make_key(len(self.keys))
            self.by_key[key], self.sizes[key] = reference, nbytes
        elif nbytes and self.by_key[key].type is not reference.type:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that "
                "view the same data as different types"
            )
        numel = nbytes // reference.type.dtype.itemsize
        return ("storage", reference.type, key, location_tag(storage), numel)

    def content(self, key: Any) -> np.ndarray:
        """The bytes of a storage. RuntimeError if it was resized since the pickle named its size:
        no reader would take such a file."""
        content = self.by_key[key].storage.on_host()
        if content.size != self.sizes[key]:
            raise RuntimeError(
                f"storage {key} had {self.sizes[key]} bytes when the object was pickled, and has "
                f"{content.size} now: it was resized while it was saved"
            )
        return content


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

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """As in Python's pickler; what checkpoints are full of goes a shorter way.

        benchmarks/serialization.py, "5000 small tensors".
        """
        kind = type(obj)
        is_plain = kind in PLAIN_TYPES and kind is not OrderedDict
        if not is_plain and not self._is_bare_tensor(obj):
            super().save(obj, save_persistent_id)
            return
        self.framer.commit_frame()
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
        elif is_plain:
            self.dispatch[kind](self, obj)
        else:
            self._save_bare_tensor(obj)

    def _is_bare_tensor(self, obj: Any) -> bool:
        """Whether this is a tensor whose opcodes `_save_bare_tensor` knows."""
        if self.proto >= 4:
            return False
        if type(obj) is Detached:
            return obj.tensor._stored is None and not obj.tensor.is_meta
        return type(obj) is Tensor and not obj.is_meta and fields_of(obj).keys() <= FIELDS

    def _save_bare_tensor(self, obj: Any) -> None:
        """Write the opcodes that Python's pickler makes of `reduce_plain`, all at once."""
        if type(obj) is Detached:
            function, arguments = reduce_plain(obj.tensor, False)
        else:
            function, arguments = reduce_plain(obj, obj.requires_grad)
        reference, offset, size, strides, requires_grad, hooks, *dtype = arguments
        opcodes = [
            self._word(function), pickle.MARK, *self._storage_words(reference), integer(offset),
            self._counts(size), self._counts(strides), FLAGS[requires_grad],
            self._word(OrderedDict), pickle.EMPTY_TUPLE, pickle.REDUCE, self._slot(hooks),
            *map(self._word, dtype), pickle.TUPLE, self._slot(), pickle.REDUCE, self._slot(obj),
        ]  # fmt: skip
        self.write(b"".join(opcodes))

    def _storage_words(self, reference: StorageReference) -> Iterator[bytes]:
        word, kind, key, place, numel, *view = self._identity(reference)
        yield pickle.MARK
        yield from map(self._word, (word, kind, key, place))
        yield integer(numel)
        yield from (pickle.NONE for _ in view)
        yield pickle.TUPLE + self._slot() + pickle.BINPERSID

    def _counts(self, counts: tuple[int, ...]) -> bytes:
        numbers = b"".join(map(integer, counts))
        if not counts:
            return pickle.EMPTY_TUPLE
        if len(counts) <= 3:
            return numbers + SHORT_TUPLES[len(counts)] + self._slot()
        return pickle.MARK + numbers + pickle.TUPLE + self._slot()

    def _word(self, value: Any) -> bytes:
        """A text or a global, in full the first time, later by its number in the memo."""
        known = self.memo.get(id(value))
        if known is not None:
            return self.get(known[0])  # type: ignore[no-any-return]
        if type(value) is str:
            text = value.encode()
            return pickle.BINUNICODE + len(text).to_bytes(4, "little") + text + self._slot(value)
        known = value.full_name if type(value) is StorageType else torch_name(value)
        module, name = known or (value.__module__, value.__qualname__)
        return pickle.GLOBAL + f"{module}\n{name}\n".encode() + self._slot(value)

    def _slot(self, value: Any = None) -> bytes:
        """Put the top of the stack into the memo; without a value, nobody will ask for it."""
        index = len(self.memo)
        self.memo[-1 - index if value is None else id(value)] = index, value
        return self.put(index)  # type: ignore[no-any-return]

    def persistent_id(self, obj: Any) -> Any:
        """The id of a storage; None for everything else."""
        if type(obj) in PLAIN_TYPES:
            return None
        if isinstance(obj, UntypedStorage | TypedStorage):
            obj = _reference(obj)
        if type(obj) is not StorageReference:
            return None
        return self._identity(obj)

    def _identity(self, reference: StorageReference) -> tuple[Any, ...]:
        identity = self.storages.identity(reference)
        return (*identity, None) if self.legacy else identity

    def reducer_override(self, obj: Any) -> Any:
        """Torch's way to write tensors and its own small types."""
        if type(obj) in PLAIN_TYPES:
            return NotImplemented
        reducer = reducer_of(obj)
        return NotImplemented if reducer is None else reducer(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a class or function by name: ours under torch's names, others under their own."""
        known = torch_name(obj)
        if known is None:
            super().save_global(obj, name)
            return
        owner, _, last = known[1].rpartition(".")
        if owner and self.proto < 4:
            # Names with dots came with protocol 4; before, the class is asked for its part.
            holder = attrgetter(owner)(sys.modules[obj.__module__])
            self.save_reduce(getattr, (holder, last), obj=obj)
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


def pickler_class(pickle_module: Any) -> type[TensorPickler]:
    """`TensorPickler`, with the additions of another module's Pickler where there are any.

    Raises NotImplementedError for picklers that do not descend from Python's own in Python.
    """
    base = pickle_module.Pickler
    if base is pickle.Pickler or base is PythonPickler:
        return TensorPickler
    if not (isinstance(base, type) and issubclass(base, PythonPickler)):
        raise NotImplementedError(
            f"torch.save: pickle_module={pickle_module.__name__} is not supported, its Pickler "
            "does not descend from Python's pickle._Pickler"
        )
    return _with_additions(base)


@cache
def _with_additions(base: Any) -> type[TensorPickler]:
    ours = {
        kind: save
        for kind, save in TensorPickler.dispatch.items()
        if PythonPickler.dispatch.get(kind) is not save
    }
    namespace = {"dispatch": {**base.dispatch, **ours}}
    return type("TensorPickler", (TensorPickler, base), namespace)


def pickle_tensors(
    obj: Any, protocol: int, pickler: type[TensorPickler] = TensorPickler
) -> tuple[bytes, SavedStorages]:
    """The pickle of `obj` and the storages that it refers to."""
    storages = SavedStorages()
    buffer = io.BytesIO()
    pickler(buffer, protocol, storages).dump(obj)
    return buffer.getvalue(), storages


def _reference(storage: UntypedStorage | TypedStorage) -> StorageReference:
    if isinstance(storage, TypedStorage):
        return StorageReference(storage.untyped(), STORAGE_TYPES.get(storage.dtype, UNTYPED))
    return StorageReference(storage, UNTYPED)
