"""Schedules against their formulas, what checkpoints hold, warnings and errors."""

from __future__ import annotations

import copy
import gc
import io
import math
import pickle
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import optim
from flambeau.optim import lr_scheduler

EPOCHS = 40


def optimizer_of(rate: Any = 0.5) -> optim.SGD:
    """Two groups, one with `rate`, one with 0.1; every step has a gradient."""
    params = [torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)]
    for parameter in params:
        parameter.grad = torch.zeros_like(parameter)
    groups = [{"params": params[:1], "lr": rate}, {"params": params[1:]}]
    return optim.SGD(groups, lr=0.1, momentum=0.9)


def walked(optimizer: Any, schedule: Any, epochs: int = EPOCHS) -> list[list[float]]:
    """The rates of epochs 0, 1, …, one list per epoch."""
    found = [[float(group["lr"]) for group in optimizer.param_groups]]
    for _ in range(epochs):
        optimizer.step()
        schedule.step()
        found.append([float(group["lr"]) for group in optimizer.param_groups])
        assert schedule.get_last_lr() == found[-1]
    return found


Build = Callable[[optim.Optimizer], lr_scheduler.LRScheduler]
Formula = Callable[[float, int], float]


def warm_restarts(base: float, epoch: int) -> float:
    """Runs of 3, 6, 12, 24, … epochs."""
    start, length = 0, 3
    while epoch >= start + length:
        start, length = start + length, 2 * length
    return 0.01 + (base - 0.01) * (1 + math.cos(math.pi * (epoch - start) / length)) / 2


def one_cycle(base: float, epoch: int) -> float:
    """10 of 50 steps up from 1/20 to 1, the rest down to 1/20/100."""
    if epoch <= 9:
        return 0.05 + 0.95 * epoch / 9
    return 1.0 + (0.05 / 100 - 1.0) * (epoch - 9) / 40


def cyclic(base: float, epoch: int) -> float:
    """Up in 4 steps and down in 6, half as high each time."""
    place, cycle = epoch % 10, epoch // 10
    share = place / 4 if place <= 4 else (10 - place) / 6
    return 0.1 + 0.8 * share / 2**cycle


FORMULAS: dict[str, tuple[Build, Formula]] = {
    "LambdaLR": (
        lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 1 / (epoch + 1)),
        lambda base, epoch: base / (epoch + 1),
    ),
    "MultiplicativeLR": (
        lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: epoch / (epoch + 1)),
        lambda base, epoch: base / (epoch + 1),
    ),
    "StepLR": (
        lambda o: lr_scheduler.StepLR(o, 7, gamma=0.5),
        lambda base, epoch: base * 0.5 ** (epoch // 7),
    ),
    "MultiStepLR": (
        lambda o: lr_scheduler.MultiStepLR(o, [3, 20, 3], gamma=0.5),
        lambda base, epoch: base * 0.5 ** (2 * (epoch >= 3) + (epoch >= 20)),
    ),
    "ConstantLR": (
        lambda o: lr_scheduler.ConstantLR(o, 0.25, total_iters=6),
        lambda base, epoch: base * (0.25 if epoch < 6 else 1.0),
    ),
    "LinearLR": (
        lambda o: lr_scheduler.LinearLR(o, 0.2, 0.8, total_iters=12),
        lambda base, epoch: base * (0.2 + 0.6 * min(epoch, 12) / 12),
    ),
    "ExponentialLR": (
        lambda o: lr_scheduler.ExponentialLR(o, 0.9),
        lambda base, epoch: base * 0.9**epoch,
    ),
    "PolynomialLR": (
        lambda o: lr_scheduler.PolynomialLR(o, total_iters=25, power=2.5),
        lambda base, epoch: base * (1 - min(epoch, 25) / 25) ** 2.5,
    ),
    "CosineAnnealingLR": (
        lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=15, eta_min=0.02),
        lambda base, epoch: 0.02 + (base - 0.02) * (1 + math.cos(math.pi * epoch / 15)) / 2,
    ),
    "CosineAnnealingWarmRestarts": (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, T_mult=2, eta_min=0.01),
        warm_restarts,
    ),
    "CyclicLR": (lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.9, 4, 6, mode="triangular2"), cyclic),
    "OneCycleLR": (
        lambda o: lr_scheduler.OneCycleLR(
            o, 1.0, total_steps=50, pct_start=0.2, anneal_strategy="linear", div_factor=20,
            final_div_factor=100,
        ),
        one_cycle,
    ),
    "ChainedScheduler": (
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.StepLR(o, 5, gamma=0.5)]
        ),
        lambda base, epoch: base * 0.9**epoch * 0.5 ** (epoch // 5),
    ),
    "SequentialLR": (
        lambda o: lr_scheduler.SequentialLR(
            o,
            [lr_scheduler.LinearLR(o, 0.1, total_iters=8), lr_scheduler.ExponentialLR(o, 0.9)],
            [10],
        ),
        lambda base, epoch: base * (
            0.1 + 0.9 * min(epoch, 8) / 8 if epoch < 10 else 0.9 ** (epoch - 10)
        ),
    ),
}  # fmt: skip
NAMES = sorted(FORMULAS)


