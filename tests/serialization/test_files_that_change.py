"""Files that others cut short or write to while they are read: an error, never a signal."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.serialization.archive import ArchiveError, ArchiveReader
from flambeau.serialization.file_bytes import WINDOW, FileBytes, bytes_of_file
from flambeau.serialization.safetensors.torch import load_file, save_file

SHORTER = "it has become shorter"


def file_of(path: Path, size: int) -> bytes:
    content = random.Random(size).randbytes(size)
    path.write_bytes(content)
    return content


def test_slices_are_those_of_the_bytes(tmp_path: Path) -> None:
    content = file_of(tmp_path / "x", 5 * WINDOW + 17)
    found, drawn = bytes_of_file(str(tmp_path / "x")), random.Random(1)
    assert isinstance(found, FileBytes)
    assert len(found) == len(content) and bytes(found[:]) == content
    assert bytes(found[-5:]) == content[-5:] and bytes(found[10:5]) == b""
    for _ in range(2000):
        start = drawn.randrange(len(content) + 10)
        stop = start + drawn.choice([0, 1, 30, 300, WINDOW // 4, WINDOW, 3 * WINDOW])
        assert bytes(found[start:stop]) == content[start:stop], (start, stop)
    assert [found[place] for place in range(0, len(content), 999)] == list(content[::999])
    with pytest.raises(IndexError):
        found[len(content)]


def test_a_file_object_is_read_from_its_position_and_stays_open(tmp_path: Path) -> None:
    with (tmp_path / "x.pt").open("w+b") as file:
        file.write(b"before")
        torch.save(torch.arange(5), file)
        file.seek(6)
    with (tmp_path / "x.pt").open("rb") as file:
        file.seek(6)
        assert torch.load(file).tolist() == [0, 1, 2, 3, 4]
        assert file.read() == b""


def test_a_file_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    """Where the window ends, in the middle of a record, and to nothing."""
    for left in (0, 100, WINDOW + 1):
        file_of(tmp_path / "x", 4 * WINDOW)
        found = bytes_of_file(str(tmp_path / "x"))
        os.truncate(tmp_path / "x", left)
        with pytest.raises(ArchiveError, match=SHORTER):
            found[:]
        with pytest.raises(ArchiveError, match=SHORTER):
            found[3 * WINDOW : 3 * WINDOW + 8]
        with pytest.raises(ArchiveError, match=SHORTER):
            found.fill(0, np.empty(4 * WINDOW, np.uint8))  # type: ignore[union-attr]


@pytest.mark.parametrize("threads", [1, 2])
def test_records_of_a_file_that_became_shorter(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "x.pt"
    torch.save({str(n): torch.ones(300_000) for n in range(3)}, path)
    reader = ArchiveReader(bytes_of_file(str(path)))
    os.truncate(path, 1_500_000)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with pytest.raises(ArchiveError, match=SHORTER):
            reader.verify_rest()
    finally:
        torch.set_num_threads(before)


LOADS: dict[str, Any] = {
    "x.pt": torch.load,
    "old.pt": torch.load,
    "script.pt": torch.jit.load,
    "x.safetensors": lambda path: load_file(path, backend="pread"),
}

CUTTER = """
import os, random, sys
path, content = sys.argv[1], open(sys.argv[1], "rb").read()
drawn = random.Random(3)
print("begin", flush=True)
while True:
    os.truncate(path, drawn.randrange(len(content)))
    with open(path, "r+b") as file:
        file.write(content)
"""


def save_all(folder: Path) -> None:
    tensors = {str(n): torch.ones(100_000) for n in range(20)}
    torch.save(tensors, folder / "x.pt")
    torch.save(tensors, folder / "old.pt", _use_new_zipfile_serialization=False)
    save_file(tensors, folder / "x.safetensors")
    module = torch.nn.Sequential(*(torch.nn.Linear(300, 300) for _ in range(20)))
    torch.jit.script(module).save(str(folder / "script.pt"))


@pytest.mark.parametrize("name", ["x.pt", "old.pt", "script.pt"])
def test_loading_while_another_process_cuts_the_file(tmp_path: Path, name: str) -> None:
    """Each load gives the whole content or raises; a signal would end the tests."""
    save_all(tmp_path)
    path = tmp_path / name
    cutter = subprocess.Popen([sys.executable, "-c", CUTTER, str(path)], stdout=subprocess.PIPE)
    assert cutter.stdout is not None
    failed = 0
    try:
        cutter.stdout.readline()
        for _ in range(10):
            try:
                LOADS[name](path)
            except Exception:  # noqa: BLE001 - of any kind: what is read is arbitrary
                failed += 1
    finally:
        cutter.kill()
        cutter.wait()
        cutter.stdout.close()
    assert failed > 0


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    torch.save(torch.arange(1000), tmp_path / "x.pt")
    os.mkfifo(tmp_path / "pipe")
    command = f"cat '{tmp_path}/x.pt' > '{tmp_path}/pipe'"
    with subprocess.Popen(["sh", "-c", command]):
        assert torch.load(tmp_path / "pipe").sum().item() == 499_500


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="there is no /dev/zero")
def test_a_device_that_never_ends() -> None:
    with pytest.raises(pickle.UnpicklingError):
        torch.load("/dev/zero")
    with pytest.raises(RuntimeError):
        torch.jit.load("/dev/zero")
