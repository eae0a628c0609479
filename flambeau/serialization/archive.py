"""`ArchiveReader`: the one strict zip reader, for checkpoints and TorchScript archives.

Two headers describe every record of a zip file, and lenient readers disagree about which one
counts. This one accepts a file only when both say the same, no record is named twice, no two
records overlap, and every size can be true of a file of this length.
"""

from __future__ import annotations

import dataclasses
import mmap
import zlib
from pathlib import Path
from typing import IO, Any

from flambeau.serialization.zip_format import (
    DESCRIPTOR,
    DESCRIPTOR_SIGNATURE,
    FLAG_DESCRIPTOR,
    FULL_32,
    LOCAL_HEADER,
    LOCAL_SIGNATURE,
    STORED,
    ZIP64_DESCRIPTOR,
    ArchiveError,
    Entry,
    archive_error,
    check_name,
    find_directory,
    read_directory,
    record_error,
    widen,
)

__all__ = ["ArchiveError", "ArchiveReader", "map_file"]

# Deflate cannot exceed 1032:1; checkpoints stay far below 100:1, bombs lie between the two.
MAX_EXPANSION = 100
FREE_EXPANSION = 1 << 20


class ArchiveReader:
    """Read-only access to the records of a PyTorch zip archive.

    `data` is any buffer that holds the whole file. Record names are given without the archive's
    own folder: "data.pkl", not "archive/data.pkl". Raises ArchiveError, a RuntimeError.
    """

    def __init__(self, data: Any, *, verify_crc32: bool = True) -> None:
        self.data = memoryview(data).cast("B")
        self.verify_crc32 = verify_crc32
        if self.data[:4] != LOCAL_SIGNATURE:
            raise archive_error("not a ZIP archive")
        directory = find_directory(self.data)
        entries = read_directory(self.data, directory)
        located = [_locate(self.data, entry, directory.offset) for entry in entries]
        _check_overlap(located, directory.offset)
        _check_expansion(located, len(self.data))
        self.folder = entries[0].name.split("/")[0] if entries else ""
        self._entries = _by_name(located, self.folder)

    def names(self) -> list[str]:
        """The names of all records, in the order of the archive."""
        return list(self._entries)

    def has(self, name: str) -> bool:
        """Whether the archive holds the record."""
        return name in self._entries

    def size(self, name: str) -> int:
        """The number of bytes of a record after decompression."""
        return self._entry(name).size

    def offset(self, name: str) -> int:
        """Where the record's data begins in the file."""
        return self._entry(name).data_offset

    def is_stored(self, name: str) -> bool:
        """Whether the record lies in the file as it is, so that it can be mapped."""
        return self._entry(name).method == STORED

    def read(self, name: str) -> bytes:
        """A copy of the record, decompressed and checked."""
        return bytes(self.view(name))

    def view(self, name: str, *, verify: bool = True) -> memoryview:
        """The record without a copy where it is stored, checked against its CRC-32.

        A stored CRC of 0 means that the writer did not compute one.
        """
        entry = self._entry(name)
        raw = self.data[entry.data_offset : entry.data_offset + entry.compressed_size]
        content = raw if entry.method == STORED else memoryview(_inflate(name, raw, entry.size))
        if verify and self.verify_crc32 and entry.crc32:
            _check_crc32(name, content, entry.crc32)
        return content

    def _entry(self, name: str) -> Entry:
        entry = self._entries.get(name)
        if entry is None:
            raise ArchiveError(f"PytorchStreamReader failed locating file {name}: file not found")
        return entry


def map_file(path: str, access: int = mmap.ACCESS_READ) -> mmap.mmap | bytes:
    """Map a file into memory; an empty file, which cannot be mapped, gives b''."""
    with Path(path).open("rb" if access != mmap.ACCESS_WRITE else "r+b") as file:
        return map_open_file(file, access)


def map_open_file(file: IO[bytes], access: int = mmap.ACCESS_READ) -> mmap.mmap | bytes:
    """Map all of an open file into memory; its position moves to the end."""
    file.seek(0, 2)
    if file.tell() == 0:
        return b""
    return mmap.mmap(file.fileno(), 0, access=access)


