"""`ArchiveWriter`: writes zip archives in the layout of torch's own writer.

Records are stored uncompressed and their data begins at a multiple of 64 bytes, so that a reader
can map them. Local headers stay empty and a data descriptor follows the data, because readers
that compute the offsets of storages without reading headers count on exactly this layout.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from flambeau.serialization.whole_writes import write_whole
from flambeau.serialization.zip_format import (
    CENTRAL_HEADER,
    CENTRAL_SIGNATURE,
    DESCRIPTOR,
    DESCRIPTOR_SIGNATURE,
    END_RECORD,
    END_SIGNATURE,
    FLAG_DESCRIPTOR,
    FLAG_UTF8,
    FULL_16,
    FULL_32,
    LOCAL_HEADER,
    LOCAL_SIGNATURE,
    STORED,
    ZIP64_DESCRIPTOR,
    ZIP64_END_RECORD,
    ZIP64_END_SIGNATURE,
    ZIP64_EXTRA,
    ZIP64_LOCATOR,
    ZIP64_LOCATOR_SIGNATURE,
    check_name,
)

ALIGNMENT = 64
PADDING_TAG = b"FB"
CHUNK = 1 << 18  # fits the cache of a core between writing and summing
SMALL = 1 << 16  # below, a record goes out in one piece


class Sink(Protocol):
    """What an archive is written to."""

    def write(self, data: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Written:
    """A record that has been written."""

    name: bytes
    flags: int
    crc32: int
    size: int
    header_offset: int


class ArchiveWriter:
    """Write records one after the other, then `finish()`.

    `folder` is the name that all records are put under. With `compute_crc32` off, CRCs are
    written as 0, which readers take as "not computed".
    """

    def __init__(
        self, sink: Sink, folder: str, *, compute_crc32: bool = True, alignment: int = ALIGNMENT
    ) -> None:
        self.sink = sink
        self.folder = folder
        self.compute_crc32 = compute_crc32
        self.alignment = alignment
        self.position = 0
        self.records: dict[bytes, Written] = {}

    def write(self, name: str, content: Any, crc32: Callable[[], int] | None = None) -> None:
        """Write one record from any contiguous buffer. Raises ValueError for a repeated name.

        `crc32` gives the content's CRC-32, where other threads compute it meanwhile.
        """
        view = memoryview(content)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        if view.nbytes > SMALL:
            self._write_parts(name, view.nbytes, lambda: self._emit_large(view, crc32))
            return
        record = self._new_record(name, view.nbytes)
        record = replace(record, crc32=zlib.crc32(view) if self.compute_crc32 else 0)
        tail = _descriptor(record) if view.nbytes else b""
        self._emit(b"".join((_local_header(record, self.alignment), view, tail)))
        self.records[record.name] = record

    def _new_record(self, name: str, nbytes: int) -> Written:
        full_name = f"{self.folder}/{name}".encode()
        check_name(full_name)
        if full_name in self.records:
            raise ValueError(f"the archive already has a record {name}")
        # An empty record has no descriptor, as in torch's writer.
        flags = FLAG_UTF8 | FLAG_DESCRIPTOR if nbytes else FLAG_UTF8
        return Written(full_name, flags, 0, nbytes, self.position)

    def _write_parts(self, name: str, nbytes: int, emit_data: Callable[[], int]) -> None:
        record = self._new_record(name, nbytes)
        self._emit(_local_header(record, self.alignment))
        record = replace(record, crc32=emit_data())
        if nbytes:
            self._emit(_descriptor(record))
        self.records[record.name] = record

    def reserve(self, name: str, nbytes: int) -> None:
        """Write one record of zeros without a CRC, for data that is filled in later."""
        self._write_parts(name, nbytes, lambda: self._emit_zeros(nbytes))

    def _emit_zeros(self, nbytes: int) -> int:
        zeros = memoryview(bytes(min(nbytes, CHUNK)))
        for start in range(0, nbytes, CHUNK):
            self._emit(zeros[: nbytes - start])
        return 0

    def _emit_large(self, view: memoryview, crc32: Callable[[], int] | None) -> int:
        """Write the data; returns its CRC-32."""
        sum_here = self.compute_crc32 and crc32 is None
        running = 0
        for start in range(0, view.nbytes, CHUNK):
            chunk = view[start : start + CHUNK]
            self._emit(chunk)
            if sum_here:
                running = zlib.crc32(chunk, running)
        return crc32() if self.compute_crc32 and crc32 is not None else running

    def finish(self, version: int = 3) -> None:
        """Write the version, the archive's identity, the central directory and the end."""
        # From version 6 on the record has another place, where older readers do not find it.
        self.write(".data/version" if version >= 6 else "version", b"%d\n" % version)
        self.write(".data/serialization_id", _identity(list(self.records.values())))
        offset = self.position
        for record in self.records.values():
            self._emit(_central_header(record))
        self._emit(_end_records(offset, self.position - offset, len(self.records)))

    def _emit(self, data: bytes | memoryview) -> None:
        self.position += len(data)
        write_whole(self.sink, data)


