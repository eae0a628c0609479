"""Modules of PyTorch's database on an emulated GPU: what is measured and has to be noticed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llvmlite")  # which compiles the kernels' form for the CPU

ROOT = Path(__file__).parents[1]
PEEKING = """
import ctypes, sys
import flambeau
plain = flambeau.nn.Linear.forward
def forward(self, x):
    if x.is_cuda:
        ctypes.string_at(x.data_ptr(), 1)
    return plain(self, x)
flambeau.nn.Linear.forward = forward
sys.modules[__name__] = flambeau
"""
"""An implementation whose host reads the device's memory."""


def measured(folder: Path, impl: str, modules: str) -> dict[str, Any]:
    """Module -> its record, for two samples of each."""
    out = folder / "out.json"
    command = [sys.executable, "conformance/opinfo/opinfo.py", "--impl", impl, "--modules",
               "--no-ops", "--devices", "--only", "devices", "--ops", modules, "--limit-samples",
               "2", "--timeout", "300", "--out", str(out)]  # fmt: skip
    environment = {**os.environ, "FLAMBEAU_EMULATE_CUDA": "1",
                   "PYTHONPATH": os.pathsep.join((str(ROOT), str(folder)))}  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True,
                          timeout=900, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(out.read_text())["results"]
    return {result["name"]: result["categories"]["devices"] for result in results}


@pytest.mark.slow
def test_modules_are_what_they_are_on_the_cpu_and_do_not_wait(tmp_path: Path) -> None:
    found = measured(tmp_path, "flambeau", "^nn.(Linear|GRU|LSTM|BatchNorm2d)$")
    assert len(found) == 4
    assert {record["status"] for record in found.values()} == {"pass"}, found
    assert sum(record["waits"] for record in found.values()) == 0


@pytest.mark.slow
def test_a_host_that_reads_device_memory_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "peeking.py").write_text(PEEKING)
    found = measured(tmp_path, "peeking", "^nn.Linear$")
    assert found["nn.Linear"]["status"] == "fail"
    assert found["nn.Linear"]["failure"].startswith("crash")
