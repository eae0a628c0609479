"""The limits of float32, and formulas before and behind them: the numbers of the tutorial
"Effective PyTorch" (Vahid Kazemi), section "Numerical stability in PyTorch", to the digit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize(("number", "stored"), [(1e-50, 0.0), (1e39, math.inf)])
def test_a_product_and_a_quotient_that_should_cancel(number: float, stored: float) -> None:
    x, y = torch.tensor(1.0), torch.tensor(number)
    assert y.dtype is torch.float32
    assert y.item() == stored
    z = x * y / y
    assert str(z.numpy()) == "nan"
    assert str(z) == "tensor(nan)"


def test_the_smallest_and_the_largest_float32() -> None:
    smallest = torch.nextafter(torch.tensor(0.0), torch.tensor(1.0))
    assert f"{smallest.item():.4e}" == "1.4013e-45"
    assert (smallest / 2).item() == 0
    assert torch.tensor(7e-46).item() == 0
    largest = torch.finfo(torch.float32).max
    assert f"{largest:.5e}" == "3.40282e+38"
    assert torch.tensor(largest).item() == largest
    assert torch.nextafter(torch.tensor(largest), torch.tensor(math.inf)).item() == math.inf
    assert torch.tensor(3.41e38).item() == math.inf


def naive_softmax(logits: torch.Tensor) -> torch.Tensor:
    exp = torch.exp(logits)
    return exp / torch.sum(exp)


def stable_softmax(logits: torch.Tensor) -> torch.Tensor:
    exp = torch.exp(logits - torch.max(logits))
    return exp / torch.sum(exp)


LOGITS = (1000.0, 0.0)


def test_softmax_by_the_formula_overflows() -> None:
    assert str(naive_softmax(torch.tensor(LOGITS)).numpy()) == "[nan  0.]"


def test_the_largest_logit() -> None:
    assert f"{math.log(torch.finfo(torch.float32).max):.1f}" == "88.7"
    assert naive_softmax(torch.tensor([88.7, 0.0])).tolist() == [1.0, pytest.approx(3e-39, rel=0.1)]
    assert naive_softmax(torch.tensor([88.8, 0.0])).isnan().tolist() == [True, False]


def test_softmax_less_the_maximum() -> None:
    assert str(stable_softmax(torch.tensor(LOGITS)).numpy()) == "[1. 0.]"
    assert torch.softmax(torch.tensor(LOGITS), 0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("constant", [-3.0, 0.0, 2.5, 20.0])
def test_any_constant_may_be_subtracted(constant: float) -> None:
    logits = torch.tensor([0.3, -1.0, 2.0])
    shifted = naive_softmax(logits - constant)
    torch.testing.assert_close(shifted, torch.softmax(logits, 0))


def test_the_domain_and_the_range_of_exp() -> None:
    logits = torch.tensor([1000.0, 0.0, -math.inf, 999.0])
    shifted = logits - torch.max(logits)
    assert shifted.tolist() == [0.0, -1000.0, -math.inf, -1.0]
    exp = torch.exp(shifted)
    assert (exp.min().item(), exp.max().item()) == (0.0, 1.0)


LABELS = (0.5, 0.5)


def naive_cross_entropy(labels: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    return -torch.sum(labels * torch.log(stable_softmax(logits)))


def stable_cross_entropy(labels: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    scaled = logits - torch.max(logits)
    normalized = scaled - torch.logsumexp(scaled, 0)
    return -torch.sum(labels * normalized)


def test_cross_entropy_by_the_formula_is_infinite() -> None:
    loss = naive_cross_entropy(torch.tensor(LABELS), torch.tensor(LOGITS))
    assert str(loss.numpy()) == "inf"


def test_cross_entropy_with_logsumexp() -> None:
    loss = stable_cross_entropy(torch.tensor(LABELS), torch.tensor(LOGITS))
    assert str(loss.numpy()) == "500.0"
    built_in = torch.nn.functional.cross_entropy(torch.tensor(LOGITS), torch.tensor(LABELS))
    assert built_in.item() == 500.0


@pytest.mark.parametrize("function", [
    stable_cross_entropy,
    lambda labels, logits: torch.nn.functional.cross_entropy(logits, labels),
], ids=["by hand", "built in"])  # fmt: skip
def test_its_gradient(function) -> None:
    logits = torch.tensor(LOGITS, requires_grad=True)
    loss = function(torch.tensor(LABELS), logits)
    [grad] = torch.autograd.grad(loss, logits)
    assert str(grad.numpy()) == "[ 0.5 -0.5]"


# ---- what float32 does not hold any more, and its gradients do


@pytest.mark.parametrize("function", [
    torch.nn.functional.softplus,
    lambda x: torch.nn.functional.logsigmoid(-x),
], ids=["softplus", "logsigmoid"])  # fmt: skip
def test_subnormal_gradients(function) -> None:
    x = torch.tensor([-80.0, -89.0, -100.0], requires_grad=True)
    function(x).sum().backward()
    np.testing.assert_allclose(np.abs(x.grad.numpy()), np.exp([-80.0, -89.0, -100.0]), rtol=0.03)


@pytest.mark.parametrize("length", [40, 9000])
def test_a_large_mean(length: int) -> None:
    """The mean is rounded; what that loses must not come into the variance."""
    numbers = 1000 + np.random.default_rng(0).standard_normal((3, length)) / 8
    x = torch.tensor(numbers.tolist())
    exact = x.numpy().astype(np.float64)
    variance = exact.var(1, ddof=1)
    np.testing.assert_allclose(x.var(1).numpy(), variance, rtol=3e-7)
    normal = torch.nn.functional.layer_norm(x, (length,)).numpy()
    wanted = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(normal, wanted, atol=2e-6)


@pytest.mark.parametrize("length", [40, 9000])
def test_a_constant_row_has_no_variance(length: int) -> None:
    x = torch.full((2, length), 0.1)
    assert x.var(1).tolist() == [0.0, 0.0]
    assert torch.nn.functional.layer_norm(x, (length,)).abs().max() < 1e-5


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("length", [40, 9000])
def test_infinities_are_not_lost(length: int, bad: float) -> None:
    x = torch.ones(2, length)
    x[0, 3] = bad
    assert x.var(1).isnan().tolist() == [True, False]
    assert torch.nn.functional.layer_norm(x, (length,)).isnan().all(1).tolist() == [True, False]
    batch_norm = torch.nn.BatchNorm1d(2)
    batch_norm(x.T.contiguous())
    assert batch_norm.running_var.isnan().tolist() == [True, False]
    mean = batch_norm.running_mean[0].item()
    assert math.isnan(mean) if math.isnan(bad) else mean == bad
