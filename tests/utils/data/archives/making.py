"""Small archives for these tests."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def tar_of(
    path: Path, members: Iterable[tuple[str, bytes]], format: int = tarfile.PAX_FORMAT
) -> str:  # noqa: A002
    """A tar file with these members, in order."""
    with tarfile.open(path, "w", format=format) as tar:
        for name, data in members:
            add(tar, name, data)
    return str(path)


def numbered(folder: Path, counts: list[int]) -> list[str]:
    """Tar files whose samples are the numbers from 0 on, as field `cls`."""
    paths, start = [], 0
    for k, count in enumerate(counts):
        numbers = range(start, start + count)
        paths.append(tar_of(folder / f"{k}.tar", [(f"{n:05}.cls", b"%d" % n) for n in numbers]))
        start += count
    return paths


def image_bytes(kind: str, pixels: Any) -> bytes:
    """An image of pixels [H, W, 3] as a file's bytes."""
    out = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(out, kind)
    return out.getvalue()
