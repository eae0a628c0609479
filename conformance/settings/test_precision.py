"""What "medium" permits is taken on processors with AMX, by PyTorch and by us: operands are rounded
to bfloat16. On others, products of both keep to full float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from flambeau._ops.products import tiles

SIZE = 256  # from which on PyTorch asks oneDNN for products
ALLOWED, SHORTENED = 3e-6, (3e-4, 1e-2)
"""Of the largest number: a few roundings of float32; and what bfloat16 makes of it."""


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


def _shortens(t: Any) -> bool:
    """Whether a library rounds to bfloat16 where it may."""
    if t is reference:
        return _has_amx()
    return bool(tiles.every_bfloat16()[-1].cells)


@pytest.mark.parametrize("word", ["highest", "high", "medium"])
@pytest.mark.parametrize("t", [flambeau, reference], ids=lambda t: t.__name__)
def test_how_exact_products_of_float32_are(t: Any, word: str) -> None:
    t.set_float32_matmul_precision(word)
    try:
        found = max(errors(t))
    finally:
        t.set_float32_matmul_precision("highest")
    if word == "medium" and _shortens(t):
        assert SHORTENED[0] < found < SHORTENED[1]
    else:
        assert found < ALLOWED
