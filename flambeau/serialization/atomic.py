"""Write a file so that its name always holds a whole version: the old one or the new one.

What users may count on:

* The data go to a temporary neighbour `.NAME.<24 hex digits>.tmp`, which takes over the name when
  they are on the disk. Whatever happens before that, the old file is as it was.
* An exception removes the temporary file. A process that is killed leaves it; the next save under
  the same name removes it. A lock that each writer holds tells left files from those at work.
* A link is followed, the file behind it replaced. Owner, mode and extended attributes of an old
  file stay; a read-only file is not replaced. Other hard links to the old file keep the old
  content.
* A device or a pipe cannot be replaced and is written directly; so is what is open already and
  has a name by that (`/dev/stdout`), and a file whose folder or owner allows no other way.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open
    fcntl = None  # type: ignore[assignment]

TOKEN_BYTES = 12
OPEN_FILES = re.compile(r"/proc/(\d+|self)/(task/\d+/)?fd|/dev/fd")
"""Folders whose files are open ones, by their descriptors."""
FORBIDDEN = frozenset((errno.EACCES, errno.EPERM, errno.EROFS))
UNREPLACED = frozenset((errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES))
# Others may have put a pipe, which would be waited for, or a link where a left file would be.
PLAINLY = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
LONGEST_NAME = 200  # bytes of the file's name in its neighbour's: file systems allow 255 in all
# Folders on some file systems cannot be opened or synced; the rename has happened all the same.
UNSYNCED = frozenset((errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM))


@contextmanager
def atomic_write(path: str) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of `path`; it takes over the name when the block succeeds.

    When the block raises, the neighbour is removed and `path` is as it was. Raises OSError, a
    PermissionError if there is a file that may not be written.
    """
    if not os.path.basename(path):  # noqa: PTH119  a Path forgets the slash that a name ends with
        missing = errno.EISDIR if path else errno.ENOENT
        raise OSError(missing, os.strerror(missing), path)
    previous = _status(Path(path))
    is_plain = previous is None or stat.S_ISREG(previous.st_mode)
    target = Path(os.path.realpath(path))
    if not is_plain or _is_open_file(path):
        with Path(path).open("wb") as device:
            yield device
        return
    if previous is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    remove_left_files(target)
    neighbour = _neighbour_or_none(target, previous)
    if neighbour is None:
        with target.open("wb") as old:
            yield old
            old.flush()
            os.fsync(old.fileno())
        return
    temporary, file = neighbour
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name != "nt":
                _take_over(temporary, target)
        if os.name == "nt":  # an open file cannot be renamed there
            temporary.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _is_open_file(path: str) -> bool:
    """Whether a path leads to a file by one of its descriptors, as /dev/stdout does: whoever has
    opened it would not see what takes over its name."""
    place = Path(path)
    for _ in range(40):  # as many links as systems follow
        folder = os.path.realpath(place.parent)
        if OPEN_FILES.fullmatch(folder):
            return True
        place = Path(folder) / place.name
        if not place.is_symlink():
            return False
        place = Path(folder) / place.readlink()
    return False


def _take_over(temporary: Path, target: Path) -> None:
    """Give the temporary file the name; where the file system forbids that, as for a file that is
    mounted by itself, give the old file its content."""
    try:
        temporary.replace(target)
    except OSError as error:
        if error.errno not in UNREPLACED:
            raise
        with temporary.open("rb") as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
            sink.flush()
            os.fsync(sink.fileno())
        temporary.unlink()


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _prefix(target: Path) -> str:
    name = os.fsencode(target.name)[:LONGEST_NAME].decode("utf-8", "ignore")
    return f".{name}."


def _neighbour_or_none(
    target: Path, previous: os.stat_result | None
) -> tuple[Path, IO[bytes]] | None:
    """The temporary file; None where an old file can be written, but not replaced by its like."""
    try:
        return _open_neighbour(target, previous)
    except OSError as error:
        if previous is None or error.errno not in FORBIDDEN:
            error.filename = str(target)
            raise
        return None


def _open_neighbour(target: Path, previous: os.stat_result | None) -> tuple[Path, IO[bytes]]:
    """Make the temporary file and lock it; while it is empty, it gets owner, mode and attributes of
    the old one. OSError where that is not allowed."""
    while True:
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(TOKEN_BYTES)}.tmp")
        file = temporary.open("xb")
        try:
            _lock(file, wait=True)
            # Another save may have taken it for a left file before it was locked.
            if temporary.exists():
                if previous is not None:
                    _make_like(temporary, target, previous)
                return temporary, file
        except BaseException:
            file.close()
            temporary.unlink(missing_ok=True)
            raise
        file.close()


def _make_like(temporary: Path, target: Path, previous: os.stat_result) -> None:
    """Give a new file the owner, mode and extended attributes (with access lists) of the old."""
    mine = temporary.stat()
    if hasattr(os, "chown") and (mine.st_uid, mine.st_gid) != (previous.st_uid, previous.st_gid):
        os.chown(temporary, previous.st_uid, previous.st_gid)
    temporary.chmod(stat.S_IMODE(previous.st_mode))
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):  # a file system without any
        for name in os.listxattr(target):
            with suppress(OSError):  # one that only the administrator may give
                os.setxattr(temporary, name, os.getxattr(target, name))


def _lock(file: IO[bytes], *, wait: bool) -> bool:
    """Lock an open file until it is closed; False where somebody else holds it, or none can."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def remove_left_files(target: Path) -> None:
    """Remove the temporary neighbours of `target` whose writers are gone."""
    pattern = re.compile(rf"{re.escape(_prefix(target))}[0-9a-f]{{{2 * TOKEN_BYTES}}}\.tmp")
    try:
        left = [path for path in target.parent.iterdir() if pattern.fullmatch(path.name)]
    except OSError:
        return  # the folder may be written but not read
    for path in left:
        with suppress(OSError):
            _remove_if_left(path)


def _remove_if_left(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | PLAINLY)
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and _lock(file, wait=False):
            path.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; Windows cannot open folders and needs no such step."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in UNSYNCED:
            raise
