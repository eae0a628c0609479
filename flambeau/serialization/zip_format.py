"""The records of a zip file that PyTorch archives use, parsed and checked without trust.

The layout follows PKWARE's APPNOTE 6.3: local headers with their data come first, then the central
directory, then the end records. Everything here reads from a memoryview and allocates nothing
that the file's own size does not justify.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
CENTRAL_HEADER = struct.Struct("<4sHHHHHHIIIHHHHHII")
END_RECORD = struct.Struct("<4sHHHHIIH")
ZIP64_END_RECORD = struct.Struct("<4sQHHIIQQQQ")
ZIP64_LOCATOR = struct.Struct("<4sIQI")
DESCRIPTOR = struct.Struct("<4sIII")
ZIP64_DESCRIPTOR = struct.Struct("<4sIQQ")

LOCAL_SIGNATURE = b"PK\x03\x04"
CENTRAL_SIGNATURE = b"PK\x01\x02"
END_SIGNATURE = b"PK\x05\x06"
ZIP64_END_SIGNATURE = b"PK\x06\x06"
ZIP64_LOCATOR_SIGNATURE = b"PK\x06\x07"
DESCRIPTOR_SIGNATURE = b"PK\x07\x08"

FLAG_ENCRYPTED = 0x0001
FLAG_DESCRIPTOR = 0x0008
FLAG_UTF8 = 0x0800
STORED = 0
DEFLATED = 8
FULL_16 = 0xFFFF
FULL_32 = 0xFFFFFFFF
ZIP64_EXTRA = 0x0001


class ArchiveError(RuntimeError):
    """A file that is no sound zip archive, in the words of torch's reader."""


def archive_error(detail: str) -> ArchiveError:
    """The error for a broken archive as a whole."""
    return ArchiveError(f"PytorchStreamReader failed reading zip archive: {detail}")


def record_error(name: str, detail: str) -> ArchiveError:
    """The error for one broken record."""
    return ArchiveError(f"PytorchStreamReader failed reading file {name}: {detail}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One record as the central directory describes it; `data_offset` comes from its header."""

    name: str
    method: int
    flags: int
    crc32: int
    compressed_size: int
    size: int
    header_offset: int
    data_offset: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True)
class Directory:
    """Where the central directory lies and how many entries it announces."""

    offset: int
    size: int
    count: int


def find_directory(data: memoryview) -> Directory:
    """Locate the central directory through the end records. Raises ArchiveError."""
    end = _find_end_record(data)
    (_, disk, start_disk, here, count, size, offset, _) = END_RECORD.unpack_from(data, end)
    if disk not in (0, FULL_16) or start_disk not in (0, FULL_16) or here != count:
        raise archive_error("multi-disk archives are not supported")
    directory = Directory(offset, size, count)
    limit = end
    if end >= ZIP64_LOCATOR.size:
        locator = end - ZIP64_LOCATOR.size
        if data[locator : locator + 4] == ZIP64_LOCATOR_SIGNATURE:
            directory, limit = _read_zip64_end(data, locator, directory)
    if directory.offset + directory.size != limit:
        raise archive_error("the central directory does not end where the end record begins")
    if directory.count * CENTRAL_HEADER.size > directory.size:
        raise archive_error(f"{directory.count} entries do not fit the central directory")
    return directory


def _find_end_record(data: memoryview) -> int:
    tail_start = max(0, len(data) - END_RECORD.size - FULL_16)
    tail = bytes(data[tail_start:])
    position = tail.rfind(END_SIGNATURE)
    while position >= 0:
        fits = position + END_RECORD.size <= len(tail)
        if fits:
            comment_length = END_RECORD.unpack_from(tail, position)[-1]
            if position + END_RECORD.size + comment_length == len(tail):
                return tail_start + position
        position = tail.rfind(END_SIGNATURE, 0, position)
    raise archive_error("failed finding central directory")