def _locate(data: memoryview, entry: Entry, limit: int) -> Entry:
    """Check the local header against the central one; returns the entry with its extent."""
    start = entry.header_offset
    if start + LOCAL_HEADER.size > limit:
        raise record_error(entry.name, "its header lies past the end of the records")
    fields = LOCAL_HEADER.unpack_from(data, start)
    signature, _, flags, method, _, _, crc32, compressed_size, size = fields[:9]
    name_start = start + LOCAL_HEADER.size
    extra_start = name_start + fields[9]
    data_start = extra_start + fields[10]
    if signature != LOCAL_SIGNATURE or data_start > limit:
        raise record_error(entry.name, "its local header is damaged")
    if check_name(bytes(data[name_start:extra_start])) != entry.name:
        raise record_error(entry.name, "its local header has another name")
    if (flags, method) != (entry.flags, entry.method):
        raise record_error(entry.name, "its local header has other flags or another method")
    end = data_start + entry.compressed_size
    if end > limit:
        raise record_error(entry.name, "its data runs past the end of the records")
    wanted = (entry.crc32, entry.size, entry.compressed_size)
    if flags & FLAG_DESCRIPTOR:
        _check_loose(entry, (crc32, size, compressed_size), wanted)
        end = _check_descriptor(data, entry, end, limit)
    else:
        wide = widen(entry.name, data[extra_start:data_start], (size, compressed_size))
        if (crc32, *wide) != wanted:
            raise record_error(entry.name, "its local header has other sizes or another CRC-32")
    return dataclasses.replace(entry, data_offset=data_start, end_offset=end)


def _check_loose(entry: Entry, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """A header with a descriptor behind the data may leave its fields open, but not lie."""
    for value, expected in zip(found, wanted, strict=True):
        if value not in (0, FULL_32, expected):
            raise record_error(entry.name, "its local header has other sizes or another CRC-32")


def _check_descriptor(data: memoryview, entry: Entry, position: int, limit: int) -> int:
    """The end of the data descriptor at `position`, which repeats CRC and sizes.

    Its signature is optional, and its sizes have 4 or 8 bytes without anything to say which.
    """
    values = (entry.crc32, entry.compressed_size, entry.size)
    for layout in (DESCRIPTOR, ZIP64_DESCRIPTOR):
        if layout is DESCRIPTOR and max(values) > FULL_32:
            continue
        expected = layout.pack(DESCRIPTOR_SIGNATURE, *values)
        for form in (expected, expected[4:]):
            if position + len(form) <= limit and data[position : position + len(form)] == form:
                return position + len(form)
    raise record_error(entry.name, "its data descriptor contradicts the central directory")


def _check_overlap(entries: list[Entry], limit: int) -> None:
    position = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < position:
            raise record_error(entry.name, "it overlaps another record")
        position = entry.end_offset
    if position > limit:
        raise archive_error("a record overlaps the central directory")


def _check_expansion(entries: list[Entry], file_size: int) -> None:
    """Refuse sizes that only a decompression bomb has, before anything is allocated."""
    total = 0
    for entry in entries:
        if entry.method == STORED:
            continue
        total += entry.size
        if entry.size > FREE_EXPANSION + MAX_EXPANSION * entry.compressed_size:
            raise record_error(
                entry.name, f"{entry.compressed_size} bytes claim to inflate to {entry.size}"
            )
    if total > FREE_EXPANSION + MAX_EXPANSION * file_size:
        raise archive_error(f"{file_size} bytes claim to inflate to {total}")


def _by_name(entries: list[Entry], folder: str) -> dict[str, Entry]:
    """Records by their name inside the archive's folder; folders themselves are left out."""
    table: dict[str, Entry] = {}
    seen = set()
    for entry in entries:
        if entry.name in seen:
            raise record_error(entry.name, "the archive holds this name twice")
        seen.add(entry.name)
        if not entry.name.startswith(f"{folder}/"):
            raise record_error(entry.name, f"it lies outside the archive's folder {folder}/")
        if not entry.name.endswith("/"):
            table[entry.name[len(folder) + 1 :]] = entry
        elif entry.size:
            raise record_error(entry.name, "a folder cannot hold data")
    return table


def _inflate(name: str, raw: memoryview, size: int) -> bytes:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflater.decompress(raw, size + 1)
    except zlib.error as error:
        raise record_error(name, f"its compressed data is damaged ({error})") from None
    if len(content) != size or not inflater.eof or inflater.unused_data:
        raise record_error(name, f"its compressed data does not inflate to {size} bytes")
    return content


def _check_crc32(name: str, content: memoryview, expected: int) -> None:
    found = zlib.crc32(content)
    if found != expected:
        raise record_error(
            name, f"CRC-32 check failed, the archive says {expected:08x}, its data {found:08x}"
        )
