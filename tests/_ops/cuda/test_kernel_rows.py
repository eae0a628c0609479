"""The facts of `kernel_rows.py`, in a process where a GPU is emulated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.random_seeds import generator, some

pytest.importorskip("llvmlite")  # which compiles the kernels' form for the CPU

PROGRAM = Path(__file__).with_name("kernel_rows.py")
HELPERS = ("drawn", "compare", "same", "with_gradients", "is_float", "weights_of", "main")


def names() -> list[str]:
    """The facts, read off the file: importing it would need the emulation."""
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    found = [line[4 : line.index("(")] for line in lines if line.startswith("def ")]
    return [name for name in found if name not in HELPERS and name[0] != "_"]


TESTED = some("kernel rows", names(), 5)


@cache
def failures() -> dict[str, str]:
    root = str(PROGRAM.parents[3])
    environment = {**os.environ, "FLAMBEAU_EMULATE_CUDA": "1", "FLAMBEAU_ENGINE": "llvm",
                   "PYTHONPATH": root}  # fmt: skip
    seed = str(generator("kernel rows").randrange(1 << 30))
    done = subprocess.run([sys.executable, str(PROGRAM), seed, *TESTED], env=environment,
                          capture_output=True, text=True, cwd=root, timeout=900,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTED)
def test_on_the_emulated_gpu(name: str) -> None:
    assert failures().get(name) is None, failures()[name]
