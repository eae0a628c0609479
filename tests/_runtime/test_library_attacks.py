"""Files in a library's place: an error that names them, without waiting and without memory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from flambeau._runtime.library import LENGTH, MAGIC, Library


def index_of(kernels: Any) -> bytes:
    fields = {"needs": [], "sources": "s", "caches": {}, "cpu": "", "flags": "", "features": []}
    text = json.dumps({"kernels": kernels, **fields}).encode()
    return MAGIC + LENGTH.pack(len(text)) + text


DEEP = b"[" * 200_000 + b"]" * 200_000
FILES = {
    "an index of 8 EiB": MAGIC + LENGTH.pack(2**63) + b"{}",
    "an index of 1 TiB": MAGIC + LENGTH.pack(2**40) + b"{}",
    "lists within each other": MAGIC + LENGTH.pack(len(DEEP)) + DEEP,
    "text for a place": index_of({"x": "abc"}),
    "a negative offset": index_of({"x": [-5, 10, "a"]}),
    "a negative length": index_of({"x": [0, -1, "a"]}),
    "a fraction": index_of({"x": [0.5, 1, "a"]}),
    "no place": index_of({"x": None}),
    "a list of kernels": index_of([1, 2]),
}


@pytest.mark.parametrize("name", FILES)
def test_hostile_indexes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kernels"
    path.write_bytes(FILES[name])
    with pytest.raises(RuntimeError, match="is no library of kernels"):
        Library(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file(tmp_path: Path) -> None:
    """A pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(RuntimeError, match="is no library of kernels"):
            Library(path)


def test_an_honest_index(tmp_path: Path) -> None:
    path = tmp_path / "kernels"
    path.write_bytes(index_of({"x": [0, 3, "hash"]}) + b"abc")
    assert Library(path).read("y") is None
    with pytest.raises(RuntimeError, match="is damaged: kernel x"):
        Library(path).read("x")
