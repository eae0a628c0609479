"""Writing all of some bytes to a file object, or an error.

Unbuffered files may take a part only: pipes what there is room for, plain files what the system
takes at once (2 GiB on Linux), and pipes that nobody may wait for nothing at all.
"""

from __future__ import annotations

import errno
import io
import os
from typing import Any


def write_whole(file: Any, data: Any) -> None:
    """Write all bytes of a contiguous buffer.

    Raises:
        BlockingIOError: the file must not be waited for, and takes no more now.
        OSError: it takes no more.
    """
    rest = memoryview(data)
    rest = rest.cast("B") if rest.nbytes else memoryview(b"")
    while rest.nbytes:
        count = file.write(rest)
        if count is None and isinstance(file, io.RawIOBase):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), 0)
        if count == 0:
            raise OSError(errno.EIO, "the file object takes no more bytes")
        # Writers of other kinds that report nothing took all.
        rest = rest[count:] if isinstance(count, int) else rest[:0]


class WholeWrites:
    """A file object whose `write` takes all it is given, for what does not look at the answer."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, data: Any, /) -> int:
        """Write all bytes; how many they are."""
        write_whole(self.file, data)
        return memoryview(data).nbytes
