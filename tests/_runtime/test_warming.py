"""Where there are no inline caches, no number of calls makes one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MANY_CALLS = """
import sys
import flambeau as torch
from flambeau._runtime import warming

assert not warming.possible()
x, y = torch.linspace(-1, 1, 12).reshape(3, 4), torch.arange(4.0)
written, learned = torch.ones(3, 4), torch.ones(3, 4, requires_grad=True)
weight, labels = torch.ones(5, 4), torch.tensor([1, 0, 2])
for k in range(warming.CALLS + 300):
    found = [-x, x + y, x * 2, x.exp(), x.sum(1), x.softmax(1), x.clamp(0, 1), x > y,
             torch.nn.functional.linear(x, weight), torch.nn.functional.cross_entropy(x, labels),
             torch.nn.functional.layer_norm(x, (4,)), torch.where(x > 0, x, y)]
    written.mul_(y).add_(1)
    (learned.sigmoid() * x).sum().backward()
    first = found if k == 0 else first
    assert all(map(torch.equal, found, first))
inline_cache = sys.modules.get("flambeau._runtime.inline_cache")
assert inline_cache is None or not inline_cache.InlineCache.caches
print("none")
"""


@pytest.mark.parametrize("changed", [
    {"PYTHONPATH": str(ROOT / "tests" / "without_llvmlite")},
    {"FLAMBEAU_ENGINE": "numpy"},
    {"FLAMBEAU_DEBUG": "bounds"},
    {"FLAMBEAU_INLINE_AFTER": "0"},
], ids=["no llvmlite", "NumPy", "checked accesses", "never"])  # fmt: skip
def test_no_cache(changed: dict[str, str]) -> None:
    inherited = {name: value for name, value in os.environ.items()
                 if name not in ("FLAMBEAU_INLINE_AFTER", "FLAMBEAU_DEBUG")}  # fmt: skip
    paths = [changed.get("PYTHONPATH", ""), str(ROOT)]
    environment = {**inherited, **changed, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    result = subprocess.run([sys.executable, "-c", MANY_CALLS], env=environment, check=False,
                            capture_output=True, text=True)  # fmt: skip
    assert (result.stdout, result.returncode) == ("none\n", 0), result.stderr
