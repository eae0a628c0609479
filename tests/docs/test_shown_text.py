"""The texts that the documentation shows are those that are generated."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

import flambeau as torch
from flambeau._runtime import warming

PAGE = Path(__file__).parents[2] / "docs" / "one-op-through-everything.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")
def test_the_call_of_mul() -> None:
    if not warming.possible():
        pytest.skip("the page shows the text with inline caches")
    x = torch.ones(2)
    torch.mul(x, x)
    generated = "".join(linecache.cache["<flambeau mul.Tensor>"][2])
    assert f"```python\n{generated}```" in PAGE.read_text(encoding="utf-8")
