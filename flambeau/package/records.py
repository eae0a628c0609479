"""The files of a package: those of an archive, or of a folder that it was unpacked to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from flambeau._tensor.storage import UntypedStorage
from flambeau.serialization.api import bytes_of
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.checksums import Workers
from flambeau.serialization.file_reader import PyTorchFileReader
from flambeau.serialization.loader import byte_order
from flambeau.serialization.locations import Restore
from flambeau.serialization.storages import ArchiveStorages, LoadedStorage, parse_identity

MISSING = (
    "PytorchStreamReader failed locating file {}: file not found. This is an internal miniz error. "
    "If you are seeing this error, there is a high likelihood that your checkpoint file is "
    "corrupted. This can happen if the checkpoint was not saved properly, was transferred "
    "incorrectly, or the file was modified after saving."
)
FindStorage = Callable[[tuple[Any, ...]], LoadedStorage]


class Records(Protocol):
    """The files of a package, by name."""

    def names(self) -> list[str]: ...

    def has(self, name: str) -> bool: ...

    def read(self, name: str) -> bytes: ...

    def path(self, name: str) -> Path | None: ...

    def storages(self, restore: Restore) -> Any: ...


def open_records(file: Any) -> Records:
    """The files of a package.

    Args:
        file: a path of a file or a folder, a file open for reading, or a `PyTorchFileReader`.

    >>> from flambeau.package.records import open_records
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_records(folder).names()
    []
    """
    if isinstance(file, PyTorchFileReader):
        return ArchiveRecords(file.archive)
    is_path = isinstance(file, str | os.PathLike)
    if is_path and Path(file).is_dir():
        return FolderRecords(Path(file))
    try:
        return ArchiveRecords(ArchiveReader(bytes_of(file)))
    except OSError as error:
        raise RuntimeError(
            f"open file failed because of errno {error.errno} on fopen: {error.strerror}, "
            f"file path: {file}"
        ) from None


class ArchiveRecords:
    """Those of an archive."""

    def __init__(self, reader: ArchiveReader) -> None:
        self.reader = reader

    def names(self) -> list[str]:
        """Their names, in the order in which they were written."""
        return self.reader.names()

    def has(self, name: str) -> bool:
        """Whether there is one of this name."""
        return self.reader.has(name)

    def read(self, name: str) -> bytes:
        """The bytes of one. RuntimeError if there is none of this name."""
        if not self.reader.has(name):
            raise RuntimeError(MISSING.format(name))
        return self.reader.read(name)

    def path(self, name: str) -> Path | None:
        """None: they have no paths."""
        return None

    @contextmanager
    def storages(self, restore: Restore) -> Iterator[FindStorage]:
        """What finds storages by what pickles say of them."""
        with Workers(len(self.reader.data)) as workers:
            foreign = byte_order(self.reader) != sys.byteorder
            yield ArchiveStorages(
                self.reader, restore, foreign=foreign, workers=workers, folder=".data",
                suffix=".storage",
            )  # fmt: skip


class FolderRecords:
    """Those of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """Their names, in order; without what is hidden, as the package's own records are."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        names = sorted(path.relative_to(self.folder).as_posix() for path in files)
        return [name for name in names if not name.startswith(".")]

    def has(self, name: str) -> bool:
        """Whether there is one of this name."""
        return (self.folder / name).is_file()

    def read(self, name: str) -> bytes:
        """The bytes of one. RuntimeError if there is none of this name."""
        if not self.has(name):
            raise RuntimeError(MISSING.format(name))
        return (self.folder / name).read_bytes()

    def path(self, name: str) -> Path | None:
        """Where one is."""
        return self.folder / name

    @contextmanager
    def storages(self, restore: Restore) -> Iterator[FindStorage]:
        """What finds storages by what pickles say of them."""
        found: dict[str, LoadedStorage] = {}

        def find(raw_identity: tuple[Any, ...]) -> LoadedStorage:
            identity = parse_identity(raw_identity)
            if identity.key not in found:
                content = self.read(f".data/{identity.key}.storage")
                memory = UntypedStorage(np.frombuffer(content, np.uint8).copy())
                placed = restore(memory, identity.location)
                found[identity.key] = LoadedStorage(placed, identity.type.dtype, foreign=False)
            return found[identity.key]

        yield find
