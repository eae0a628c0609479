"""Where the samples of a tar file lie.

Members with the same name up to the first dot of their last part are one sample, as WebDataset has
it: `a/0001.jpg` and `a/0001.cls` are the fields `jpg` and `cls` of the sample `a/0001`. They follow
each other in the archive.
"""

from __future__ import annotations

import tarfile
from typing import Any

import numpy as np

from flambeau.utils.data.archives import side_files
from flambeau.utils.data.archives.sources import AsFile, SourceError

KIND = "tar index 1"
ARRAYS = ("starts", "offsets", "sizes", "names")


def key_and_field(name: str) -> tuple[str, str]:
    """ "a/0001.seg.png" -> ("a/0001", "seg.png"); the field is in lower case."""
    folder, _, last = name.rpartition("/")
    stem, _, field = last.partition(".")
    return (f"{folder}/{stem}" if folder else stem), field.lower()


class TarIndex:
    """The members of a tar file: `offsets` and `sizes` of their data, and their names; sample k
    has the members from `starts[k]` to `starts[k + 1]`.
    """

    def __init__(self, starts: Any, offsets: Any, sizes: Any, names: Any) -> None:
        self.starts, self.offsets, self.sizes = starts, offsets, sizes
        self.raw = names
        self.names: list[str] | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def members(self, sample: int) -> list[tuple[str, int, int]]:
        """(name, offset, size) of a sample's members."""
        if self.names is None:
            self.names = bytes(self.raw).decode("utf-8", "surrogateescape").split("\n")
        found = range(int(self.starts[sample]), int(self.starts[sample + 1]))
        return [(self.names[k], int(self.offsets[k]), int(self.sizes[k])) for k in found]

    def __getstate__(self) -> Any:
        return {**vars(self), "names": None}


def index_of(source: Any) -> TarIndex:
    """The index of a tar file, from its side file if that is there and up to date.

    Raises:
        SourceError: it is no tar file, compressed, or cut short; the text names file and offset.
    """
    found = side_files.load(source.name, KIND, source.stamp, ARRAYS)
    if found is not None and _is_sound(found, source.size):
        return TarIndex(**found)
    arrays = _read(source)
    side_files.save(source.name, KIND, source.stamp, arrays)
    return TarIndex(**arrays)


def _is_sound(arrays: dict[str, Any], size: int) -> bool:
    """Whether the arrays of a side file can be those of an archive of this size."""
    starts, offsets, sizes = (arrays[name] for name in ARRAYS[:3])
    count = len(offsets)
    return bool(
        len(starts) and starts[0] == 0 and starts[-1] == count == len(sizes)
        and (np.diff(starts) > 0).all() and (offsets >= 0).all() and (sizes >= 0).all()
        and (not count or (offsets + sizes).max() <= size)
        and (arrays["names"] == ord("\n")).sum() == max(count - 1, 0)
    )  # fmt: skip


def _read(source: Any) -> dict[str, Any]:
    """One pass over the headers."""
    starts: list[int] = []
    offsets: list[int] = []
    sizes: list[int] = []
    names: list[str] = []
    last = None
    for member in _files(source):
        key, _ = key_and_field(member.name)
        if key != last:
            starts.append(len(names))
            last = key
        names.append(member.name)
        offsets.append(member.offset_data)
        sizes.append(member.size)
    starts.append(len(names))
    text = "\n".join(names).encode("utf-8", "surrogateescape")
    return {
        "starts": np.array(starts, np.int64), "offsets": np.array(offsets, np.int64),
        "sizes": np.array(sizes, np.int64), "names": np.frombuffer(text, np.uint8),
    }  # fmt: skip


def _files(source: Any) -> Any:
    """The members that are ordinary files and are no metadata (`__name__`)."""
    where = 0
    try:
        with tarfile.open(fileobj=AsFile(source), mode="r:") as tar:  # type: ignore[call-overload]
            for member in tar:
                where = member.offset
                tar.members = []  # type: ignore[attr-defined]
                base = member.name.rpartition("/")[2]
                if not member.isfile() or (base.startswith("__") and base.endswith("__")):
                    continue
                _check(member, source)
                yield member
            _check_end(tar.offset, source)  # type: ignore[attr-defined]
    except tarfile.TarError as error:
        raise SourceError(f"{source.name}: no tar file, or a damaged one, behind offset {where}: "
                          f"{error}{_hint(source)}") from error  # fmt: skip


def _check(member: tarfile.TarInfo, source: Any) -> None:
    if member.issparse():
        raise SourceError(f"{source.name}: member {member.name!r} at offset {member.offset} is "
                          "sparse, which is not read")  # fmt: skip
    if member.offset_data + member.size > source.size:
        raise SourceError(
            f"{source.name} ends at byte {source.size}, in the middle of member {member.name!r}: "
            f"{member.size} bytes at offset {member.offset_data}"
        )
    if "\n" in member.name:
        raise SourceError(f"{source.name}: member {member.name!r} has a line break in its name")


def _check_end(where: int, source: Any) -> None:
    """tarfile takes everything that is no header for the end; the end is a block of zeros."""
    block = source.read(where, min(tarfile.BLOCKSIZE, source.size - where))
    if len(block) < tarfile.BLOCKSIZE:
        raise SourceError(f"{source.name} ends at byte {source.size} without an end mark: it was "
                          "cut short, or is not yet finished")  # fmt: skip
    if any(block):
        raise SourceError(f"{source.name}: damaged, no tar header at offset {where}")


MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7z": "xz", b"\x28\xb5": "zstd"}


def _hint(source: Any) -> str:
    head = source.read(0, min(3, source.size))
    for start, name in MAGIC.items():
        if head.startswith(start):
            return (f" (compressed with {name}: such a file can't be read from the middle; "
                    "unpack it, the images inside are compressed anyway)")  # fmt: skip
    return ""
