"""Gradients of gradients, and forward mode, of operators drawn from PyTorch's operator database.

`conformance/opinfo/opinfo.py` runs all of them. `FLAMBEAU_OPERATORS=100` sets how many are drawn
here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flambeau
from tests.random_seeds import generator

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
SCRIPT = Path(__file__).with_name("opinfo") / "opinfo.py"
COUNT = int(os.environ.get("FLAMBEAU_OPERATORS", "20"))
SECONDS = 600
LEFT = {
    "addbmm": "torch lets addbmm_ grow the tensor that it writes to",
    "triangular_solve": "torch's tangent looks at the triangle that is not read",
}
CATEGORIES = ("gradgrad", "inplace grad", "gradgradcheck", "inplace gradgradcheck", "tangents",
              "inplace tangents")  # fmt: skip
SLOW = re.compile(r"linalg\.|grid_sampler_3d|svd|pca|ctc_loss|masked\.|_lowrank")


def names() -> list[str]:
    """Operators that have a second gradient, in the database's order."""
    from torch.testing._internal.common_methods_invocations import op_db

    known = {op.name for op in op_db if op.supports_gradgrad and not op.name.startswith("_")}
    return sorted(name for name in known - LEFT.keys() if not SLOW.match(name))


def run(chosen: list[str], out: Path) -> list[dict[str, Any]]:
    pattern = f"^({'|'.join(map(re.escape, chosen))})( |$)"
    command = [sys.executable, str(SCRIPT), "--impl", "flambeau", "--gradgrad", "--gradgradcheck",
               "--tangents",
               "--only", ",".join(CATEGORIES), "--grad-dtypes", "float64", "--limit-samples", "4",
               "--timeout", "300", "--ops", pattern, "--out", str(out)]  # fmt: skip
    home = str(Path(flambeau.__file__).parents[1])
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False,
                          env={**os.environ, "PYTHONPATH": home})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())["results"]  # type: ignore[no-any-return]


def test_gradients_of_gradients(tmp_path: Path) -> None:
    chosen = generator("orders").sample(names(), COUNT)
    results = run(chosen, tmp_path / "results.json")
    assert {r["name"].split()[0] for r in results} == set(chosen)
    failures = [
        f"{result['name']} {category}: {result['categories'][category]['failure']}"
        for result in results
        for category in CATEGORIES
        if result["categories"][category]["status"] not in ("pass", "skipped")
    ]
    assert not failures, "\n".join(failures)
    passed = sum(result["categories"]["gradgrad"]["passed"] for result in results)
    assert passed >= COUNT, "hardly anything was compared"
