"""Machine code on disk: one file per kernel, safe with many processes, bounded.

A file is a header (magic, SHA-256 of the rest) and the object code. It is written under another
name and renamed, so that a reader finds a whole file or none. What cannot be read or written only
costs speed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

MAGIC = b"flambeau kernel 1\n"
LIMIT = 256 << 20
"""Bytes that the cache may hold; the files used longest ago go first."""
CLEAN_EVERY = 64


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
        data = path.read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + 32
    code = data[start:]
    if data[:start] == MAGIC + hashlib.sha256(code).digest():
        with contextlib.suppress(OSError):
            os.utime(path)  # used now
        return code
    remove(key)
    return None


def write(key: str, code: bytes) -> bool:
    """Keep machine code under a key; whether that worked."""
    path = _file(key)
    if path is None:
        return False
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(code).digest() + code)
        Path(temporary).replace(path)
    except OSError:  # full, read-only, gone
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


def clean(limit: int) -> None:
    """Remove the files used longest ago until no more than `limit` bytes are left."""
    folder = directory()
    if folder is None:
        return
    found = []
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size


def clear() -> None:
    """Remove everything."""
    clean(-1)
