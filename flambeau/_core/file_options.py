"""Process-wide choices for files: what `torch.utils.serialization.config` shows.

`load` and `save` are the two groups. Assigning to a name that is none raises AttributeError.
"""

from __future__ import annotations

import mmap
import threading
from enum import Enum


class LoadEndianness(Enum):
    """The byte order assumed for archives that do not record theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class LoadOptions:
    """What `torch.load` goes by where its arguments leave it open."""

    __slots__ = ("calculate_storage_offsets", "endianness", "mmap", "mmap_flags")

    def __init__(self) -> None:
        self.mmap = False
        self.endianness: LoadEndianness | None = None  # None: little
        self.mmap_flags: int | None = getattr(mmap, "MAP_PRIVATE", None)  # None: Windows
        self.calculate_storage_offsets = False  # flambeau reads them from the file, always


class SaveOptions:
    """What `torch.save` goes by."""

    __slots__ = ("compute_crc32", "storage_alignment", "use_pinned_memory_for_d2h")

    def __init__(self) -> None:
        self.compute_crc32 = True
        self.use_pinned_memory_for_d2h = False
        self.storage_alignment = 64  # bytes; the data of a record begins at a multiple


class _ThreadChoices(threading.local):
    """What a `with` block chooses for its own thread."""

    skip_data = False


load = LoadOptions()
save = SaveOptions()
thread = _ThreadChoices()
