"""Schedules with random options, made and stepped by both libraries in the same way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch as reference

import flambeau

STEPS = 70
LIBRARIES = (flambeau, reference)
Options = dict[str, Any]


# ---- both libraries, the same story


def parameters(library: Any) -> list[Any]:
    made = [library.tensor([1.0, -2.0]), library.tensor([[0.5]])]
    return [parameter.requires_grad_() for parameter in made]


def optimizer_of(library: Any, kind: str = "SGD", rate: Any = 0.2, tensors: bool = False) -> Any:
    """Two groups with rates of their own, momentum or betas, and gradients to step along."""
    params = parameters(library)
    for parameter in params:
        parameter.grad = library.ones_like(parameter)
    other = rate * 2.5
    if tensors:
        rate, other = library.tensor(rate), library.tensor(other)
    options = {"momentum": 0.9} if kind == "SGD" else {}
    groups = [{"params": params[:1], "lr": other}, {"params": params[1:]}]
    return getattr(library.optim, kind)(groups, lr=rate, **options)


def plain(value: Any) -> Any:
    """Values that can be compared across libraries, tensors with their dtype."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    if hasattr(value, "tolist"):
        return str(value.dtype), value.tolist()
    return value


def rates(optimizer: Any) -> Any:
    """All options of the groups that a schedule may write."""
    written = ("lr", "initial_lr", "max_lr", "min_lr", "momentum", "betas", "base_momentum",
               "max_momentum", "swa_lr")  # fmt: skip
    return plain([{k: group[k] for k in written if k in group} for group in optimizer.param_groups])


def module(library: Any) -> Any:
    return library.optim.lr_scheduler


def made(library: Any, name: str, options: Options, **about: Any) -> tuple[Any, Any]:
    optimizer = optimizer_of(library, **about)
    return optimizer, getattr(module(library), name)(optimizer, **options)


def step(optimizer: Any, scheduler: Any, number: int) -> Any:
    """One step of both; a plateau gets a measure that gets better, then worse."""
    optimizer.step()
    if type(scheduler).__name__ == "ReduceLROnPlateau":
        scheduler.step(float(np.cos(number / 9.0) + 0.01 * (number * 7919 % 13)))
    else:
        scheduler.step()
    epoch = getattr(scheduler, "last_epoch", None)
    return rates(optimizer), plain(scheduler.get_last_lr()), epoch


def traced(library: Any, name: str, options: Options, **about: Any) -> Any:
    optimizer, scheduler = made(library, name, options, **about)
    found = [step(optimizer, scheduler, number) for number in range(STEPS)]
    return rates(optimizer), found, list(scheduler.state_dict()), plain(scheduler.state_dict())


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ---- options


