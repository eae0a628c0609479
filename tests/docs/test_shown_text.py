"""The texts that the documentation shows are those that are generated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flambeau._runtime import warming

SHOW = """
import linecache
import flambeau as torch
torch.mul(torch.ones(2), torch.ones(2))
print("".join(linecache.cache["<flambeau mul.Tensor>"][2]), end="")
"""
"""A process of its own: forms of the function for other callers go by the same name."""
PAGE = Path(__file__).parents[2] / "docs" / "one-op-through-everything.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")
def test_the_call_of_mul() -> None:
    if not warming.possible():
        pytest.skip("the page shows the text with inline caches")
    done = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    assert f"```python\n{done.stdout}```" in PAGE.read_text(encoding="utf-8")
