"""The functions of `torch.serialization` that choose how files are read and written."""

from __future__ import annotations

import mmap
from typing import Any

from flambeau._core import file_options
from flambeau._core.file_options import LoadEndianness

__all__ = [
    "LoadEndianness",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "mapping_access",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]


def mapping_access(writable: bool) -> int:
    """How to map a file: for reading, privately writable, or shared with the file."""
    if not writable:
        return mmap.ACCESS_READ
    shared = file_options.load.mmap_flags == getattr(mmap, "MAP_SHARED", -1)
    return mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY


def get_crc32_options() -> bool:
    """Whether `torch.save` computes the CRC-32 of every record."""
    return file_options.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether `torch.save` computes the CRC-32 of every record; 0 stands for none."""
    file_options.save.compute_crc32 = compute_crc32


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for archives that do not record theirs; None means little."""
    return file_options.load.endianness


def set_default_load_endianness(endianness: Any) -> None:
    """Choose the byte order assumed for archives that do not record theirs."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    file_options.load.endianness = endianness


def get_default_mmap_options() -> int | None:
    """The flags that `torch.load(mmap=True)` maps files with."""
    return file_options.load.mmap_flags


class set_default_mmap_options:
    """Choose `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`; a call or a `with` block.

    Private, the default: writes to loaded tensors stay in this process. Shared: they go to the
    file, which must be writable.
    """

    def __init__(self, flags: int) -> None:
        if not hasattr(mmap, "MAP_PRIVATE"):
            raise RuntimeError(
                "Changing the default mmap options is currently not supported for Windows"
            )
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.previous = file_options.load.mmap_flags
        file_options.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        file_options.load.mmap_flags = self.previous


class skip_data:
    """A `with` block in which files are saved and loaded without the contents of storages.

    Saved files have their full length, with zeros where data belongs and no CRC, so that the data
    can be filled in later; loaded tensors hold zeros.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors  # flambeau has no fake tensors

    def __enter__(self) -> None:
        self.previous = file_options.thread.skip_data
        file_options.thread.skip_data = True

    def __exit__(self, *exc: object) -> None:
        file_options.thread.skip_data = self.previous
