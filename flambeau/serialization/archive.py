"""`ArchiveReader`: the one strict zip reader, for checkpoints and TorchScript archives.

Two headers describe every record of a zip file, and lenient readers disagree about which one
counts. This one accepts a file only when both say the same, no record is named twice, the records
fill the file without overlap or gap, and every size can be true of a file of this length.
"""

from __future__ import annotations

import mmap
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from flambeau.serialization.checksums import Fill, filler_of
from flambeau.serialization.file_bytes import FileBytes
from flambeau.serialization.zip_format import (
    DESCRIPTOR,
    DESCRIPTOR_SIGNATURE,
    FLAG_DESCRIPTOR,
    FULL_32,
    LOCAL_HEADER,
    LOCAL_SIGNATURE,
    STORED,
    ZIP64_DESCRIPTOR,
    ZIP64_VERSION,
    ArchiveError,
    Entry,
    archive_error,
    check_extra,
    check_zip64,
    find_directory,
    read_directory,
    record_error,
    unpack,
    widen,
)

__all__ = ["ArchiveError", "ArchiveReader", "map_file"]

# Deflate cannot exceed 1032:1; checkpoints stay far below 100:1, bombs lie between the two.
# A pickle turns every byte into as much as 216 more (an empty set), so it may expand less.
MAX_EXPANSION = 100
MAX_PICKLE_EXPANSION = 32
FREE_EXPANSION = 1 << 16


class ArchiveReader:
    """Read-only access to the records of a PyTorch zip archive.

    `data` is any buffer that holds the whole file, or its `FileBytes`. Record names are given
    without the archive's own folder: "data.pkl", not "archive/data.pkl". Raises ArchiveError, a
    RuntimeError.
    """

    def __init__(self, data: Any, *, verify_crc32: bool = True) -> None:
        self.data = data if isinstance(data, FileBytes) else memoryview(data).cast("B")
        self.verify_crc32 = verify_crc32
        if self.data[:4] != LOCAL_SIGNATURE:
            raise archive_error("not a ZIP archive")
        directory = find_directory(self.data)
        entries = read_directory(self.data, directory)
        for entry in entries:
            _locate(self.data, entry, directory.offset)
        _check_places(entries, directory.offset)
        _check_expansion(entries, len(self.data))
        self.folder = entries[0].name.split("/")[0] if entries else ""
        self._entries = _by_name(entries, self.folder)
        self._unverified = set(self._entries)

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
        if verify and self.verify_crc32:
            if entry.crc32:
                _check_crc32(name, content, entry.crc32)
            self._unverified.discard(name)
        return content

    def filler(self, name: str) -> Fill:
        """What copies the bytes of a stored record from a place on into an array, unchecked."""
        entry = self._entry(name)
        if isinstance(self.data, FileBytes):
            fill, first = self.data.fill, entry.data_offset
            return lambda start, target: fill(first + start, target)
        return filler_of(np.frombuffer(self.view(name, verify=False), np.uint8))

    def confirm(self, name: str, crc32: int) -> None:
        """Compare a CRC-32 that the caller computed over `view(name, verify=False)`."""
        expected = self._entry(name).crc32
        if expected and crc32 != expected:
            raise _crc32_error(name, expected, crc32)
        self._unverified.discard(name)

    def has_crc32(self, name: str) -> bool:
        """Whether the record is to be checked against a CRC-32."""
        return self.verify_crc32 and self._entry(name).crc32 != 0

    def verify_rest(self, *, leave_out: str | None = None) -> None:
        """Check the records that nobody has read, but those whose name begins with `leave_out`."""
        for name in sorted(self._unverified):
            if leave_out is None or not name.startswith(leave_out):
                self.view(name)

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


