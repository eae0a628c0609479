"""The .tar files of PyTorch 0.1: members for the storages, the tensors, and the pickle around them.

Only ordinary unpickling reads them, as in PyTorch: all that they name is named by pickles without
any bounds.
"""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy as np

from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau.serialization.checks import brief, expect
from flambeau.serialization.locations import Restore
from flambeau.serialization.rebuild import rebuild_tensor
from flambeau.serialization.storages import LoadedStorage

MAGIC = b"ustar"
MAGIC_OFFSET = 257
MEMBERS = ("storages", "tensors", "pickle")

# One pickle from a stream: (stream, persistent_load or None) -> object.
ReadPickle = Callable[[io.BytesIO, Any], Any]


def is_tar(data: memoryview) -> bool:
    """Whether a file begins like a tar archive."""
    return bytes(data[MAGIC_OFFSET : MAGIC_OFFSET + len(MAGIC)]) == MAGIC


def load_tar(data: memoryview, read_pickle: ReadPickle, restore: Restore) -> Any:
    """The object of a .tar file. Raises UnpicklingError for a member that is missing or broken."""
    storages, tensors, pickled = (_member(data, name) for name in MEMBERS)
    known: dict[int, Any] = {}
    try:
        _read_storages(storages, known, read_pickle, restore)
        _read_tensors(tensors, known, read_pickle)
    except (struct.error, KeyError) as error:
        raise UnpicklingError(f"the .tar file is damaged: {error}") from None
    return read_pickle(pickled, lambda identity: _find(identity, known))


def _member(data: memoryview, name: str) -> io.BytesIO:
    """The content of one member, read in memory: nothing is unpacked to the disk."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            found = archive.extractfile(name)
            expect(found is not None, f"the member {name} of the .tar file is no file")
            return io.BytesIO(found.read())  # type: ignore[union-attr]
    except (tarfile.TarError, KeyError) as error:
        raise UnpicklingError(f"the .tar file has no sound member {name}: {error}") from None


def _find(identity: Any, known: dict[int, Any]) -> Any:
    """What a persistent id stands for: the class of a module, or the tensor of a number."""
    if isinstance(identity, tuple):
        return identity[0]
    return known[int(identity)]


def _read_storages(
    stream: io.BytesIO, known: dict[int, Any], read_pickle: ReadPickle, restore: Restore
) -> None:
    for _ in range(read_pickle(stream, None)):
        key, location, kind = read_pickle(stream, None)
        (count,) = _unpack(stream, "<q")
        nbytes = count * kind.dtype.itemsize
        content = stream.read(nbytes)
        expect(len(content) == nbytes, f"the .tar file ends inside storage {key}")
        memory = UntypedStorage(np.frombuffer(content, np.uint8).copy())
        known[key] = LoadedStorage(restore(memory, location), kind.dtype)
    for target, root, offset, count in read_pickle(stream, None):
        storage = known[root]
        size = storage.element_size()
        part = storage.untyped()[offset * size : (offset + count) * size]
        known[target] = LoadedStorage(part, storage.dtype)


def _read_tensors(stream: io.BytesIO, known: dict[int, Any], read_pickle: ReadPickle) -> None:
    for _ in range(read_pickle(stream, None)):
        key, storage, _ = read_pickle(stream, None)
        known[key] = _read_tensor(stream, known[storage])


def _read_tensor(stream: io.BytesIO, storage: LoadedStorage) -> Tensor:
    """Number of dims, sizes, strides, offset: 64-bit numbers, the first one padded from 32."""
    (ndim,) = _unpack(stream, "<i4x")
    expect(0 <= ndim <= 64, f"a tensor cannot have {brief(ndim)} dims")
    size = _unpack(stream, f"<{ndim}q")
    stride = _unpack(stream, f"<{ndim}q")
    (offset,) = _unpack(stream, "<q")
    return rebuild_tensor(storage, offset, size, stride)


def _unpack(stream: io.BytesIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, stream.read(struct.calcsize(layout)))
