"""Write a file so that its name always holds a whole version: the old one or the new one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def atomic_write(path: str) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of `path`; it takes over the name when the block succeeds.

    The data is flushed to the disk before the rename, the folder after it. When the block raises,
    the temporary file is removed and `path` is as it was. A link is followed; a device or pipe,
    which cannot be replaced, is written directly.
    """
    target = Path(os.path.realpath(path))
    previous = target.stat() if target.exists() else None
    if previous is not None and not stat.S_ISREG(previous.st_mode):
        with target.open("wb") as file:
            yield file
        return
    temporary = target.with_name(f".{secrets.token_hex(12)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if previous is not None:
            temporary.chmod(stat.S_IMODE(previous.st_mode))
        temporary.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; Windows cannot open folders and needs no such step."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
