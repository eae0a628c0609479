"""Averages of weights against means by hand; statistics of batch norms; SWALR."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn, optim
from flambeau.optim import swa_utils
from flambeau.optim.swa_utils import SWALR, AveragedModel, update_bn


def weights(model: Any) -> np.ndarray:
    return model.weight.detach().numpy()


def history(average: AveragedModel, model: nn.Linear, rounds: int = 6) -> list[np.ndarray]:
    """Random weights, each of which is averaged."""
    rng, seen = np.random.default_rng(0), []
    for _ in range(rounds):
        with torch.no_grad():
            model.weight.copy_(torch.tensor(rng.normal(size=model.weight.shape)))
        seen.append(weights(model).copy())
        average.update_parameters(model)
    return seen


def moving(decay: float, seen: list[np.ndarray]) -> np.ndarray:
    mean = seen[0]
    for value in seen[1:]:
        mean = decay * mean + (1 - decay) * value
    return mean


EQUAL = [
    {},
    {"avg_fn": swa_utils.get_swa_avg_fn()},
    {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},
]


@pytest.mark.parametrize("options", EQUAL)
def test_equal_average(options: dict[str, Any]):
    model = nn.Linear(3, 2, dtype=torch.float64)
    average = AveragedModel(model, **options)
    seen = history(average, model)
    # Lists are weighed by 1 / (n + 1) in float32, as in torch.
    np.testing.assert_allclose(weights(average.module), np.mean(seen, 0), rtol=1e-6)
    assert average.n_averaged.item() == 6


@pytest.mark.parametrize("decay", [0.0, 0.3, 0.9, 1.0])
def test_moving_average(decay: float):
    for options in (
        {"avg_fn": swa_utils.get_ema_avg_fn(decay)},
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(decay)},
    ):
        model = nn.Linear(3, 2, dtype=torch.float64)
        average = AveragedModel(model, **options)
        seen = history(average, model)
        np.testing.assert_allclose(weights(average.module), moving(decay, seen), rtol=1e-12)


def test_buffers_are_copied_or_averaged():
    for use_buffers, expected in ((False, 3.0), (True, 2.0)):
        model = nn.BatchNorm1d(1)
        average = AveragedModel(model, use_buffers=use_buffers)
        for value in (1.0, 3.0):
            model.running_mean.fill_(value)
            average.update_parameters(model)
        assert average.module.running_mean.item() == expected


def test_the_model_is_copied():
    model = nn.Linear(2, 2)
    average = AveragedModel(model)
    model.weight.detach().zero_()
    assert average.module.weight.detach().abs().sum().item() > 0
    inputs = torch.ones(1, 2)
    assert torch.equal(average(inputs), average.module(inputs))


def test_checkpoints_and_copies():
    model = nn.Linear(3, 2, dtype=torch.float64)
    average = AveragedModel(model)
    history(average, model, 3)
    assert list(average.state_dict()) == ["n_averaged", "module.weight", "module.bias"]
    file = io.BytesIO()
    torch.save(average.state_dict(), file)
    file.seek(0)
    loaded = AveragedModel(nn.Linear(3, 2, dtype=torch.float64))
    loaded.load_state_dict(torch.load(file))
    twin = copy.deepcopy(average)
    for each in (average, loaded, twin):
        history(each, model, 2)
        assert each.n_averaged.item() == 5
    np.testing.assert_array_equal(weights(loaded.module), weights(average.module))
    np.testing.assert_array_equal(weights(twin.module), weights(average.module))


def test_lists_hold_one_dtype():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, dtype=torch.float64))
    calls = []
    average = AveragedModel(
        model, multi_avg_fn=lambda mine, theirs, count: calls.append([t.dtype for t in mine])
    )
    average.update_parameters(model)
    average.update_parameters(model)
    assert calls == [[torch.float64] * 2, [torch.float32] * 2]


def test_wrong_arguments():
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        AveragedModel(nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max)
    with pytest.raises(ValueError, match="Invalid decay value 1.5 provided"):
        swa_utils.get_ema_avg_fn(1.5)
    with pytest.raises(ValueError, match="instead got square"):
        SWALR(two_groups(), 0.1, anneal_strategy="square")
    with pytest.raises(ValueError, match="anneal_epochs must be equal or greater than 0, got -1"):
        SWALR(two_groups(), 0.1, anneal_epochs=-1)


@pytest.mark.parametrize("as_list", [False, True])
def test_update_bn(as_list: bool):
    model = nn.Sequential(nn.BatchNorm1d(2, momentum=0.3), nn.Dropout(0.5)).eval()
    model[0].running_mean.fill_(99.0)
    data = np.random.default_rng(1).normal(size=(4, 8, 2))
    batches = [torch.tensor(batch, dtype=torch.float32) for batch in data]
    update_bn([[batch, None] for batch in batches] if as_list else batches, model)
    norm = model[0]
    np.testing.assert_allclose(norm.running_mean.numpy(), data.mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(norm.running_var.numpy(), data.var(1, ddof=1).mean(0), rtol=1e-5)
    assert (norm.momentum, model.training, norm.num_batches_tracked.item()) == (0.3, False, 4)


def test_models_without_batch_norms_are_not_run():
    update_bn([None], nn.Linear(2, 2))


def two_groups() -> optim.SGD:
    params = [torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)]
    return optim.SGD([{"params": params[:1], "lr": 0.5}, {"params": params[1:]}], lr=0.1)


@pytest.mark.parametrize("strategy", ["linear", "cos"])
def test_rates(strategy: Any):
    optimizer = two_groups()
    schedule = SWALR(optimizer, [0.1, 0.3], anneal_epochs=8, anneal_strategy=strategy)
    for epoch in range(12):
        share = min(1.0, epoch / 8)
        share = share if strategy == "linear" else (1 - np.cos(np.pi * share)) / 2
        expected = [0.5 + share * (0.1 - 0.5), 0.1 + share * (0.3 - 0.1)]
        assert schedule.get_last_lr() == pytest.approx(expected)
        optimizer.step()
        schedule.step()


def test_a_saved_schedule_goes_on():
    states = []
    for strategy in ("linear", "cos"):
        optimizer = two_groups()
        schedule = SWALR(optimizer, 0.1, anneal_epochs=8, anneal_strategy=strategy)
        for _ in range(3):
            optimizer.step()
            schedule.step()
        states.append((optimizer.state_dict(), schedule.state_dict()))
        assert "anneal_func" not in states[-1][1]
    taken = two_groups()
    schedule = SWALR(taken, 0.1, anneal_epochs=8, anneal_strategy="linear")
    schedule.load_state_dict(states[1][1])
    taken.load_state_dict(states[1][0])
    taken.step()
    schedule.step()
    share = (1 - np.cos(np.pi * 4 / 8)) / 2
    assert schedule.get_last_lr()[0] == pytest.approx(0.5 + share * (0.1 - 0.5))
