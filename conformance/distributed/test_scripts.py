"""Programs as the documentation shows them, unmodified under both libraries' torchrun: their losses
are those of one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.random_seeds import some

pytest.importorskip("torch")

SCRIPTS = Path(__file__).with_name("scripts")
ROOT = Path(__file__).parents[2]
ALONE = {"torch": [], "flambeau": ["-m", "flambeau", "run"]}
PROGRAMS = some("scripts", ["ddp", "fsdp", "tensor_parallel", "pipeline"], 2)


def losses(words: list[str], script: str, mode: str) -> list[float]:
    """What a program prints in the end."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *words, str(SCRIPTS / f"{script}.py"), mode],
        capture_output=True, text=True, check=False, timeout=900, cwd=SCRIPTS,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("["))
    return json.loads(line)


@pytest.mark.parametrize("script", PROGRAMS)
def test_losses_are_those_of_one_process(script: str):
    alone = losses(ALONE["torch"], script, "alone")
    assert len(alone) > 4
    assert alone[-1] < alone[0]
    assert np.allclose(losses(ALONE["flambeau"], script, "alone"), alone, rtol=1e-4)
    for library in ("torch", "flambeau"):
        for size in (2, 4):
            launcher = ["-m", f"{library}.distributed.run", "--standalone",
                        f"--nproc-per-node={size}"]  # fmt: skip
            seen = losses(launcher, script, "many")
            assert np.allclose(seen, alone, rtol=1e-4), (library, size)