def test_every_schedule_has_a_formula_here():
    special = {"LRScheduler", "ReduceLROnPlateau"}
    assert set(lr_scheduler.__all__) == set(FORMULAS) | special


@pytest.mark.parametrize("name", NAMES)
def test_formula(name: str):
    build, formula = FORMULAS[name]
    optimizer = optimizer_of()
    found = walked(optimizer, build(optimizer))
    for epoch, rates in enumerate(found):
        assert rates == pytest.approx([formula(0.5, epoch), formula(0.1, epoch)], abs=1e-9), epoch


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_goes_on(name: str):
    build, _ = FORMULAS[name]
    optimizer = optimizer_of()
    schedule = build(optimizer)
    walked(optimizer, schedule, 13)
    file = io.BytesIO()
    torch.save([optimizer.state_dict(), schedule.state_dict()], file)
    file.seek(0)
    taken = optimizer_of()
    other = build(taken)
    optimizer_state, schedule_state = torch.load(file)
    other.load_state_dict(schedule_state)
    taken.load_state_dict(optimizer_state)
    assert walked(taken, other, 20) == walked(optimizer, schedule, 20)


@pytest.mark.parametrize("name", NAMES)
def test_loading_leaves_the_state_as_it_is(name: str):
    build, _ = FORMULAS[name]
    state = build(optimizer_of()).state_dict()
    before = copy.deepcopy(state)
    build(optimizer_of()).load_state_dict(state)
    assert list(state) == list(before)
    assert state == before


@pytest.mark.parametrize("name", NAMES)
def test_rates_that_are_tensors(name: str):
    """They are changed in place, and what `get_last_lr` gave is the user's own."""
    build, formula = FORMULAS[name]
    optimizer = optimizer_of(torch.tensor(0.5))
    schedule = build(optimizer)
    rate = optimizer.param_groups[0]["lr"]
    for epoch in range(1, 6):
        optimizer.step()
        schedule.step()
        assert rate.item() == pytest.approx(formula(0.5, epoch), rel=1e-5)
        schedule.get_last_lr()[0].fill_(9.0)
    assert optimizer.param_groups[0]["lr"] is rate


def test_momentum_goes_the_other_way():
    for kind, name in ((optim.SGD, "momentum"), (optim.Adam, "betas")):
        optimizer = kind([torch.ones(1, requires_grad=True)], lr=0.1)
        schedule = lr_scheduler.OneCycleLR(
            optimizer, 1.0, total_steps=11, pct_start=0.5, base_momentum=0.8, max_momentum=0.9,
            anneal_strategy="linear",
        )  # fmt: skip
        values = []
        for _ in range(10):
            value = optimizer.param_groups[0][name]
            values.append(value if name == "momentum" else value[0])
            optimizer.step()
            schedule.step()
        highest = values.index(min(values))
        assert values[0] == 0.9
        assert values[:highest] == sorted(values[:highest], reverse=True)
        assert values[highest:] == sorted(values[highest:])


