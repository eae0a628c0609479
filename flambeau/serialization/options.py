"""Process-wide choices for saving and loading."""

from __future__ import annotations

import mmap
from enum import Enum
from typing import Any


class LoadEndianness(Enum):
    """The byte order assumed for archives that do not record theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class Options:
    """The choices now in force."""

    compute_crc32 = True
    endianness: LoadEndianness | None = None
    mmap_flags: int = mmap.MAP_PRIVATE if hasattr(mmap, "MAP_PRIVATE") else 2

    def access(self, writable: bool) -> int:
        """How to map a file: for reading, privately writable, or shared with the file."""
        if not writable:
            return mmap.ACCESS_READ
        shared = self.mmap_flags == getattr(mmap, "MAP_SHARED", None)
        return mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY


OPTIONS = Options()


def get_crc32_options() -> bool:
    """Whether `torch.save` computes the CRC-32 of every record."""
    return OPTIONS.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether `torch.save` computes the CRC-32 of every record; 0 stands for none."""
    OPTIONS.compute_crc32 = compute_crc32


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for archives that do not record theirs; None means little."""
    return OPTIONS.endianness


def set_default_load_endianness(endianness: Any) -> None:
    """Choose the byte order assumed for archives that do not record theirs."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    OPTIONS.endianness = endianness


def get_default_mmap_options() -> int:
    """The flags that `torch.load(mmap=True)` maps files with."""
    return OPTIONS.mmap_flags


class set_default_mmap_options:
    """Choose `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`; a call or a `with` block."""

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.previous = OPTIONS.mmap_flags
        OPTIONS.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        OPTIONS.mmap_flags = self.previous
