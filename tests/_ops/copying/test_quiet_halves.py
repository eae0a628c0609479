"""Numbers beyond a half type become infinite without a word."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

import flambeau as torch

CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "mul_": lambda x: x.mul_(1e20),
    "where": lambda x: torch.where(x < 0, x, 1e20),
    "full": lambda x: torch.full((1,), 1e6, dtype=torch.float16),
    "tensor": lambda x: torch.tensor([1e6], dtype=torch.float16),
    "copy_": lambda x: x.copy_(torch.ones(2, dtype=torch.float64) * 1e6),
    "add_": lambda x: x.add_(torch.ones(2) * 1e6),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_overflows(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = CALLS[name](torch.ones(2, dtype=torch.float16))
    assert result.isinf().all()
