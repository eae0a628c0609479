"""A store in a file: a log of operations, which every process reads and carries out for itself."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import IO

from flambeau.distributed.errors import DistStoreError
from flambeau.distributed.stores.base import Store, wait_timed_out
from flambeau.distributed.stores.requests import pack_request, unpack_request
from flambeau.distributed.stores.table import HIDDEN, Table
from flambeau.distributed.wire import LARGEST, LENGTH, frame

if sys.platform != "win32":
    import fcntl  # here: while Python ends, when a store goes, nothing can be imported

READING = frozenset(("get", "check", "count", "list", "length"))
PAUSE = 0.01
"""Seconds between looks at the file."""


class FileStore(Store):
    """A store in a file that all processes can open and lock.

    Args:
        file_name: the file, made if it is not there. It should not be left from another run.
        world_size: how many processes use it; the last one to go removes the file. -1: nobody does.
    """

    __module__ = "torch.distributed"

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = str(file_name)
        self._world_size = world_size
        self._table = Table()
        self._read = 0
        Path(self.path).touch()
        self.add(HIDDEN, 1)

    def _ask(self, operation: str, keys: list[str], values: list[bytes]) -> list[bytes]:
        with Path(self.path).open("r+b") as file, _Locked(file):
            self._catch_up(file)
            answer = self._table.perform(operation, keys, values)
            if operation not in READING:
                file.seek(self._read)
                record = frame(pack_request(operation, keys, values))
                file.write(record)
                self._read += len(record)
        return answer

    def _catch_up(self, file: IO[bytes]) -> None:
        """Carry out what others have written since."""
        file.seek(self._read)
        new = file.read()
        at = 0
        while at + LENGTH.size <= len(new):
            (length,) = LENGTH.unpack_from(new, at)
            end = at + LENGTH.size + length
            if length > LARGEST or end > len(new):
                break  # whoever wrote it was stopped; the next record takes its place
            try:
                self._table.perform(*unpack_request(new[at + LENGTH.size : end]))
            except (ValueError, LookupError, TypeError) as error:
                raise DistStoreError(f"{self.path} is no file of a FileStore: {error}") from error
            at = end
        self._read += at

    def _wait(self, keys: list[str], timeout: timedelta) -> None:
        deadline = time.monotonic() + timeout.total_seconds()
        while not self._ask("check", keys, []):
            if time.monotonic() >= deadline:
                raise wait_timed_out(keys, timeout)
            time.sleep(PAUSE)

    def clone(self) -> FileStore:
        """Another object for the same file, for another thread."""
        other = FileStore.__new__(FileStore)
        Store.__init__(other)
        other.path, other._world_size = self.path, -1
        other._table, other._read = Table(), 0
        other.set_timeout(self.timeout)
        return other

    def __del__(self) -> None:
        if getattr(self, "_world_size", -1) < 1:
            return
        try:
            if self.add("cleanup/", 1) == self._world_size:
                Path(self.path).unlink()
        except (OSError, DistStoreError):
            pass  # it is gone or another file, or the interpreter ends


class _Locked:
    """A file that no other process has locked meanwhile."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def __enter__(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *exc: object) -> None:
        self.file.flush()
        fcntl.flock(self.file, fcntl.LOCK_UN)
