"""Gradient scaling: scaled losses give the same steps, bad gradients none, and the scale adapts."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import flambeau as torch


def scaler(**options: Any) -> Any:
    return torch.amp.GradScaler("cpu", **options)


def trained(scale: bool, steps: int = 5) -> Any:
    weight = torch.tensor([1.0, -2.0], requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.1)
    made = scaler(enabled=scale)
    for _ in range(steps):
        optimizer.zero_grad()
        made.scale((weight**2).sum()).backward()
        made.step(optimizer)
        made.update()
    return weight.tolist()


def test_the_steps_are_those_without_scaling() -> None:
    assert trained(True) == trained(False)


def one_step(made: Any, gradient: float) -> tuple[Any, Any]:
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    made.scale((weight * gradient).sum()).backward()
    return weight, optimizer


def test_bad_gradients_skip_a_step_and_halve_the_scale() -> None:
    made = scaler(init_scale=8.0)
    for bad in (float("inf"), float("nan")):
        before = made.get_scale()
        weight, optimizer = one_step(made, bad)
        assert made.step(optimizer) is None and weight.tolist() == [1, 1]
        made.update()
        assert made.get_scale() == before / 2


def test_good_steps_in_a_row_double_the_scale() -> None:
    made = scaler(init_scale=2.0, growth_interval=3)
    scales = []
    for _ in range(7):
        made.step(one_step(made, 0.5)[1])
        made.update()
        scales.append(made.get_scale())
    assert scales == [2, 2, 4, 4, 4, 8, 8]


def test_the_scale_does_not_grow_to_infinity() -> None:
    made = scaler(init_scale=2.0**127, growth_interval=1)
    made.step(one_step(made, 2.0**-100)[1])
    made.update()
    assert made.get_scale() == 2.0**127


def test_gradients_can_be_unscaled_to_be_looked_at() -> None:
    made = scaler(init_scale=1024.0)
    weight, optimizer = one_step(made, 0.25)
    assert weight.grad.tolist() == [256, 256]
    made.unscale_(optimizer)
    assert weight.grad.tolist() == [0.25, 0.25]
    with pytest.raises(RuntimeError, match="unscale_.. has already been called"):
        made.unscale_(optimizer)
    made.step(optimizer)
    assert weight.tolist() == [0.75, 0.75]
    with pytest.raises(RuntimeError, match="step.. has already been called"):
        made.step(optimizer)
    with pytest.raises(RuntimeError, match="unscale_.. is being called after step"):
        made.unscale_(optimizer)


def test_containers_of_losses() -> None:
    made = scaler(init_scale=4.0)
    losses = made.scale([torch.ones(1), (torch.ones(1), torch.ones(2))])
    assert losses[0].tolist() == [4] and losses[1][1].tolist() == [4, 4]
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable"):
        made.scale(3)


def test_the_order_of_calls() -> None:
    made = scaler()
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        made.step(optimizer)
    with pytest.raises(AssertionError, match="Attempted update but _scale is None"):
        made.update()
    made.scale(torch.ones(1))
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        made.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        made.step(optimizer, closure=lambda: None)


def test_half_gradients_are_refused() -> None:
    made = scaler()
    weight = torch.ones(1, dtype=torch.float16, requires_grad=True)
    made.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        made.step(torch.optim.SGD([weight], lr=1.0))


def test_a_new_scale_and_a_saved_one() -> None:
    made = scaler(init_scale=4.0, growth_factor=3.0)
    made.scale(torch.ones(1))
    made.update(16.0)
    assert made.get_scale() == 16
    made.update(torch.tensor(32.0))
    other = scaler()
    other.load_state_dict(made.state_dict())
    assert other.state_dict() == made.state_dict() and other.get_growth_factor() == 3
    assert pickle.loads(pickle.dumps(made)).get_scale() == 32
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        other.load_state_dict({})


def test_without_a_gpu_scaling_is_off() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"):
        made = torch.amp.GradScaler()
    assert not made.is_enabled() and made.state_dict() == {} and made.get_scale() == 1
    x = torch.ones(1)
    assert made.scale(x) is x
    with pytest.warns(FutureWarning, match="torch.cpu.amp.GradScaler"):
        assert torch.cpu.amp.GradScaler().is_enabled()
