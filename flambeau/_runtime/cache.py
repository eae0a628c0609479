"""Machine code on disk: one file per kernel, safe with many processes, bounded.

A file is a header and the object code. The header has a hash of the code and of the key that it was
written under; in the key are the kernel, the versions of this library and of the compiler, and the
processor's features (`engine.key_of`): a file under another name is not used. Files are written
under another name and renamed, so that a reader finds a whole file or none, whoever else writes
and whenever a writer is killed. What cannot be read or written only costs speed.

Files hold code that runs with our rights. Only a folder that nobody else may change is used
(`cache_folders`), and in it only plain files of this user or of the system's administrator.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from flambeau._runtime import cache_folders

MAGIC = b"flambeau kernel 2\n"
START = len(MAGIC) + 32
LIMIT = 256 << 20
"""Bytes that the cache may hold; the files used longest ago go first."""
LONGEST = 32 << 20
"""Bytes that one file may have: kernels have some thousand."""
CLEAN_EVERY = 64
UNFINISHED = ".new-"
FOLDER = re.compile(r"[0-9a-f]{2}")
NAME = re.compile(r"[0-9a-f]{62}\.o|\.new-\w+")
HOUR = 3600.0
# A pipe in a file's place would be waited for; a link would lead somewhere else.
PLAINLY = sum(getattr(os, f"O_{word}", 0) for word in ("NONBLOCK", "NOFOLLOW", "CLOEXEC", "BINARY"))


class State:
    """How many files this process has written since it last looked at the size."""

    writes = 0


def directory() -> Path | None:
    """Where files lie: `FLAMBEAU_CACHE_DIR`, or `flambeau` in the user's cache directory, or a
    private place if others may write there; None: no cache."""
    return cache_folders.usable()


def _file(key: str) -> Path | None:
    folder = directory()
    return None if folder is None else folder / key[:2] / f"{key[2:]}.o"


def _head(key: str, code: bytes) -> bytes:
    """What a file begins with: the format, and a hash that binds the code to its key."""
    return MAGIC + hashlib.sha256(MAGIC + key.encode() + b"\0" + code).digest()


def read(key: str) -> bytes | None:
    """The machine code under a key, or None; a file that is not what it should be is removed."""
    path = _file(key)
    if path is None or not _is_safe(path):
        return None
    data = _content(path)
    if data is None:
        return None
    code = data[START:]
    if data[:START] != _head(key, code):
        remove(key)
        return None
    return code


def _is_safe(path: Path) -> bool:
    """Whether both folders of the cache above a file are ours: someone may have been faster than
    we at making them."""
    return all(cache_folders.is_private(folder) for folder in (path.parent, path.parent.parent))


def _content(path: Path) -> bytes | None:
    """What a plain file of ours holds; anything else in its place is removed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | PLAINLY)
    except FileNotFoundError:
        return None
    except OSError:  # a link, a socket
        _unlink(path)
        return None
    try:
        status = os.fstat(descriptor)
        if not _is_trusted(status):
            _unlink(path)
            return None
        data = os.read(descriptor, status.st_size + 1)
        if status.st_mtime < time.time() - HOUR:
            with contextlib.suppress(OSError):
                os.utime(path)  # used now, to within the hour
        return data
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _is_trusted(status: os.stat_result) -> bool:
    """Whether it is a plain file that nobody but this user and the administrator could write."""
    is_plain = stat.S_ISREG(status.st_mode) and status.st_size <= LONGEST
    return is_plain and cache_folders.is_ours(status)


def write(key: str, code: bytes) -> bool:
    """Keep machine code under a key; whether that worked."""
    path = _file(key)
    if path is None or START + len(code) > LONGEST:
        return False
    temporary = ""
    try:
        cache_folders.make(path.parent)
        if not _is_safe(path):
            return False
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
        with os.fdopen(handle, "wb") as file:
            file.write(_head(key, code) + code)
        Path(temporary).replace(path)
    except OSError:  # full, read-only, gone
        if temporary:
            _unlink(Path(temporary))
        return False
    State.writes += 1
    if State.writes % CLEAN_EVERY == 1:
        clean(LIMIT)
    return True


def remove(key: str) -> None:
    """Forget what is under a key."""
    path = _file(key)
    if path is not None:
        _unlink(path)


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
        return
    with contextlib.suppress(OSError):
        path.rmdir()  # a folder in a file's place, if nothing is in it


def files() -> Iterator[tuple[float, int, str]]:
    """Every file of the cache: when it was last used, its size, its path."""
    folder = directory()
    if folder is None or not folder.is_dir():
        return
    for below in folder.iterdir():
        if FOLDER.fullmatch(below.name) and not below.is_symlink():
            yield from _files_in(below)


def _files_in(folder: Path) -> Iterator[tuple[float, int, str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
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
