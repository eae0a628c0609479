"""Short forms of half types: all 65,536 numbers on the emulated GPU, beside the CPU's kernels."""

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

PROGRAM = Path(__file__).with_name("short_bits.py")
DIFFERING = {
    "exp": (1, 0), "expm1": (1, 0), "exp2": (0, 0), "log": (1, 0), "log1p": (0, 0), "log2": (1, 0),
    "log10": (3, 0), "tanh": (0, 0), "sigmoid": (3, 0), "erf": (2, 0), "sin": (0, 0),
    "cos": (0, 0), "tan": (2, 0), "atan": (12, 0), "sinh": (0, 0), "cosh": (0, 0), "silu": (2, 0),
    "softplus": (13, 0), "logsigmoid": (13, 0), "elu": (0, 0), "selu": (1, 0), "celu": (0, 0),
    "mish": (2, 0), "gelu": (371, 41),
}  # fmt: skip
"""How many of 65,536 results may differ from the CPU's, by a unit, in float16 and bfloat16."""
FAR = "gelu"
"""Where 1 + erf(x) is a small difference: the CPU's float32 has lost it below -3.5."""
CHOSEN = some("short forms", tuple(DIFFERING), 5)


@cache
def facts() -> dict[str, dict[str, int]]:
    root = str(PROGRAM.parents[3])
    environment = {**os.environ, "FLAMBEAU_EMULATE_CUDA": "1", "FLAMBEAU_ENGINE": "llvm",
                   "PYTHONPATH": root}  # fmt: skip
    done = subprocess.run([sys.executable, str(PROGRAM), *CHOSEN], env=environment, text=True,
                          capture_output=True, cwd=root, timeout=900, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize("name", CHOSEN)
def test_all_numbers(name: str, dtype: str) -> None:
    it = facts()[f"{name} {dtype}"]
    assert (it["nan"], it["host"]) == (0, 0)
    assert it["differ"] <= DIFFERING[name][dtype == "bfloat16"]
    if name != FAR:
        assert it["most"] <= 1
    assert it["beside exact"] <= 1
