"""The records of a zip file that PyTorch archives use, parsed and checked without trust.

The layout follows PKWARE's APPNOTE 6.3: local headers with their data come first, then the central
directory, then the end records. Everything here reads slices of a buffer, or of a file, and
allocates nothing that the file's own size does not justify.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

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
KNOWN_FLAGS = FLAG_DESCRIPTOR | FLAG_UTF8 | 0x0006  # 0x0006: how hard deflate tried
STORED = 0
DEFLATED = 8
# Control characters, backslashes, drives, and parts that are empty, "." or ".."; the name of a
# folder may end with a slash.
UNSAFE_NAME = re.compile(r"[\x00-\x1f\x7f\\]|^.:|^/|^$|//|(?:^|/)\.\.?(?:/|$)", re.DOTALL)
FULL_16 = 0xFFFF
FULL_32 = 0xFFFFFFFF
ZIP64_EXTRA = 0x0001
PADDING_EXTRA = 0x4246  # "FB": the bytes by which torch aligns the data, all of them "Z"
# Besides those two: times and owners as NTFS and Info-ZIP write them. All others are refused, such
# as 0x7075, which gives a record a second name.
HARMLESS_EXTRAS = frozenset((0x000A, 0x5455, 0x5855, 0x7855, 0x7875))
NEEDED_VERSIONS = frozenset((0, 10, 20, 45))
ZIP64_VERSION = 45
ZIP64_MAKERS = frozenset((45, 63, 0x031E))  # zipfile, 7-Zip; torch and Info-ZIP


class ArchiveError(RuntimeError):
    """A file that is no sound zip archive, in the words of torch's reader."""


def archive_error(detail: str) -> ArchiveError:
    """The error for a broken archive as a whole."""
    return ArchiveError(f"PytorchStreamReader failed reading zip archive: {detail}")


def record_error(name: str, detail: str) -> ArchiveError:
    """The error for one broken record."""
    return ArchiveError(f"PytorchStreamReader failed reading file {name}: {detail}")


@dataclass(slots=True)
class Entry:
    """One record as the central directory describes it.

    `stamp` is what both headers repeat without a use here: version needed, time, date. Where the
    data lie and where the next record begins is filled in from the local header.
    """

    name: str
    method: int
    flags: int
    crc32: int
    compressed_size: int
    size: int
    header_offset: int
    stamp: tuple[int, int, int]
    data_offset: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True)
class Directory:
    """Where the central directory lies and how many entries it announces."""

    offset: int
    size: int
    count: int


def unpack(layout: struct.Struct, data: Any, position: int) -> tuple[Any, ...]:
    """The fields at a place of a buffer or a file."""
    return layout.unpack(data[position : position + layout.size])


def find_directory(data: Any) -> Directory:
    """Locate the central directory through the end records. Raises ArchiveError."""
    end = _find_end_record(data)
    (_, disk, start_disk, here, count, size, offset, _) = unpack(END_RECORD, data, end)
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


def _find_end_record(data: Any) -> int:
    """Where the end record begins. Two that both reach the end of the file are an error."""
    tail_start = max(0, len(data) - END_RECORD.size - FULL_16)
    tail = bytes(data[tail_start:])
    found = []
    last = max(0, len(tail) - END_RECORD.size + len(END_SIGNATURE))
    position = tail.rfind(END_SIGNATURE, 0, last)
    while position >= 0:
        comment_length = END_RECORD.unpack_from(tail, position)[-1]
        if position + END_RECORD.size + comment_length == len(tail):
            found.append(tail_start + position)
        position = tail.rfind(END_SIGNATURE, 0, position)
    if not found:
        raise archive_error("failed finding central directory")
    if len(found) > 1:
        raise archive_error("the archive has two end records")
    return found[0]


def _read_zip64_end(data: Any, locator: int, small: Directory) -> tuple[Directory, int]:
    """The zip64 directory and where its end record begins; it must agree with the 32-bit one."""
    _, disk, position, disks = unpack(ZIP64_LOCATOR, data, locator)
    if disk != 0 or disks != 1 or position + ZIP64_END_RECORD.size != locator:
        raise archive_error("the zip64 end record is not where its locator points")
    fields = unpack(ZIP64_END_RECORD, data, position)
    if fields[0] != ZIP64_END_SIGNATURE or fields[1] != ZIP64_END_RECORD.size - 12:
        raise archive_error("the zip64 end record is damaged")
    maker, needed = fields[2:4]
    if maker not in ZIP64_MAKERS or needed != ZIP64_VERSION:
        raise archive_error("the zip64 end record is of an unknown version")
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


def read_directory(data: Any, directory: Directory) -> list[Entry]:
    """Every entry of the central directory, in order. Raises ArchiveError."""
    entries = []
    position = 0
    content = data[directory.offset : directory.offset + directory.size]
    for _ in range(directory.count):
        entry, position = _read_central_header(content, position, directory.size)
        entries.append(entry)
    if position != directory.size:
        raise archive_error("the central directory holds more than its entries")
    return entries


