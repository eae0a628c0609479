"""Distributed checkpoints: PyTorch writes and we read, we write and PyTorch reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.distributed import checkpoints, ranks
from tests.random_seeds import generator

pytest.importorskip("torch")

PAIRS = [(1, 2), (2, 1), (2, 4), (4, 2), (4, 4)]
"""How many processes write, and how many read."""


def differences(first: list, second: list) -> list:
    """The lines in which what two programs saw differs."""
    assert [len(lines) for lines in first] == [len(lines) for lines in second]
    pairs = [pair for ours, theirs in zip(first, second, strict=True)
             for pair in zip(ours, theirs, strict=True)]  # fmt: skip
    return [pair for pair in pairs if pair[0] != pair[1]]


@pytest.mark.parametrize("writer", ["torch", "flambeau"])
def test_files(writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    writers, readers = generator(f"checkpoints of {writer}").choice(PAIRS)
    monkeypatch.setenv(checkpoints.FOLDER, str(tmp_path))
    ranks.run(writer, "write", writers)
    theirs = ranks.run("torch", "read", readers)
    ours = ranks.run("flambeau", "read", readers)
    assert differences(theirs, ours) == []
    names = dict(theirs[0])
    assert names[".epoch"] == 3
    assert names["whole"][2][12] == [60.0, 61.0, 62.0, 63.0, 64.0]


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen = []
    for library in ("torch", "flambeau"):
        monkeypatch.setenv(checkpoints.FOLDER, str(tmp_path / library))
        written = ranks.run(library, "write", 2)
        seen.append((written, ranks.run(library, "missing", 2)))
    (theirs_wrote, theirs), (ours_wrote, ours) = seen
    assert sorted(map(str, ours_wrote[0])) == sorted(map(str, theirs_wrote[0]))
    different = [pair for pair in differences(theirs, ours) if not is_meant(*pair)]
    assert different == []


def is_meant(theirs: list, ours: list) -> bool:
    """What several processes have under one name in other sizes: PyTorch saves the first."""
    return theirs[0] == ours[0] == "save ['same']"
