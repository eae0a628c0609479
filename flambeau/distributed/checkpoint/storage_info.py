"""Where a piece lies in the files of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class _StorageInfo:
    """Some bytes of a file; its name is relative to the checkpoint's folder."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None


@dataclass
class _StoragePrefix:
    """How the names of the files of a process begin, and the number of the first of them."""

    prefix: str
    first: int = 0
