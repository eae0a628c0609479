"""The bytes of a file, read where they are asked for.

A mapped file that another process cuts short ends the process that reads it (SIGBUS); what is read
by a call is an error instead. It cannot change either between a check and its use.
"""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np

from flambeau.serialization.zip_format import ArchiveError

WINDOW = 16 << 10
"""Bytes read at once where a few are asked for: the next ones lie close to them."""
_lock = threading.Lock()


class FileBytes:
    """All of an open file from `start` on. Slices are read when they are taken."""

    def __init__(self, descriptor: int, start: int = 0) -> None:
        self._descriptor = os.dup(descriptor)
        self._start = start
        self._size = max(os.fstat(descriptor).st_size - start, 0)
        self._window = (0, b"")

    def __del__(self) -> None:
        os.close(self._descriptor)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            if not 0 <= index < self._size:
                raise IndexError("index out of range")
            return self._near(index, index + 1)[0]
        start, stop, _ = index.indices(self._size)
        if stop - start <= WINDOW // 4:
            return self._near(start, max(start, stop))
        content = np.empty(stop - start, np.uint8)
        self.fill(start, content)
        return content.data.toreadonly()

    def _near(self, start: int, stop: int) -> memoryview:
        """Few bytes, from the window if they are there."""
        begin, content = self._window
        if not begin <= start <= stop <= begin + len(content):
            target = np.empty(min(WINDOW, self._size - start), np.uint8)
            self._read(start, target)
            begin, content = self._window = start, target.tobytes()
        return memoryview(content)[start - begin : stop - begin]

    def fill(self, offset: int, target: np.ndarray) -> None:
        """Read bytes from `offset` on until the target, an array of bytes, is full.

        Raises ArchiveError if the file has become too short for that.
        """
        if target.size <= WINDOW // 4:
            target[:] = np.frombuffer(self._near(offset, offset + target.size), np.uint8)
            return
        self._read(offset, target)

    def _read(self, offset: int, target: np.ndarray) -> None:
        view = target.data
        while len(view):
            count = _read_at(self._descriptor, view, self._start + offset)
            if count == 0:
                raise ArchiveError(
                    "PytorchStreamReader failed reading the file: it has become shorter than "
                    f"{self._start + self._size} bytes since it was opened"
                )
            offset += count
            view = view[count:]


def _read_at(descriptor: int, target: memoryview, offset: int) -> int:
    """Read once at a place of a file; how many bytes came."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [target], offset)
    if hasattr(os, "pread"):
        content = os.pread(descriptor, len(target), offset)
    else:  # Windows; the position is shared by all who read
        with _lock:
            os.lseek(descriptor, offset, os.SEEK_SET)
            content = os.read(descriptor, min(len(target), 1 << 30))
    target[: len(content)] = content
    return len(content)


def bytes_of_file(path: str) -> FileBytes | bytes:
    """The bytes of the file at a path; what is no plain file, such as a pipe, is read whole;
    of a character device, which may never end, the first bytes alone: no file is one."""
    with Path(path).open("rb", buffering=0) as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISREG(mode):
            return FileBytes(file.fileno())
        return file.read(WINDOW if stat.S_ISCHR(mode) else -1)


def bytes_of_open_file(file: IO[bytes], start: int) -> FileBytes:
    """The bytes of an open plain file from `start` on; its position moves to the end."""
    file.seek(0, 2)
    return FileBytes(file.fileno(), start)
