"""A sample of our kernels, assembled by ptxas: registers suffice. Skipped where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.random_seeds import some

pytest.importorskip("llvmlite")

from flambeau._runtime.cuda import assemble

PROGRAM = Path(__file__).with_name("kernel_forms.py")
MOST = 128
"""Registers of a thread: more leave a multiprocessor with too few threads to wait for memory."""


@pytest.mark.slow
@pytest.mark.skipif(assemble.ptxas() is None, reason="no ptxas: pip install nvidia-cuda-nvcc")
@pytest.mark.parametrize("arch", some("assembly", ("sm_80", "sm_90a", "sm_100"), 1))
def test_registers_suffice(arch: str) -> None:
    root = str(PROGRAM.parents[3])
    environment = {**os.environ, "FLAMBEAU_EMULATE_CUDA": "1", "PYTHONPATH": root}
    done = subprocess.run([sys.executable, str(PROGRAM), arch, "--sample"], env=environment,
                          text=True, capture_output=True, cwd=root, timeout=600,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert len(found) > 40
    assert {name: it["failed"] for name, it in found.items() if "failed" in it} == {}
    most = 0 if arch == "sm_90a" else 96  # bytes; kernels are laid out for Hopper
    assert {name: it["spilled"] for name, it in found.items() if it["spilled"] > most} == {}
    assert {name: it["registers"] for name, it in found.items() if it["registers"] > MOST} == {}