class Countdown:
    """A callable object, whose attributes a checkpoint keeps."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self, epoch: float) -> float:
        return max(0.0, self.left - epoch)


def test_functions_in_checkpoints():
    """Of a function nothing is kept, of an object its attributes."""
    functions = [lambda epoch: 1.0, Countdown(5)]
    state = lr_scheduler.LambdaLR(optimizer_of(), functions).state_dict()
    assert state["lr_lambdas"] == [None, {"left": 5}]
    taken = lr_scheduler.LambdaLR(optimizer_of(), [lambda epoch: 2.0, Countdown(9)])
    taken.load_state_dict(state)
    assert taken.lr_lambdas[1].left == 5
    cyclic = lr_scheduler.CyclicLR(optimizer_of(), 0.1, 1.0, scale_fn=Countdown(3))
    assert cyclic.state_dict()["_scale_fn_custom"] == {"left": 3}


PLATEAU = [
    ({}, [1.0] * 12, [0.5] * 11 + [0.05]),
    ({"patience": 1}, [1.0, 2.0, 3.0, 0.5], [0.5, 0.5, 0.05, 0.05]),
    ({"patience": 0, "mode": "max"}, [1.0, 2.0, 1.5, 3.0], [0.5, 0.5, 0.05, 0.05]),
    ({"patience": 0, "threshold": 0.5}, [1.0, 0.6, 0.4], [0.5, 0.05, 0.05]),
    ({"patience": 0, "threshold": 0.5, "threshold_mode": "abs"}, [9.0, 8.6, 8.4],
     [0.5, 0.05, 0.05]),
    ({"patience": 0, "cooldown": 2}, [1.0] * 5, [0.5, 0.05, 0.05, 0.05, 0.005]),
    ({"patience": 0, "min_lr": 0.2}, [1.0] * 3, [0.5, 0.2, 0.2]),
    ({"patience": 0, "eps": 0.46}, [1.0] * 3, [0.5, 0.5, 0.5]),
    ({"patience": 0}, [1.0, math.nan], [0.5, 0.05]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "metrics", "expected"), PLATEAU, ids=str)
def test_plateau(options: dict[str, Any], metrics: list[float], expected: list[float]):
    optimizer = optimizer_of()
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    found = []
    for value in metrics:
        optimizer.step()
        schedule.step(torch.tensor(value))
        found.append(optimizer.param_groups[0]["lr"])
    assert found == pytest.approx(expected)


def test_an_epoch_that_is_given():
    optimizer = optimizer_of()
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
        schedule.step(6)
    assert (schedule.last_epoch, optimizer.param_groups[0]["lr"]) == (6, 0.5**7)


def test_fractions_of_epochs():
    optimizer = optimizer_of()
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, T_mult=2, eta_min=0.01)
    schedule.step(4.5)
    assert (schedule.T_cur, schedule.T_i, schedule.last_epoch) == (1.5, 6, 4)
    rate = 0.01 + 0.49 * (1 + math.cos(math.pi / 4)) / 2
    assert optimizer.param_groups[0]["lr"] == pytest.approx(rate)


def test_order_of_steps():
    optimizer = optimizer_of()
    schedule = lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


def test_a_step_of_the_users_is_noticed():
    class Still(optim.SGD):
        def step(self, closure: Any = None) -> str:
            return "nothing"

    optimizer = Still([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 1)
    assert optimizer.step() == "nothing"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


def test_a_schedule_does_not_keep_its_optimizer_in_a_cycle():
    gc.disable()
    try:
        optimizer = optimizer_of()
        schedule = lr_scheduler.StepLR(optimizer, 1)
        reference = weakref.ref(optimizer)
        del optimizer, schedule
        assert reference() is None
    finally:
        gc.enable()


def test_rates_asked_for_from_outside():
    schedule = lr_scheduler.StepLR(optimizer_of(), 1)
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        assert schedule.get_lr() == [0.5, 0.1]


@pytest.mark.parametrize("base", [lr_scheduler.LRScheduler, lr_scheduler._LRScheduler])
def test_schedules_of_the_users(base: Any):
    class Inverse(base):
        def get_lr(self) -> list[float]:
            return [rate / (1 + self.last_epoch) for rate in self.base_lrs]

    optimizer = optimizer_of()
    found = walked(optimizer, Inverse(optimizer), 4)
    assert [rates[0] for rates in found] == [0.5 / n for n in (1, 2, 3, 4, 5)]


def test_resumed_by_its_epoch():
    optimizer = optimizer_of()
    walked(optimizer, lr_scheduler.StepLR(optimizer, 3, gamma=0.5), 4)
    again = lr_scheduler.StepLR(optimizer, 3, gamma=0.5, last_epoch=4)
    assert [rates[0] for rates in walked(optimizer, again, 1)] == [0.25, 0.125]
    with pytest.raises(KeyError, match=r"'initial_lr' is not specified in param_groups\[0\]"):
        lr_scheduler.StepLR(optimizer_of(), 3, last_epoch=4)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"LambdaLR", "MultiplicativeLR"}))
def test_copies(name: str):
    optimizer = optimizer_of()
    schedule = FORMULAS[name][0](optimizer)
    walked(optimizer, schedule, 3)
    twins = copy.deepcopy(schedule), pickle.loads(pickle.dumps(schedule))
    expected = walked(optimizer, schedule, 5)
    for twin in twins:
        assert walked(twin.optimizer, twin, 5) == expected


WRONG: dict[str, tuple[type[Exception], str, Callable[[Any], Any]]] = {
    "no optimizer": (
        TypeError, "int is not an Optimizer", lambda o: lr_scheduler.StepLR(3, 1),
    ),
    "verbose": (
        TypeError, "unexpected keyword argument 'verbose'",
        lambda o: lr_scheduler.StepLR(o, 1, verbose=True),
    ),
    "one function too many": (
        ValueError, "Expected 2 lr_lambdas, but got 3",
        lambda o: lr_scheduler.LambdaLR(o, [abs] * 3),
    ),
    "a plateau in a chain": (
        ValueError, "does not support `ReduceLROnPlateau`",
        lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(o)]),
    ),
    "milestones": (
        ValueError, "number of schedulers 1 and the number of milestones to be equal to 1",
        lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 1)], [3]),
    ),
    "another optimizer": (
        ValueError, "belong to the same optimizer",
        lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(optimizer_of(), 1)], []),
    ),
    "mode": (
        ValueError, "mode none is unknown!", lambda o: lr_scheduler.ReduceLROnPlateau(o, "none"),
    ),
    "restart": (
        ValueError, "Expected positive integer T_0, but got 0",
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0),
    ),
    "momentum": (
        ValueError, "optimizer must support momentum or beta1",
        lambda o: lr_scheduler.CyclicLR(
            optim.Adagrad([torch.ones(1, requires_grad=True)]), 0.1, 1.0
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options(name: str):
    kind, text, action = WRONG[name]
    with pytest.raises(kind, match=text):
        action(optimizer_of())


def test_past_the_cycle():
    optimizer = optimizer_of()
    schedule = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=3)
    walked(optimizer, schedule, 3)
    with pytest.raises(ValueError, match="Tried to step 4 times. The specified number"):
        schedule.step()
