"""`PyTorchFileReader`: the records of an archive that `torch.save` wrote, read one by one."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau.serialization.api import bytes_of
from flambeau.serialization.archive import ArchiveReader


class PyTorchFileReader:
    """The records of a zip archive, by name.

    Args:
        file: a path, or a file open for reading.

    Raises:
        RuntimeError: there is no such file, or it is no archive.
        AttributeError: it is neither a path nor a file.

    >>> import flambeau as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save(torch.ones(2), file)
    >>> _ = file.seek(0)
    >>> "data.pkl" in torch._C.PyTorchFileReader(file).get_all_records()
    True
    """

    def __init__(self, file: Any) -> None:
        if not isinstance(file, str | os.PathLike):
            file.tell()
        try:
            self.archive = ArchiveReader(bytes_of(file))
        except OSError as error:
            raise RuntimeError(
                f"open file failed because of errno {error.errno} on fopen: {error.strerror}, "
                f"file path: {file}"
            ) from None

    def get_all_records(self) -> list[str]:
        """The names of all records, in the order of the archive."""
        return self.archive.names()

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return self.archive.has(name)

    def get_record(self, name: str) -> bytes:
        """The bytes of a record. Raises RuntimeError: there is none of this name."""
        return self.archive.read(name)

    def get_record_size(self, name: str) -> int:
        """The number of bytes of a record."""
        return self.archive.size(name)

    def get_record_offset(self, name: str) -> int:
        """Where the bytes of a record begin in the file."""
        return self.archive.offset(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: dt.dtype) -> Tensor:
        """An empty tensor over the bytes of a record, to be asked for its storage.

        Raises:
            RuntimeError: the record has less bytes than `numel` elements of `dtype`.
        """
        content = self.archive.view(name)
        wanted = numel * dtype.itemsize
        if len(content) < wanted:
            raise RuntimeError(f"the record {name} has {len(content)} bytes, and not {wanted}")
        storage = UntypedStorage(np.frombuffer(content[:wanted], np.uint8).copy())
        return ops.empty(0, dtype=dtype).set_(storage, 0, (0,), (1,))  # type: ignore[no-any-return]

    def serialization_id(self) -> str:
        """Digits that name what the archive holds; "" where it has none."""
        name = ".data/serialization_id"
        return self.archive.read(name).decode() if self.archive.has(name) else ""