def _wide_values(*values: int) -> bytes:
    """The body of a zip64 extra field: the values that 32 bits cannot hold."""
    return b"".join(struct.pack("<Q", value) for value in values if value >= FULL_32)


def _local_header(record: Written, alignment: int) -> bytes:
    extra = b""
    wide = _wide_values(record.size, record.size, record.header_offset)
    if wide:
        extra = struct.pack("<HH", ZIP64_EXTRA, len(wide)) + wide
    prefix = LOCAL_HEADER.size + len(record.name) + len(extra) + 4
    padding = -(record.header_offset + prefix) % alignment
    extra += PADDING_TAG + struct.pack("<H", padding) + b"Z" * padding
    size = FULL_32 if record.size >= FULL_32 else 0
    fields = (0, record.flags, STORED, 0, 0, 0, size, size, len(record.name), len(extra))
    return LOCAL_HEADER.pack(LOCAL_SIGNATURE, *fields) + record.name + extra


def _descriptor(record: Written) -> bytes:
    is_wide = record.size >= FULL_32 or record.header_offset >= FULL_32
    layout = ZIP64_DESCRIPTOR if is_wide else DESCRIPTOR
    return layout.pack(DESCRIPTOR_SIGNATURE, record.crc32, record.size, record.size)


def _central_header(record: Written) -> bytes:
    wide = _wide_values(record.size, record.size, record.header_offset)
    extra = struct.pack("<HH", ZIP64_EXTRA, len(wide)) + wide if wide else b""
    size = min(record.size, FULL_32)
    offset = min(record.header_offset, FULL_32)
    lengths = (len(record.name), len(extra), 0)
    head = (0, 0, record.flags, STORED, 0, 0, record.crc32, size, size)
    header = CENTRAL_HEADER.pack(CENTRAL_SIGNATURE, *head, *lengths, 0, 0, 0, offset)
    return header + record.name + extra


def _end_records(offset: int, size: int, count: int) -> bytes:
    remaining = ZIP64_END_RECORD.size - 12
    wide = ZIP64_END_RECORD.pack(
        ZIP64_END_SIGNATURE, remaining, 0x031E, 45, 0, 0, count, count, size, offset
    )
    locator = ZIP64_LOCATOR.pack(ZIP64_LOCATOR_SIGNATURE, 0, offset + size, 1)
    narrow_count = min(count, FULL_16)
    end = END_RECORD.pack(
        END_SIGNATURE, 0, 0, narrow_count, narrow_count, min(size, FULL_32), min(offset, FULL_32), 0
    )
    return wide + locator + end


def _identity(records: list[Written]) -> bytes:
    """Forty digits that are the same for the same names and contents."""
    names = b"\0".join(record.name.partition(b"/")[2] for record in records)
    contents = b"".join(struct.pack("<IQ", record.crc32, record.size) for record in records)
    return b"".join(_digits(part) for part in (names, contents))


def _digits(part: bytes) -> bytes:
    number = int.from_bytes(hashlib.blake2b(part, digest_size=8).digest(), "little")
    return b"%020d" % number
