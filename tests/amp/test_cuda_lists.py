"""Autocast on CUDA: every operator of PyTorch's lists gives the type that its word says.

The facts are in `cuda_lists.py`; conformance/test_autocast_cuda.py compares them with PyTorch.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llvmlite")  # the emulated GPU needs it

PROGRAM = Path(__file__).parent / "cuda_lists.py"
spec: Any = importlib.util.spec_from_file_location("cuda_lists", PROGRAM)
table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(table)

ERRORS = {
    "banned": "an error: torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe "
    "to autocast.",
    "widest": "an error: Unexpected floating ScalarType in at::autocast::prioritize",
}
LISTED = [name for name, row in table.LISTS.items() if row[0] not in ("none", "composed")]


@cache
def found() -> dict[str, Any]:
    root = str(PROGRAM.parent.parent.parent)
    done = subprocess.run([sys.executable, str(PROGRAM), "flambeau"], capture_output=True,
                          text=True, cwd=root, check=False, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def expected(word: str, kind: str, region: str) -> str:
    """The type that comes out, or the error."""
    if word == "banned":
        return ERRORS[word]
    if kind == "float64":
        return "float64"
    if word == "lower":
        return region
    if word != "widest":
        return "float32"
    types = {"float32": "float32", "mixed": "float32", "half": region}
    return types.get(kind, ERRORS["widest"])


@pytest.mark.parametrize("region", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", LISTED)
def test_types(name: str, region: str) -> None:
    word, _, shapes = table.LISTS[name]
    floats = [shape for shape in shapes if shape[0] != table.INDEX]
    for kind in table.TYPES:
        if kind == "mixed" and len(floats) == 1:
            continue  # there is nothing to mix
        result = found()[f"{name} {kind} {region}"]
        wanted = expected(word, kind, region)
        assert result == wanted or set(result) == {wanted}, (kind, result, wanted)
    if word == "float32_or_dtype":
        assert found()[f"{name} dtype {region}"] == [region]


def test_rows_carry_their_words() -> None:
    """What is `lower` or `widest` here is so on a row, and nowhere else."""
    from flambeau._ops.table import loading
    from flambeau._ops.table.autocast import POLICIES, word_for
    from flambeau._ops.table.op import BY_NAME

    for name in loading.indexed_names():
        for op in BY_NAME[name]:
            for kind in ("cpu", "cuda"):
                word = word_for(op.autocast, kind) if op.autocast else None
                assert word is None or word in POLICIES
