"""Gradients of complex numbers that PyTorch refuses, by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau.nn import functional as F

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "silu": F.silu,
    "nan_to_num": torch.nan_to_num,
    "slice_copy": lambda x: torch.slice_copy(x, 0, 0, 2),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:1] * 2, 0, 0, 1),
    "adaptive_avg_pool1d": lambda x: torch.adaptive_avg_pool1d(x, 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 2, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(FUNCTIONS[name], (x,))
