"""`verify`: everything in a file that can be checked without running it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flambeau.serialization.archive import ArchiveError, ArchiveReader
from flambeau.serialization.description.entries import Description
from flambeau.serialization.description.files import ZIP, describe, describe_archive, kind_of
from flambeau.serialization.description.tree import tree_of

CHUNK = 1 << 22

Advance = Callable[[int], None]


@dataclass(slots=True)
class Verdict:
    """What is wrong with a file, a line each; empty: nothing. `checked` says what was looked at."""

    problems: list[str] = field(default_factory=list)
    checked: str = ""


def verify(data: Any, name: str = "", advance: Advance = lambda count: None) -> Verdict:
    """Check the structure, every checksum and the place of every tensor of a file.

    `advance` is told how many bytes were read. Raises what `describe` raises where the structure
    is damaged so that nothing further can be checked.
    """
    if kind_of(data, name) != ZIP:
        return _verdict_on(describe(data, name), f"{len(data)} bytes, a format without checksums")
    reader = ArchiveReader(data)
    broken = list(_broken_records(reader, advance))
    sums = sum(reader.has_crc32(record) for record in reader.names())
    checked = f"{len(reader.names())} records, {sums} with checksums"
    if broken:
        return Verdict(broken, checked)
    return _verdict_on(describe_archive(reader), checked)


def _broken_records(reader: ArchiveReader, advance: Advance) -> Iterator[str]:
    """A line for each record whose content is not what its checksum says."""
    for name in reader.names():
        try:
            reader.confirm(name, _crc32(reader, name, advance))
        except ArchiveError as error:
            yield str(error)


def _crc32(reader: ArchiveReader, name: str, advance: Advance) -> int:
    """The checksum of a record as it is, of a large one in pieces."""
    if not reader.is_stored(name):
        content = reader.view(name, verify=False)
        advance(len(content))
        return zlib.crc32(content)
    fill, result = reader.filler(name), 0
    for start in range(0, reader.size(name), CHUNK):
        chunk = np.empty(min(CHUNK, reader.size(name) - start), np.uint8)
        fill(start, chunk)
        result = zlib.crc32(chunk.data, result)
        advance(chunk.size)
    return result


def _verdict_on(found: Description, checked: str) -> Verdict:
    problems = []
    count = 0
    for name, tensor in tree_of(found.content).tensors():
        count += 1
        problem = tensor.problem()
        if problem is not None:
            problems.append(f"tensor {name}: {problem}")
    for storage in found.storages:
        if storage.itemsize is not None and storage.numel * storage.itemsize > storage.nbytes:
            problems.append(
                f"storage {storage.key}: {storage.numel} elements of {storage.dtype} do not fit "
                f"its {storage.nbytes} bytes"
            )
    summary = f"{checked}, {len(found.storages)} storages, {count} tensors inside them"
    return Verdict(problems, summary)
