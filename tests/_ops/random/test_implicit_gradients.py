"""Implicit derivatives of gamma and beta numbers, against differences of distribution functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._ops.random import implicit_gradients
from tests.random_seeds import generator

STEP = 1e-5


def gamma_probability(concentration: float, x: float) -> float:
    return torch.special.gammainc(
        torch.tensor(concentration, dtype=torch.float64), torch.tensor(x, dtype=torch.float64)
    ).item()


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def beta_probability(a: float, b: float, x: float) -> float:
    """By Gauss and Legendre's rule; exact enough for a, b > 2."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    t = (nodes + 1) * x / 2
    density = np.exp((a - 1) * np.log(t) + (b - 1) * np.log1p(-t) - log_beta(a, b))
    return float((weights * density).sum() * x / 2)


@pytest.mark.parametrize("number", range(20))
def test_gamma(number: int):
    draw = generator("gamma slope", number)
    a = math.exp(draw.uniform(-1.5, 4.0))
    x = draw.gammavariate(a, 1.0) + 1e-3
    difference = gamma_probability(a + STEP, x) - gamma_probability(a - STEP, x)
    density = math.exp((a - 1) * math.log(x) - x - math.lgamma(a))
    if density < 1e-3:
        return  # differences would lose too many digits
    slope = torch._standard_gamma_grad(*torch.tensor([a, x], dtype=torch.float64).unbind())
    assert slope.item() == pytest.approx(-difference / (2 * STEP) / density, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("number", range(20))
def test_dirichlet(number: int):
    draw = generator("beta slope", number)
    a, b = (2 + draw.expovariate(0.3) for _ in range(2))
    x = min(max(draw.betavariate(a, b), 0.02), 0.98)
    difference = beta_probability(a + STEP, b, x) - beta_probability(a - STEP, b, x)
    density = math.exp((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - log_beta(a, b))
    if density < 1e-3:
        return
    values = torch.tensor([x, a, a + b], dtype=torch.float64)
    slope = torch._dirichlet_grad(*values.unbind()).item() * (1 - x)
    assert slope == pytest.approx(-difference / (2 * STEP) / density, rel=1e-4, abs=1e-5)


def test_far_tails_and_small_concentrations():
    """Nothing overflows on the way, and float32 stays float32."""
    a = torch.tensor([1e-3, 1e-2, 0.5, 1.0, 50.0, 1e4])
    for x in (1e-30, 1e-3, 1.0, 80.0, 2e4):
        slope = torch._standard_gamma_grad(a, torch.full_like(a, x))
        assert slope.dtype == torch.float32
        assert not slope.isnan().any()
        assert (slope >= 0).all()


def both_forms(monkeypatch: pytest.MonkeyPatch, slope: Any, *arrays: np.ndarray) -> list[Any]:
    """The kernel's result and NumPy's."""
    compiled = slope(*arrays)
    with monkeypatch.context() as patch:
        patch.setattr(implicit_gradients, "_compiled", lambda array: None)
        return [compiled, slope(*arrays)]


@pytest.mark.parametrize("number", range(3))
def test_kernels(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Kernels give what NumPy gives, also of what is no number or no parameter."""
    pytest.importorskip("llvmlite")
    draw = np.random.RandomState(generator("slopes", number).randrange(1 << 31))
    odd = np.array([0, np.inf, np.nan, 1, 1, 1, -1, 2, 1])
    a, b = 10 ** draw.uniform(-2, 3, (2, 1003))
    a[:9] = [1, 1, 1, np.nan, 0, np.inf, 1, -1, 1]
    z = np.concatenate([odd, draw.standard_gamma(a[9:]) + 1e-30])
    x = np.concatenate([odd / 2, np.clip(draw.beta(a[9:], b[9:]), 1e-30, 1 - 1e-12)])
    with np.errstate(all="ignore"):
        found = both_forms(monkeypatch, implicit_gradients.gamma, a, z)
        np.testing.assert_allclose(*found, rtol=1e-11)
        found = both_forms(monkeypatch, implicit_gradients.dirichlet, x, a, a + b)
        np.testing.assert_allclose(*found, rtol=1e-8)
        for slope, values in ((implicit_gradients.gamma, (a, z)),
                              (implicit_gradients.dirichlet, (x, a, a + b))):  # fmt: skip
            single = [value.astype(np.float32) for value in values]
            found = both_forms(monkeypatch, slope, *single)
            assert found[0].dtype == np.float32
            np.testing.assert_allclose(*found, rtol=1e-6)
