"""Memory that processes share: an anonymous file that each of them maps.

It has no name: when the last process that maps it or holds its descriptor ends, it is gone.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref

import numpy as np


class SharedMemory:
    """`array`: the memory, bytes; `descriptor`: of its file, open as long as this object lives."""

    def __init__(self, size: int, descriptor: int | None = None) -> None:
        """New memory of zeros, or that of a file whose descriptor becomes this object's own."""
        if descriptor is None:
            descriptor = anonymous_file(max(size, 1), "flambeau-tensor")
        self.descriptor = descriptor
        weakref.finalize(self, os.close, self.descriptor)
        mapped = mmap.mmap(self.descriptor, max(size, 1))
        self.array: np.ndarray = np.frombuffer(mapped, np.uint8)[:size]

    def key(self) -> tuple[int, int]:
        """What is the same in all processes that map this memory."""
        status = os.fstat(self.descriptor)
        return status.st_dev, status.st_ino


def anonymous_file(size: int, title: str) -> int:
    """The descriptor of a new file in memory that has no name; `title` is shown by the system."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create(title, os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
