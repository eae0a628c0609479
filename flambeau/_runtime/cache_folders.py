"""Which folder machine code may lie in: one that only this user can change.

Whoever may write to a folder, or to one of those above it, may exchange what lies in it. So all of
them have to belong to this user or to the administrator, and be closed to others, with two
exceptions: a folder with the sticky bit, as /tmp has (nobody can rename there what belongs to
others), and a group that has no member but this user. Another folder is refused with a warning, and
a private one takes its place: `flambeau` in the user's cache directory, else `flambeau-<user's
number>` in the folder for temporary files.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HAS_OWNERS = hasattr(os, "getuid")


def wanted() -> Path | None:
    """FLAMBEAU_CACHE_DIR, or `flambeau` in the user's cache directory; None: no cache."""
    chosen = os.environ.get("FLAMBEAU_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "flambeau"
    return _at_home()


def _at_home() -> Path | None:
    try:
        return Path.home() / ".cache" / "flambeau"
    except RuntimeError:  # a user without a home
        return None


def usable() -> Path | None:
    """The folder that is wanted, if it is safe, or what takes its place; None: no cache."""
    folder = wanted()
    return None if folder is None else _instead_of(folder, os.getuid() if HAS_OWNERS else 0)


@cache
def _instead_of(folder: Path, user: int) -> Path | None:
    """The folder itself or a private one, looked for and warned about once."""
    if not HAS_OWNERS:
        return folder
    try:
        fault = fault_of(folder)
    except OSError:  # it is relative to a working directory that is gone
        return None
    if not fault:
        return Path(os.path.realpath(folder))
    found = next((one for one in _private(user) if not fault_of(one)), None)
    warnings.warn(
        f"compiled kernels are not kept in {folder}: {fault}, so others could choose what "
        f"runs here. {'None are kept' if found is None else f'They are kept in {found}'}; "
        "FLAMBEAU_CACHE_DIR names another folder",
        RuntimeWarning,
        stacklevel=2,
    )
    return found


def _private(user: int) -> Iterator[Path]:
    home = _at_home()
    if home is not None and home.parent.parent.is_dir():
        yield home
    yield Path(os.path.realpath(tempfile.gettempdir())) / f"flambeau-{user}"


def fault_of(folder: Path) -> str:
    """Who could exchange what lies in a folder, by way of which folder; '' for nobody.

    Links are followed first: what they lead to is what is used from then on.
    """
    place = Path(os.path.realpath(folder))
    for path in (place, *place.parents):
        try:
            status = path.lstat()
        except OSError:  # not there yet: we make it, below what is there
            continue
        if not stat.S_ISDIR(status.st_mode):
            continue  # nothing can be kept there, which is no danger
        if not _is_owner_trusted(status.st_uid):
            return f"{path} belongs to user {status.st_uid}"
        is_shared = path != place and status.st_mode & stat.S_ISVTX
        if not is_shared and _others_write(status):
            return f"{path} has mode {stat.S_IMODE(status.st_mode):o}"
    return ""


def is_private(folder: Path) -> bool:
    """Whether a folder within one without fault is ours."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and is_ours(status)


def is_ours(status: os.stat_result) -> bool:
    """Whether only this user and the administrator can have written something."""
    return not HAS_OWNERS or (_is_owner_trusted(status.st_uid) and not _others_write(status))


def _is_owner_trusted(owner: int) -> bool:
    """This user, or who can do anything anyway: the owner of the root folder is another number
    where users are mapped, as in containers."""
    return owner in (0, os.getuid()) or owner == _owner_of_root()


@cache
def _owner_of_root() -> int:
    return Path("/").stat().st_uid


def _others_write(status: os.stat_result) -> bool:
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_own_group(status.st_gid)


@cache
def _is_own_group(group: int) -> bool:
    """Whether a group is this user's alone, as many systems give one to every user."""
    import grp
    import pwd

    with contextlib.suppress(KeyError):
        user, found = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
        is_named_so = user.pw_gid == group and found.gr_name == user.pw_name
        return is_named_so and set(found.gr_mem) <= {user.pw_name}
    return False


def make(folder: Path) -> None:
    """A folder and those above it, each for this user alone, whatever the umask. OSError."""
    for path in (*reversed(folder.parents), folder):
        if not path.exists():
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
