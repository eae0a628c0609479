"""Machine code on disk: one file per kernel, safe with many processes, bounded.

A file is a header (magic, SHA-256 of the rest) and the object code. It is written under another
name and renamed, so that a reader finds a whole file or none, whoever else writes and whenever a
writer is killed. What cannot be read or written only costs speed. Files of other users are not
trusted: they hold code that would run with our rights.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

MAGIC = b"flambeau kernel 1\n"
LIMIT = 256 << 20
"""Bytes that the cache may hold; the files used longest ago go first."""
CLEAN_EVERY = 64
UNFINISHED = ".new-"
HOUR = 3600.0


class State:
    """How many files this process has written since it last looked at the size."""

    writes = 0


def directory() -> Path | None:
    """FLAMBEAU_CACHE_DIR, or `flambeau` in the user's cache directory; None: no cache."""
    chosen = os.environ.get("FLAMBEAU_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "flambeau"
    try:
        return Path.home() / ".cache" / "flambeau"
    except RuntimeError:  # a user without a home
        return None


def _file(key: str) -> Path | None:
    folder = directory()
    return None if folder is None else folder / key[:2] / f"{key[2:]}.o"


def read(key: str) -> bytes | None:
    """The machine code under a key, or None; a damaged file is removed."""
    path = _file(key)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read()
    except OSError:
        return None
    if not _is_trusted(status):
        return None
    start = len(MAGIC) + 32
    code = data[start:]
    if data[:start] != MAGIC + hashlib.sha256(code).digest():
        remove(key)
        return None
    if status.st_mtime < time.time() - HOUR:
        with contextlib.suppress(OSError):
            os.utime(path)  # used now, to within the hour
    return code


def _is_trusted(status: os.stat_result) -> bool:
    """Whether a file belongs to this user or to the system's administrator."""
    return not hasattr(os, "getuid") or status.st_uid in (0, os.getuid())


def write(key: str, code: bytes) -> bool:
    """Keep machine code under a key; whether that worked."""
    path = _file(key)
    if path is None:
        return False
    temporary = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(code).digest() + code)
        Path(temporary).replace(path)
    except OSError:  # full, read-only, gone
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        return False
    State.writes += 1
    if State.writes % CLEAN_EVERY == 1:
        clean(LIMIT)
    return True


def remove(key: str) -> None:
    """Forget what is under a key."""
    path = _file(key)
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink()


def files() -> Iterator[tuple[float, int, str]]:
    """Every file of the cache: when it was last used, its size, its path."""
    folder = directory()
    if folder is None or not folder.is_dir():
        return
    for below in folder.iterdir():
        if len(below.name) == 2 and below.is_dir():
            with contextlib.suppress(OSError), os.scandir(below) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        status = entry.stat()
                        yield status.st_mtime, status.st_size, entry.path


def size() -> tuple[int, int]:
    """How many files the cache has, and their bytes."""
    sizes = [length for _, length, _ in files()]
    return len(sizes), sum(sizes)


def clean(limit: int) -> None:
    """Remove the files used longest ago until no more than `limit` bytes are left, and what killed
    processes left unfinished."""
    found = sorted(files())
    total = sum(length for _, length, _ in found)
    long_ago = time.time() - HOUR
    for used, length, name in found:
        path = Path(name)
        abandoned = path.name.startswith(UNFINISHED) and used < long_ago
        if total > limit or abandoned:
            with contextlib.suppress(OSError):
                path.unlink()
                total -= length


def clear() -> None:
    """Remove everything."""
    clean(-1)
