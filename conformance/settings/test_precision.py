"""What "medium" permits is not taken: on a processor without AMX, PyTorch's own products keep to
full float32, and so do ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

SIZE = 256  # from which on PyTorch asks oneDNN for products
ALLOWED = 3e-6
"""Of the largest number: a few roundings of float32. With bfloat16 it would be some 1e-3."""


def _has_amx() -> bool:
    with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
        return "amx" in file.read()


def errors(t: Any) -> list[float]:
    """How far products are from those of doubles."""
    drawn = np.random.default_rng(5).standard_normal((2, SIZE, SIZE)).astype(np.float32)
    x, y = t.from_numpy(drawn[0]), t.from_numpy(drawn[1])
    right = drawn[0].astype(np.float64) @ drawn[1].astype(np.float64)
    found = [x @ y, t.nn.functional.linear(x, y.t()), t.bmm(x[None], y[None])[0],
             t.addmm(t.zeros(SIZE), x, y)]  # fmt: skip
    return [float(np.abs(one.numpy() - right).max() / np.abs(right).max()) for one in found]


@pytest.mark.parametrize("word", ["highest", "high", "medium"])
@pytest.mark.parametrize("t", [flambeau, reference], ids=lambda t: t.__name__)
def test_products_are_full_float32(t: Any, word: str) -> None:
    if t is reference and _has_amx():
        pytest.skip("oneDNN takes bfloat16 here")
    t.set_float32_matmul_precision(word)
    try:
        assert max(errors(t)) < ALLOWED
    finally:
        t.set_float32_matmul_precision("highest")
