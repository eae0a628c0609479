"""The facts of `library_rows.py`, in a process where a GPU is emulated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.random_seeds import some

pytest.importorskip("llvmlite")  # which compiles the kernels' form for the CPU

PROGRAM = Path(__file__).with_name("library_rows.py")
HELPERS = ("drawn", "same_on_both", "parts", "weights_of", "main", "error", "close")


def names() -> list[str]:
    """The facts, read off the file: importing it would need the emulation."""
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    found = [line[4 : line.index("(")] for line in lines if line.startswith("def ")]
    return [name for name in found if name not in HELPERS and name[0] != "_"]


TESTED = some("library rows", names(), 10)


@cache
def failures() -> dict[str, str]:
    environment = {**os.environ, "FLAMBEAU_EMULATE_CUDA": "1"}
    root = str(PROGRAM.parents[3])
    done = subprocess.run([sys.executable, str(PROGRAM), *TESTED], cwd=root,
                          env={**environment, "PYTHONPATH": root}, capture_output=True,
                          text=True, timeout=240, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", TESTED)
def test_on_the_emulated_gpu(name: str) -> None:
    assert failures().get(name) is None, failures()[name]
