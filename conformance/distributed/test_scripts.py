"""Programs as the documentation shows them, unmodified under both libraries' torchrun: their losses
are those of one process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.random_seeds import some

pytest.importorskip("torch")

SCRIPTS = Path(__file__).with_name("scripts")
ROOT = Path(__file__).parents[2]
ALONE = {"torch": [], "flambeau": ["-m", "flambeau", "run"]}
LAUNCHED = {"elastic": ["--max-restarts=2"], "ddp_spawned": None}
"""What torchrun is told besides; None: the program starts its processes itself."""
UNSTEADY = {"elastic"}
"""After a restart PyTorch's gloo may be told a peer's address of the round before, and gives up:
its losses in one process are those to be had."""
PROGRAMS = some(
    "scripts",
    ["ddp", "ddp_spawned", "elastic", "fsdp", "tensor_parallel", "loss_parallel", "two_dims",
     "pipeline"], 2,
)  # fmt: skip
CHAINS = {
    "PyTorch's": [("torch", 4), ("torch", 2)],
    "ours": [("flambeau", 2), ("flambeau", 4)],
    "ours of theirs": [("torch", 4), ("flambeau", 2)],
    "theirs of ours": [("flambeau", 4), ("torch", 2)],
}
"""Who writes a checkpoint, and who goes on from it, in how many processes."""


def printed(words: list[str], script: str, *more: Any) -> list[Any]:
    """What a program prints in the end: its losses, and perhaps numbers by names."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *words, str(SCRIPTS / f"{script}.py"), *map(str, more)],
        capture_output=True, text=True, check=False, timeout=900, cwd=SCRIPTS,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line[:1] in ("[", "{")]


def free_ports(count: int = 3) -> list[int]:
    """Ports that nobody has now."""
    listeners = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def launched(library: str, script: str, size: int, mode: str = "many") -> list[Any]:
    """What a program prints that runs in several processes."""
    words = LAUNCHED.get(script, [])
    if words is None:
        return printed(ALONE[library], script, mode, size, *free_ports())
    launcher = ["-m", f"{library}.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    return printed([*launcher, *words], script, mode)


def check_same(seen: list[Any], expected: list[Any], label: Any) -> None:
    """Losses, and numbers by names where there are such, but for rounding."""
    assert len(seen) == len(expected), label
    assert np.allclose(seen[0], expected[0], rtol=1e-4), label
    for ours, theirs in zip(seen[1:], expected[1:], strict=True):
        assert list(ours) == list(theirs), label
        for name, numbers in theirs.items():
            assert np.allclose(ours[name], numbers, rtol=1e-3, atol=1e-4), (label, name)


@pytest.mark.parametrize("script", PROGRAMS)
def test_losses_are_those_of_one_process(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOLDER", str(tmp_path))
    alone = printed(ALONE["torch"], script, "alone", 1, *free_ports())
    assert len(alone[0]) > 4
    assert alone[0][-1] < alone[0][0]
    check_same(printed(ALONE["flambeau"], script, "alone", 1, *free_ports()), alone, "alone")
    for library in ("flambeau",) if script in UNSTEADY else ("torch", "flambeau"):
        for size in (2, 4):
            folder = tmp_path / f"{library}{size}"
            folder.mkdir()
            monkeypatch.setenv("FOLDER", str(folder))
            check_same(launched(library, script, size), alone, (library, size))


@pytest.mark.parametrize("chain", some("chains of checkpoints", list(CHAINS), 2))
def test_others_go_on_from_a_checkpoint(
    chain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOLDER", str(tmp_path))
    alone = printed(ALONE["torch"], "resharded", "alone")
    assert alone[0][-1] < alone[0][0]
    (writer, writers), (reader, readers) = CHAINS[chain]
    first = launched(writer, "resharded", writers)
    assert np.allclose(first[0][:3], alone[0][:3], rtol=1e-4)
    check_same(launched(reader, "resharded", readers, "again"), alone, chain)
