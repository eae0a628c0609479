"""Files that are read anywhere: local ones, and remote ones by HTTP ranges."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections import OrderedDict
from typing import Any

BLOCK = 1 << 20
"""Bytes that are fetched at once from a remote file."""
BLOCKS = 8
"""Blocks of a remote file that are kept."""
PATIENCE = 30.0
"""Seconds that a server may take to answer."""


class SourceError(OSError):
    """A file that can't be read as it should be; the text names it and the place in it."""


class LocalFile:
    """A file of this machine. `stamp` changes when its contents do."""

    descriptor = -1

    def __init__(self, path: str) -> None:
        self.name = path
        self.descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        status = os.fstat(self.descriptor)
        self.size = status.st_size
        self.stamp = f"{status.st_size} {status.st_mtime_ns}"

    def read(self, start: int, size: int) -> bytes:
        """Exactly `size` bytes.

        Raises:
            SourceError: the file ends before.
        """
        data = os.pread(self.descriptor, size, start)
        while len(data) < size:
            more = os.pread(self.descriptor, size - len(data), start + len(data))
            if not more:
                end = os.fstat(self.descriptor).st_size
                raise SourceError(f"{self.name} ends at byte {end}, in the middle of {size} bytes "
                                  f"at offset {start}")  # fmt: skip
            data += more
        return data

    def close(self) -> None:
        """Close the file."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class RemoteFile:
    """A file behind http:// or https://, of which the server gives ranges."""

    def __init__(self, url: str) -> None:
        self.name = url
        self.blocks: OrderedDict[int, bytes] = OrderedDict()
        request = urllib.request.Request(url, headers={"Range": "bytes=0-0"})  # noqa: S310
        with self._open(request) as answer:
            total = answer.headers.get("Content-Range", "").rpartition("/")[2]
            if answer.status != 206 or not total.isdigit():
                raise SourceError(f"{url}: the server does not give ranges of files, which reading "
                                  "an archive in parts needs")  # fmt: skip
            self.size = int(total)
            mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified", "")
            self.stamp = f"{total} {mark}"

    def _open(self, request: Any) -> Any:
        try:
            return urllib.request.urlopen(request, timeout=PATIENCE)  # noqa: S310
        except (urllib.error.URLError, TimeoutError) as error:
            raise SourceError(f"{self.name}: {error}") from error

    def _block(self, number: int) -> bytes:
        if number in self.blocks:
            self.blocks.move_to_end(number)
            return self.blocks[number]
        start, end = number * BLOCK, min((number + 1) * BLOCK, self.size)
        wanted = {"Range": f"bytes={start}-{end - 1}"}
        with self._open(urllib.request.Request(self.name, headers=wanted)) as answer:  # noqa: S310
            data: bytes = answer.read()
        if len(data) != end - start:
            raise SourceError(f"{self.name}: {len(data)} bytes instead of {end - start} at offset "
                              f"{start}")  # fmt: skip
        self.blocks[number] = data
        if len(self.blocks) > BLOCKS:
            self.blocks.popitem(last=False)
        return data

    def read(self, start: int, size: int) -> bytes:
        """Exactly `size` bytes.

        Raises:
            SourceError: the file ends before, or the server fails.
        """
        if start + size > self.size:
            raise SourceError(f"{self.name} ends at byte {self.size}, in the middle of {size} "
                              f"bytes at offset {start}")  # fmt: skip
        first, last = start // BLOCK, max(start + size - 1, start) // BLOCK
        data = b"".join([self._block(number) for number in range(first, last + 1)])
        return data[start - first * BLOCK :][:size]

    def close(self) -> None:
        """Forget what was fetched."""
        self.blocks.clear()


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return path.startswith(("http://", "https://"))


def opened(path: str) -> LocalFile | RemoteFile:
    """The file of a path or URL.

    Raises:
        OSError: it can't be opened.
    """
    if is_remote(path):
        return RemoteFile(path)
    return LocalFile(path.removeprefix("file://"))


class AsFile:
    """A source with a position, for readers that want a file."""

    def __init__(self, source: Any) -> None:
        self.source, self.place = source, 0

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes."""
        left = max(self.source.size - self.place, 0)
        size = left if size is None or size < 0 else min(size, left)
        data: bytes = self.source.read(self.place, size)
        self.place += size
        return data

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        """Move; the new position."""
        self.place = place + {0: 0, 1: self.place, 2: self.source.size}[whence]
        return self.place

    def tell(self) -> int:
        """The position."""
        return self.place
