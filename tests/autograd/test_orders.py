"""Gradients of gradients of single operators, against plain forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau.nn import functional as F


def orders(function: Callable[[Any], Any], x: Any, highest: int = 3) -> list[Any]:
    """The gradients of a weighted sum, of orders 1 to `highest`."""
    x = x.clone().requires_grad_()
    y, found = function(x), []
    weights = torch.linspace(-1.0, 2.0, y.numel(), dtype=x.dtype).reshape(y.shape)
    for _ in range(highest):
        (y,) = torch.autograd.grad((y * weights).sum(), x, create_graph=True)
        weights = torch.linspace(2.0, -1.0, y.numel(), dtype=x.dtype).reshape(y.shape)
        found.append(y.detach())
    return found


def test_running_sums_in_logarithms() -> None:
    x = torch.tensor([0.3, -1.0, 2.0, 0.5], dtype=torch.float64)
    plain = orders(lambda x: x.exp().cumsum(0).log(), x)
    for want, got in zip(plain, orders(lambda x: torch.logcumsumexp(x, 0), x), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("training", [False, True])
def test_random_slopes_in_place_are_those_that_were_drawn(training: bool) -> None:
    x = torch.tensor([-1.0, 2.0, -0.5])
    plain, in_place = (
        orders(lambda x, f=f: f(x * x - 1, 0.25, 0.25, training), x)
        for f in (F.rrelu, F.rrelu_)
    )  # fmt: skip
    for want, got in zip(plain, in_place, strict=True):
        assert torch.equal(got, want)


def test_leaky_slopes_in_place_keep_the_result() -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 1
    F.leaky_relu_(y, 0.5)
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [0.5, 1.0]
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_leaky_slopes_in_place_may_not_turn_round() -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    y = F.leaky_relu_(x * 1, -0.5)
    with pytest.raises(RuntimeError, match="negative slope which is not supported"):
        y.sum().backward()


def test_linear_operators_have_a_slope_of_zero_by_their_input() -> None:
    x = torch.ones(1, 1, 4, 4, requires_grad=True)
    for function in (
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.adaptive_avg_pool2d(x, 2),
        lambda x: F.pad(x, (1, 1, 0, 0), "reflect"),
        lambda x: F.pad(x, (1, 1, 0, 0), "replicate"),
    ):
        (slope,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        assert slope.requires_grad
        (second,) = torch.autograd.grad(slope.sum(), x)
        assert not second.any()


def test_norms_of_an_empty_batch() -> None:
    x, w = torch.zeros(0, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = F.group_norm(x, 1, w)
    found = torch.autograd.grad(y.sum(), (x, w), create_graph=True)
    assert found[0].shape == (0, 2)
    assert found[1].tolist() == [0.0, 0.0]
