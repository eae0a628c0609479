"""TFRecord files as a dataset.

A record is its length (8 bytes, little-endian), the masked CRC-32C of these, the data, and the
masked CRC-32C of the data. `data.tfrecord` has the index `data.tfrecord.index.npz` beside it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np

from flambeau._ops.table.namespace import ops
from flambeau.utils.data.archives import side_files
from flambeau.utils.data.archives.crc32c import masked
from flambeau.utils.data.archives.example import parse
from flambeau.utils.data.archives.sources import SourceError
from flambeau.utils.data.archives.stream import ArchiveDataset

KIND = "tfrecord index 1"
HEAD = struct.Struct("<QI")
TAIL = struct.Struct("<I")


def index_of(source: Any) -> np.ndarray:
    """Where the data of each record begins and how long it is, int64 [records, 2].

    Raises:
        SourceError: a damaged or cut file; the text names the offset.
    """
    found = side_files.load(source.name, KIND, source.stamp, ("places",))
    if found is not None and _is_sound(found["places"], source.size):
        table: np.ndarray = found["places"]
        return table
    places, offset = [], 0
    while offset < source.size:
        if source.size - offset < HEAD.size:
            raise SourceError(f"{source.name} ends in the middle of a record's head, at offset "
                              f"{offset}")  # fmt: skip
        head = source.read(offset, HEAD.size)
        length, told = HEAD.unpack(head)
        if masked(head[:8]) != told:
            raise SourceError(f"{source.name}: no TFRecord file, or a damaged one: wrong checksum "
                              f"of a record's length at offset {offset}")  # fmt: skip
        start = offset + HEAD.size
        if length + TAIL.size > source.size - start:
            raise SourceError(f"{source.name} ends at byte {source.size}, in the middle of a "
                              f"record of {length} bytes at offset {start}")  # fmt: skip
        places.append((start, length))
        offset = start + length + TAIL.size
    table = np.array(places, np.int64).reshape(-1, 2)
    side_files.save(source.name, KIND, source.stamp, {"places": table})
    return table


def _is_sound(places: np.ndarray, size: int) -> bool:
    return bool(
        places.ndim == 2 and places.shape[1] == 2 and (places >= 0).all()
        and (not len(places) or (places.sum(1) + TAIL.size).max() <= size)
    )  # fmt: skip


class TFRecordDataset(ArchiveDataset):
    """The records of TFRecord files, each exactly once per pass, for any number of workers and
    ranks.

    urls_or_paths, transform, shuffle, seed, rank, world_size, on_error: as of `TarDataset`.
    parse_example: whether records are `tf.train.Example`s, which become dicts of features: int64
        and float32 tensors, lists of bytes; False gives the bytes of records.
    verify: whether the checksum of each record's data is compared.

    Raises:
        SourceError: a damaged or cut file, a wrong checksum; which file, and where.
    """

    def __init__(
        self,
        urls_or_paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        parse_example: bool = True,
        verify: bool = True,
        transform: Callable[[Any], Any] | None = None,
        shuffle: int = 0,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        on_error: str = "raise",
    ) -> None:
        super().__init__(urls_or_paths, shuffle, seed, rank, world_size, on_error, transform)
        self.parse_example, self.verify = parse_example, verify

    def index_of(self, source: Any) -> np.ndarray:
        """Where each record begins, and how long it is."""
        return index_of(source)

    def sample(self, source: Any, file: int, number: int) -> Any:
        """One record."""
        start, length = map(int, self.indices[file][number])
        whole = source.read(start, length + TAIL.size)
        data = whole[:length]
        if self.verify and masked(data) != TAIL.unpack(whole[length:])[0]:
            raise ValueError(f"wrong checksum of the {length} bytes at offset {start}")
        if not self.parse_example:
            return data
        return {
            name: value if isinstance(value, list) else ops.as_tensor(value)
            for name, value in parse(data).items()
        }


def write_record(file: BinaryIO, data: bytes) -> None:
    """Append a record to a TFRecord file."""
    length = struct.pack("<Q", len(data))
    file.write(length + TAIL.pack(masked(length)) + data + TAIL.pack(masked(data)))
