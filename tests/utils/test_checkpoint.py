"""Checkpoints: the same values, gradients and random numbers, with fewer saved tensors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

BOTH = pytest.mark.parametrize("use_reentrant", [False, True])


def leaf() -> torch.Tensor:
    return torch.linspace(-1, 1, 8, dtype=torch.float64).requires_grad_()


@BOTH
def test_values_and_gradients(use_reentrant: bool) -> None:
    def function(x: Any, factor: float) -> Any:
        return (x.exp() * factor).sin() * x

    x, y = leaf(), leaf()
    checkpoint(function, x, 2.0, use_reentrant=use_reentrant).sum().backward()
    function(y, 2.0).sum().backward()
    assert torch.equal(x.grad, y.grad)


@BOTH
def test_random_numbers_are_drawn_again(use_reentrant: bool) -> None:
    def function(x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5) * x

    x = leaf()
    torch.manual_seed(3)
    result = checkpoint(function, x, use_reentrant=use_reentrant)
    after = torch.rand(2)
    result.sum().backward()
    y = leaf()
    torch.manual_seed(3)
    function(y).sum().backward()
    assert torch.equal(x.grad, y.grad)
    assert torch.equal(after, torch.rand(2))


@BOTH
def test_the_function_runs_twice(use_reentrant: bool) -> None:
    count = [0]

    def function(x: Any) -> Any:
        count[0] += 1
        return x.exp().sin()

    result = checkpoint(function, leaf(), use_reentrant=use_reentrant)
    assert count == [1]
    result.sum().backward()
    assert count == [2]


def test_keyword_arguments_and_closures() -> None:
    x, w = leaf(), leaf()
    result = checkpoint(lambda x, scale: x * w * scale, x, scale=3.0, use_reentrant=False)
    result.sum().backward()
    assert torch.allclose(w.grad, 3 * x.detach())


def test_a_second_run_that_differs_is_an_error() -> None:
    state = [2]

    def function(x: Any) -> Any:
        for _ in range(state[0]):
            x = x.exp()
        return x

    result = checkpoint(function, leaf(), use_reentrant=False)
    state[0] = 1
    with pytest.raises(CheckpointError, match="different number of tensors"):
        result.sum().backward()


def test_without_the_flag_there_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(torch.exp, leaf())


@BOTH
def test_a_chain_in_segments(use_reentrant: bool) -> None:
    functions = [torch.exp, torch.sin, torch.tanh, torch.cos, torch.sigmoid]
    x, y = leaf(), leaf()
    checkpoint_sequential(functions, 2, x, use_reentrant=use_reentrant).sum().backward()
    value = y
    for function in functions:
        value = function(value)
    value.sum().backward()
    assert torch.equal(x.grad, y.grad)


def test_reentrant_without_gradients_warns() -> None:
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        result = checkpoint(torch.exp, torch.zeros(2), use_reentrant=True)
    assert result.tolist() == [1.0, 1.0]