class Halving:
    """A callable object with a state: checkpoints hold its attributes."""

    def __init__(self, every: int) -> None:
        self.every = every

    def __call__(self, epoch: float) -> float:
        return 0.5 ** (epoch // self.every)


def uniform(rng: Any, low: float, high: float) -> float:
    return float(rng.uniform(low, high))


def integer(rng: Any, low: int, high: int) -> int:
    return int(rng.integers(low, high))


def one_or_two(rng: Any, low: float, high: float) -> Any:
    """One value for all groups, or a list."""
    values = [uniform(rng, low, high) for _ in range(2)]
    return values if rng.random() < 0.4 else values[0]


def function_options(rng: Any) -> Options:
    base = uniform(rng, 0.8, 1.1)

    def power(epoch: int) -> float:
        return base ** (epoch / 7)

    functions = [power, Halving(integer(rng, 3, 9))]
    return {"lr_lambda": functions if rng.random() < 0.5 else functions[integer(rng, 0, 2)]}


def cyclic_options(rng: Any) -> Options:
    options: Options = {
        "base_lr": one_or_two(rng, 0.001, 0.1),
        "max_lr": one_or_two(rng, 0.2, 1.0),
        "step_size_up": integer(rng, 1, 12),
        "step_size_down": integer(rng, 1, 12) if rng.random() < 0.5 else None,
        "mode": ("triangular", "triangular2", "exp_range")[integer(rng, 0, 3)],
        "gamma": uniform(rng, 0.9, 1.0),
        "cycle_momentum": bool(rng.random() < 0.7),
        "base_momentum": one_or_two(rng, 0.5, 0.8),
        "max_momentum": one_or_two(rng, 0.8, 0.99),
    }
    if rng.random() < 0.4:
        options["scale_fn"] = Halving(5)
        options["scale_mode"] = ("cycle", "iterations")[integer(rng, 0, 2)]
    return options


def one_cycle_options(rng: Any) -> Options:
    length: Options = {"total_steps": integer(rng, STEPS, 2 * STEPS)}
    if rng.random() < 0.4:
        length = {"epochs": integer(rng, 9, 14), "steps_per_epoch": integer(rng, 8, 12)}
    return {
        **length,
        "max_lr": one_or_two(rng, 0.1, 1.0),
        "pct_start": uniform(rng, 0.1, 0.45),
        "anneal_strategy": ("cos", "linear")[integer(rng, 0, 2)],
        "cycle_momentum": bool(rng.random() < 0.7),
        "base_momentum": one_or_two(rng, 0.5, 0.8),
        "max_momentum": one_or_two(rng, 0.8, 0.99),
        "div_factor": uniform(rng, 2, 50),
        "final_div_factor": uniform(rng, 10, 1e4),
        "three_phase": bool(rng.random() < 0.5),
    }


def plateau_options(rng: Any) -> Options:
    return {
        "mode": ("min", "max")[integer(rng, 0, 2)],
        "factor": uniform(rng, 0.1, 0.9),
        "patience": integer(rng, 0, 6),
        "threshold": uniform(rng, 0, 0.05),
        "threshold_mode": ("rel", "abs")[integer(rng, 0, 2)],
        "cooldown": integer(rng, 0, 4),
        "min_lr": one_or_two(rng, 0, 0.05),
        "eps": 10 ** uniform(rng, -9, -2),
    }


OPTIONS: dict[str, Callable[[Any], Options]] = {
    "LambdaLR": function_options,
    "MultiplicativeLR": function_options,
    "StepLR": lambda rng: {"step_size": integer(rng, 1, 20), "gamma": uniform(rng, 0.3, 1.1)},
    "MultiStepLR": lambda rng: {
        "milestones": [integer(rng, 1, STEPS) for _ in range(5)],
        "gamma": uniform(rng, 0.3, 1.1),
    },
    "ConstantLR": lambda rng: {"factor": uniform(rng, 0, 1), "total_iters": integer(rng, 1, 30)},
    "LinearLR": lambda rng: {
        "start_factor": uniform(rng, 0.01, 1),
        "end_factor": uniform(rng, 0, 1),
        "total_iters": integer(rng, 1, 60),
    },
    "ExponentialLR": lambda rng: {"gamma": uniform(rng, 0.8, 1.05)},
    "PolynomialLR": lambda rng: {
        "total_iters": integer(rng, 1, 90),
        "power": uniform(rng, 0.3, 3),
    },
    "CosineAnnealingLR": lambda rng: {
        "T_max": integer(rng, 1, 40),
        "eta_min": uniform(rng, 0, 0.1),
    },
    "CosineAnnealingWarmRestarts": lambda rng: {
        "T_0": integer(rng, 1, 20),
        "T_mult": integer(rng, 1, 4),
        "eta_min": uniform(rng, 0, 0.1),
    },
    "CyclicLR": cyclic_options,
    "OneCycleLR": one_cycle_options,
    "ReduceLROnPlateau": plateau_options,
}
COMPOSED = ("SequentialLR", "ChainedScheduler")
CASES = [(name, seed) for name in OPTIONS for seed in range(12)]
ABOUT: list[Options] = [{"kind": "SGD"}, {"kind": "Adam"}, {"kind": "AdamW", "tensors": True}]
CLOSED = [name for name in OPTIONS if name != "ReduceLROnPlateau"]


def drawn(name: str, seed: int) -> Options:
    return OPTIONS[name](np.random.default_rng((seed, len(name))))
