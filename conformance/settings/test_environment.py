"""Environment variables, each read by a process that begins with it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.settings import environment

PROGRAM = """
import importlib, io, sys, warnings
torch = importlib.import_module(sys.argv[1])
warnings.simplefilter("ignore")

class Mine:
    pass

def function(x):
    return x + 1

class Scripted(torch.jit.ScriptModule):
    @torch.jit.script_method
    def forward(self, x):
        return x * 2

def loaded(**words):
    file.seek(0)
    try:
        return type(torch.load(file, **words)["mine"]).__name__
    except Exception as error:
        return type(error).__name__, str(error)[:60]

file = io.BytesIO()
torch.save({"mine": Mine()}, file)
x = torch.ones(1)
print({
    "threads": torch.get_num_threads(),
    "precision": [torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32,
                  torch.backends.cuda.matmul.fp32_precision],
    "script": [type(made).__name__ for made in (
        torch.jit.trace(function, x), torch.jit.trace(torch.nn.ReLU(), x),
        torch.jit.trace_module(torch.nn.ReLU(), {"forward": x}))],
    "module": Scripted()(x).tolist(),
    "hub": torch.hub.get_dir(),
    "load": [loaded(), loaded(weights_only=True), loaded(weights_only=False)],
})
"""

SETS: dict[str, dict[str, str]] = {
    "none": {},
    "all": {
        "OMP_NUM_THREADS": "1", "PYTORCH_JIT": "No", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1", "TORCH_HOME": "/nowhere/at/all",
    },
    "others": {
        "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "1", "PYTORCH_JIT": "1",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "0", "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "y",
        "TORCH_HOME": "~/of/mine",
    },
    "both ways": {
        "OMP_NUM_THREADS": "1", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
        "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "true",
    },
    "wrong": {"PYTORCH_JIT": "on"},
}  # fmt: skip
ROOT = Path(__file__).parents[2]


def said(folder: Path, library: str, variables: dict[str, str]) -> Any:
    """What the program prints; the last line of its error, if it fails."""
    program = folder / "program.py"  # scripts want the text of their functions
    program.write_text(PROGRAM, "utf-8")
    kept = {k: v for k, v in os.environ.items() if k not in environment.ACT}
    path = os.pathsep.join([str(ROOT), kept.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, program, library], check=False, capture_output=True, text=True,
        env={**kept, **variables, "PYTHONPATH": path},
    )  # fmt: skip
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return ast.literal_eval(done.stdout)


@pytest.mark.parametrize("name", SETS)
def test_variables(name: str, tmp_path: Path) -> None:
    """Both libraries do the same."""
    here, there = (said(tmp_path, library, SETS[name]) for library in ("flambeau", "torch"))
    if name == "none" and isinstance(there, dict):
        here["threads"] = there["threads"]  # of all processors, or of those that are not virtual
    assert here == there


def test_the_page_has_the_table() -> None:
    """`python -m conformance.settings.environment --write` brings it up to date."""
    page = environment.PAGE.read_text("utf-8")
    assert environment.with_table(page) == page