def _read_zip64_end(data: memoryview, locator: int, small: Directory) -> tuple[Directory, int]:
    """The zip64 directory and where its end record begins; it must agree with the 32-bit one."""
    _, disk, position, disks = ZIP64_LOCATOR.unpack_from(data, locator)
    if disk != 0 or disks > 1 or position + ZIP64_END_RECORD.size != locator:
        raise archive_error("the zip64 end record is not where its locator points")
    fields = ZIP64_END_RECORD.unpack_from(data, position)
    if fields[0] != ZIP64_END_SIGNATURE or fields[1] != ZIP64_END_RECORD.size - 12:
        raise archive_error("the zip64 end record is damaged")
    here, count, size, offset = fields[6:]
    if here != count or fields[4] or fields[5]:
        raise archive_error("multi-disk archives are not supported")
    pairs = (
        (small.count, count, FULL_16),
        (small.size, size, FULL_32),
        (small.offset, offset, FULL_32),
    )
    for narrow, wide, marker in pairs:
        if narrow not in (wide, marker):
            raise archive_error("the two end records contradict each other")
    return Directory(offset, size, count), position


def read_directory(data: memoryview, directory: Directory) -> list[Entry]:
    """Every entry of the central directory, in order. Raises ArchiveError."""
    entries = []
    position = directory.offset
    end = directory.offset + directory.size
    for _ in range(directory.count):
        entry, position = _read_central_header(data, position, end)
        entries.append(entry)
    if position != end:
        raise archive_error("the central directory holds more than its entries")
    return entries


def _read_central_header(data: memoryview, position: int, end: int) -> tuple[Entry, int]:
    if position + CENTRAL_HEADER.size > end:
        raise archive_error("the central directory is cut short")
    fields = CENTRAL_HEADER.unpack_from(data, position)
    signature, _, _, flags, method, _, _, crc32, compressed_size, size = fields[:10]
    name_length, extra_length, comment_length, disk, _, _, header_offset = fields[10:]
    name_start = position + CENTRAL_HEADER.size
    extra_start = name_start + name_length
    next_position = extra_start + extra_length + comment_length
    if signature != CENTRAL_SIGNATURE or next_position > end:
        raise archive_error("the central directory is damaged")
    name = check_name(bytes(data[name_start:extra_start]))
    extra = data[extra_start : extra_start + extra_length]
    size, compressed_size, header_offset = widen(
        name, extra, (size, compressed_size, header_offset)
    )
    if disk != 0:
        raise record_error(name, "multi-disk archives are not supported")
    if flags & FLAG_ENCRYPTED:
        raise record_error(name, "encrypted records are not supported")
    if method not in (STORED, DEFLATED):
        raise record_error(name, f"compression method {method} is not supported")
    if method == STORED and compressed_size != size:
        raise record_error(name, "a stored record has two different sizes")
    entry = Entry(name, method, flags, crc32, compressed_size, size, header_offset)
    return entry, next_position


def check_name(raw: bytes) -> str:
    """Decode a record's name; absolute names and names that climb out are errors."""
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise archive_error(f"the record name {raw!r} is not UTF-8") from None
    parts = name.removesuffix("/").split("/")
    unsafe = any(part in ("", ".", "..") for part in parts)
    if unsafe or "\\" in name or "\0" in name or name[1:2] == ":":
        raise archive_error(f"the record name {name!r} is not a safe relative path")
    return name


def extra_fields(name: str, extra: memoryview) -> dict[int, memoryview]:
    """The extra blocks of a header by tag; a block that runs over the end is an error."""
    fields: dict[int, memoryview] = {}
    position = 0
    while position + 4 <= len(extra):
        tag, length = struct.unpack_from("<HH", extra, position)
        position += 4
        if position + length > len(extra):
            raise record_error(name, "an extra field runs past its header")
        if tag in fields and tag == ZIP64_EXTRA:
            raise record_error(name, "two zip64 extra fields")
        fields[tag] = extra[position : position + length]
        position += length
    return fields


def widen(name: str, extra: memoryview, values: tuple[int, ...]) -> tuple[int, ...]:
    """Replace each value that is 0xFFFFFFFF by its 64-bit form from the zip64 extra field."""
    if FULL_32 not in values:
        return values
    wide = extra_fields(name, extra).get(ZIP64_EXTRA)
    if wide is None:
        raise record_error(name, "the zip64 extra field is missing")
    result = []
    position = 0
    for value in values:
        if value != FULL_32:
            result.append(value)
            continue
        if position + 8 > len(wide):
            raise record_error(name, "the zip64 extra field is too short")
        result.append(struct.unpack_from("<Q", wide, position)[0])
        position += 8
    return tuple(result)