def _read_central_header(data: memoryview, position: int, end: int) -> tuple[Entry, int]:
    if position + CENTRAL_HEADER.size > end:
        raise archive_error("the central directory is cut short")
    fields = CENTRAL_HEADER.unpack_from(data, position)
    signature, maker, needed, flags, method, time, date, crc32, compressed_size, size = fields[:10]
    name_length, extra_length, comment_length, disk, internal, external, header_offset = fields[10:]
    name_start = position + CENTRAL_HEADER.size
    extra_start = name_start + name_length
    next_position = extra_start + extra_length + comment_length
    if signature != CENTRAL_SIGNATURE or next_position > end:
        raise archive_error("the central directory is damaged")
    name = check_name(bytes(data[name_start:extra_start]), flags)
    wide = check_extra(name, data[extra_start : extra_start + extra_length])
    size, compressed_size, header_offset = widen(name, wide, (size, compressed_size, header_offset))
    check_zip64(name, wide, (size, compressed_size, header_offset))
    if disk != 0:
        raise record_error(name, "multi-disk archives are not supported")
    _check_maker(name, maker, needed, internal | external)
    stamp = (needed, time, date)
    entry = Entry(name, method, flags, crc32, compressed_size, size, header_offset, stamp)
    _check_method(entry)
    return entry, next_position


def _check_maker(name: str, maker: int, needed: int, attributes: int) -> None:
    """Torch's writer puts 0 where others name themselves, and writes no file attributes."""
    if needed not in NEEDED_VERSIONS:
        raise record_error(name, f"it needs version {needed} of the zip format")
    is_sound = attributes == 0 if maker == 0 else maker & 0xFF >= 10 and needed >= 10
    if not is_sound:
        raise record_error(name, "its central header contradicts itself")


def _check_method(entry: Entry) -> None:
    if entry.flags & FLAG_ENCRYPTED:
        raise record_error(entry.name, "encrypted records are not supported")
    if entry.flags & ~KNOWN_FLAGS:
        raise record_error(entry.name, f"the flags {entry.flags:#06x} are not supported")
    if entry.method not in (STORED, DEFLATED):
        raise record_error(entry.name, f"compression method {entry.method} is not supported")
    if entry.method == STORED and entry.compressed_size != entry.size:
        raise record_error(entry.name, "a stored record has two different sizes")


def check_name(raw: bytes, flags: int = FLAG_UTF8) -> str:
    """Decode a record's name; absolute names and names that climb out are errors."""
    if not raw.isascii() and not flags & FLAG_UTF8:
        raise archive_error(f"the record name {raw[:60]!r} is neither ASCII nor marked as UTF-8")
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise archive_error(f"the record name {raw[:60]!r} is not UTF-8") from None
    if UNSAFE_NAME.search(name):
        raise archive_error(f"the record name {name[:60]!r} is not a safe relative path")
    return name


def check_extra(name: str, extra: memoryview) -> memoryview | None:
    """Check the extra blocks of a header; returns the body of the zip64 block, if there is one.

    Every byte must belong to a block, and every block be one whose meaning is known.
    """
    wide = None
    position = 0
    while position < len(extra):
        if position + 4 > len(extra):
            raise record_error(name, "loose bytes behind its extra fields")
        tag, length = struct.unpack_from("<HH", extra, position)
        start = position + 4
        position = start + length
        if position > len(extra):
            raise record_error(name, "an extra field runs past its header")
        body = extra[start:position]
        if tag == ZIP64_EXTRA and wide is None:
            wide = body
        elif tag == ZIP64_EXTRA:
            raise record_error(name, "two zip64 extra fields")
        elif tag == PADDING_EXTRA:
            _check_padding(name, body)
        elif tag not in HARMLESS_EXTRAS:
            raise record_error(name, f"the extra field {tag:#06x} is not supported")
    return wide


def _check_padding(name: str, body: memoryview) -> None:
    if body.tobytes().strip(b"Z"):
        raise record_error(name, "its padding is damaged")


def widen(name: str, wide: memoryview | None, values: tuple[int, ...]) -> tuple[int, ...]:
    """Replace each value that is 0xFFFFFFFF by its 64-bit form from the zip64 extra field."""
    if FULL_32 not in values:
        return values
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


def check_zip64(name: str, wide: memoryview | None, known: tuple[int, ...]) -> None:
    """Numbers that a zip64 field holds beyond what is needed must be true (or 0, for "later")."""
    if wide is None:
        return
    numbers = struct.unpack(f"<{len(wide) // 8}Q", wide[: len(wide) // 8 * 8])
    if len(wide) % 8 or not {0, *known}.issuperset(numbers):
        raise record_error(name, "its zip64 extra field contradicts its headers")
