"""Side files: what was found in one pass over an archive, kept beside it as arrays.

`data.tar` has `data.tar.index.npz`. It is made again when the archive has changed, and is only kept
in memory where it can't be written.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from flambeau.utils.data.archives.sources import is_remote

SUFFIX = ".index.npz"


def load(path: str, kind: str, stamp: str, names: tuple[str, ...]) -> dict[str, Any] | None:
    """The arrays of a side file; None if there is none, or it is of another archive or form."""
    if is_remote(path):
        return None
    try:
        with Path(path + SUFFIX).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if str(file["kind"]) != kind or str(file["stamp"]) != stamp:
                return None
            return {name: file[name] for name in names}
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def save(path: str, kind: str, stamp: str, arrays: dict[str, Any]) -> None:
    """Write a side file, whole or not at all."""
    if is_remote(path):
        return
    place = Path(path + SUFFIX)
    with contextlib.suppress(OSError):
        descriptor, name = tempfile.mkstemp(".part", place.name + ".", place.parent)
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                np.savez(file, kind=kind, stamp=stamp, **arrays)
            temporary.replace(place)
        except BaseException:
            temporary.unlink()
            raise