def _locate(data: Any, entry: Entry, limit: int) -> None:
    """Check the local header against the central one, and note where the data lie."""
    start = entry.header_offset
    if start + LOCAL_HEADER.size > limit:
        raise record_error(entry.name, "its header lies past the end of the records")
    fields = unpack(LOCAL_HEADER, data, start)
    signature, needed, flags, method, time, date, crc32, compressed_size, size = fields[:9]
    name_start = start + LOCAL_HEADER.size
    extra_start = name_start + fields[9]
    data_start = extra_start + fields[10]
    if signature != LOCAL_SIGNATURE or data_start > limit:
        raise record_error(entry.name, "its local header is damaged")
    if bytes(data[name_start:extra_start]) != entry.name.encode():
        raise record_error(entry.name, "its local header has another name")
    if (flags, method) != (entry.flags, entry.method):
        raise record_error(entry.name, "its local header has other flags or another method")
    _check_stamp(entry, (needed, time, date))
    end = data_start + entry.compressed_size
    if end > limit:
        raise record_error(entry.name, "its data runs past the end of the records")
    wide = check_extra(entry.name, data[extra_start:data_start])
    check_zip64(entry.name, wide, (entry.size, entry.compressed_size, entry.header_offset))
    found = (crc32, compressed_size, size)
    if flags & FLAG_DESCRIPTOR:
        _check_loose(entry, found)
        end = _check_descriptor(data, entry, end, limit, is_wide=wide is not None)
    else:
        _check_sizes(entry, found, wide)
    entry.data_offset, entry.end_offset = data_start, end


def _check_stamp(entry: Entry, found: tuple[int, int, int]) -> None:
    """Both headers repeat version and time; zip64 may be needed by the central one alone."""
    is_wider = entry.stamp[0] == ZIP64_VERSION and found[1:] == entry.stamp[1:]
    if found != entry.stamp and not is_wider:
        raise record_error(entry.name, "its local header has another version or time")


def _check_sizes(entry: Entry, found: tuple[int, int, int], wide: memoryview | None) -> None:
    crc32, compressed_size, size = found
    size, compressed_size = widen(entry.name, wide, (size, compressed_size))
    if (crc32, compressed_size, size) != (entry.crc32, entry.compressed_size, entry.size):
        raise record_error(entry.name, "its local header has other sizes or another CRC-32")


def _check_loose(entry: Entry, found: tuple[int, int, int]) -> None:
    """A header with a descriptor behind the data leaves its fields open, or fills them all."""
    full = (entry.crc32, entry.compressed_size, entry.size)
    if found not in ((0, 0, 0), (0, FULL_32, FULL_32), full):
        raise record_error(entry.name, "its local header has other sizes or another CRC-32")


def _check_descriptor(data: Any, entry: Entry, position: int, limit: int, *, is_wide: bool) -> int:
    """The end of the data descriptor at `position`, which repeats CRC and sizes.

    Its signature is optional. Its sizes have 8 bytes if the header has a zip64 field, but not all
    writers keep to that.
    """
    values = (entry.crc32, entry.compressed_size, entry.size)
    layouts = (ZIP64_DESCRIPTOR, DESCRIPTOR) if is_wide else (DESCRIPTOR, ZIP64_DESCRIPTOR)
    for layout in layouts:
        if layout is DESCRIPTOR and max(values) > FULL_32:
            continue
        expected = layout.pack(DESCRIPTOR_SIGNATURE, *values)
        for form in (expected, expected[4:]):
            if position + len(form) <= limit and data[position : position + len(form)] == form:
                return position + len(form)
    raise record_error(entry.name, "its data descriptor contradicts the central directory")


def _check_places(entries: list[Entry], limit: int) -> None:
    """The records fill the file up to the central directory: no overlap, nothing in between."""
    position = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < position:
            raise record_error(entry.name, "it overlaps another record")
        if entry.header_offset > position:
            raise record_error(entry.name, "bytes that belong to no record lie before it")
        position = entry.end_offset
    if position != limit:
        raise archive_error("bytes that belong to no record lie before the central directory")


def _check_expansion(entries: list[Entry], file_size: int) -> None:
    """Refuse sizes that only a decompression bomb has, before anything is allocated."""
    total = 0
    for entry in entries:
        if entry.method == STORED:
            continue
        total += entry.size
        factor = MAX_PICKLE_EXPANSION if entry.name.endswith(".pkl") else MAX_EXPANSION
        if entry.size > FREE_EXPANSION + factor * entry.compressed_size:
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
        raise _crc32_error(name, expected, found)


def _crc32_error(name: str, expected: int, found: int) -> ArchiveError:
    return record_error(
        name, f"CRC-32 check failed, the archive says {expected:08x}, its data {found:08x}"
    )
