"""`grad_fn._saved_*` of operators drawn from PyTorch's operator database, as they are under torch.

`conformance/opinfo/saved_fields.py` runs all of them. `FLAMBEAU_SEED=...` draws the same again.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau

pytest.importorskip("torch")
pytest.importorskip("expecttest")
SCRIPT = Path(__file__).with_name("opinfo") / "saved_fields.py"
COUNT = 40
ALWAYS = ("complex", "masked_select", "index_add", "matmul", "nn.functional.embedding", "imag")


def names() -> list[str]:
    from torch.testing._internal.common_methods_invocations import op_db

    return sorted({op.name for op in op_db if op.supports_autograd} - set(ALWAYS))


def run(pattern: str) -> subprocess.CompletedProcess[str]:
    home = str(Path(flambeau.__file__).parents[1])
    path = os.pathsep.join([home, os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, str(SCRIPT), "--ops", pattern], capture_output=True,
                          text=True, timeout=600, check=False,
                          env={**os.environ, "PYTHONPATH": path})  # fmt: skip


def test_what_nodes_show() -> None:
    seed = int(os.environ.get("FLAMBEAU_SEED", "0")) or random.randrange(1, 1 << 30)
    print(f"FLAMBEAU_SEED={seed}")
    chosen = [*ALWAYS, *random.Random(seed).sample(names(), COUNT)]
    done = run(f"^({'|'.join(map(re.escape, chosen))})$")
    compared = re.search(r"compared: (\d+)", done.stdout)
    assert compared, done.stderr
    assert int(compared[1]) > 100, done.stdout
    assert done.returncode == 0, done.stdout
