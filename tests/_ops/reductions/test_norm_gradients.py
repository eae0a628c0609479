"""Gradients and tangents of norms where quotients are 0 / 0 or maxima are ties."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch
import flambeau.autograd.forward_ad as forward_ad


@pytest.mark.parametrize("order", [0.5, 1.0, 1.5, 2.0, 3.0, 3.5, math.inf])
def test_the_tangent_at_zero_is_zero(order: float) -> None:
    x, direction = torch.zeros(5, dtype=torch.float64), torch.ones(5, dtype=torch.float64)
    with forward_ad.dual_level():
        norm = torch.linalg.vector_norm(forward_ad.make_dual(x, direction), order)
        assert forward_ad.unpack_dual(norm).tangent.item() == 0


@pytest.mark.parametrize("order", [math.inf, -math.inf])
def test_the_peak_of_complex_numbers_is_found(order: float) -> None:
    parts = np.random.default_rng(0).standard_normal((2, 40, 1, 7))
    x = torch.from_numpy(parts[0] + 1j * parts[1]).requires_grad_()
    torch.linalg.vector_norm(x, order, 1).sum().backward()
    expected = (x / x.abs()).detach()  # a dim of one element is its own peak
    assert torch.allclose(x.grad, expected)
