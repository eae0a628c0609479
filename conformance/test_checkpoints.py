"""Training that changes sides: checkpoints of one library go on in the other, step for step."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flambeau

STEPS = 4
TOLERANCE = 1e-7  # some options of ASGD are float32 tensors
LIBRARIES = [(torch, flambeau), (flambeau, torch)]
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "RMSprop": {"lr": 0.01, "momentum": 0.5, "centered": True},
    "Adagrad": {"lr": 0.05},
    "Adadelta": {"lr": 0.5},
    "Adamax": {"lr": 0.01},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.01},
    "ASGD": {"lr": 0.05, "t0": 3},
    "Rprop": {"lr": 0.01},
    "Adafactor": {"lr": 0.05},
    "LBFGS": {"lr": 0.5, "max_iter": 3},
}
SCHEDULERS: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda lib, opt: lib.StepLR(opt, 3),
    "MultiStepLR": lambda lib, opt: lib.MultiStepLR(opt, [2, 5]),
    "ConstantLR": lambda lib, opt: lib.ConstantLR(opt, 0.5, 6),
    "LinearLR": lambda lib, opt: lib.LinearLR(opt, 0.1, total_iters=6),
    "ExponentialLR": lambda lib, opt: lib.ExponentialLR(opt, 0.8),
    "PolynomialLR": lambda lib, opt: lib.PolynomialLR(opt, 7, 2),
    "CosineAnnealingLR": lambda lib, opt: lib.CosineAnnealingLR(opt, 5),
    "CosineAnnealingWarmRestarts": lambda lib, opt: lib.CosineAnnealingWarmRestarts(opt, 3),
    "CyclicLR": lambda lib, opt: lib.CyclicLR(opt, 0.01, 0.1, 3),
    "OneCycleLR": lambda lib, opt: lib.OneCycleLR(opt, 0.1, total_steps=20),
    "SequentialLR": lambda lib, opt: lib.SequentialLR(
        opt, [lib.ConstantLR(opt, 0.1, 2), lib.ExponentialLR(opt, 0.9)], [3]
    ),
    "ChainedScheduler": lambda lib, opt: lib.ChainedScheduler(
        [lib.ConstantLR(opt, 0.1, 2), lib.ExponentialLR(opt, 0.9)]
    ),
}


class Run:
    """A small network under training: always the same data, weights by a formula."""

    def __init__(self, library: Any, optimizer: str, scheduler: str = "ExponentialLR") -> None:
        self.library = library
        nn = library.nn
        self.model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))
        for number, parameter in enumerate(self.model.parameters()):
            values = np.sin(np.arange(parameter.numel()) + number).reshape(tuple(parameter.shape))
            parameter.data = library.from_numpy(values)
        self.model.double()
        kind = getattr(library.optim, optimizer)
        self.optimizer = kind(self.model.parameters(), **OPTIMIZERS[optimizer])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make = SCHEDULERS[scheduler]
            self.scheduler = make(library.optim.lr_scheduler, self.optimizer)
        self.inputs = library.from_numpy(np.cos(np.arange(24.0)).reshape(6, 4))

    def loss(self) -> Any:
        self.optimizer.zero_grad()
        result = (self.model(self.inputs) ** 2).mean()
        result.backward()
        return result

    def train(self, steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            losses.append(self.optimizer.step(self.loss).item())
            self.scheduler.step()
        return losses

    def checkpoint(self) -> dict[str, Any]:
        parts = ("model", "optimizer", "scheduler")
        return {part: getattr(self, part).state_dict() for part in parts}

    def resume(self, checkpoint: dict[str, Any]) -> None:
        for part, state in checkpoint.items():
            getattr(self, part).load_state_dict(state)


def sent(value: Any, sender: Any, receiver: Any) -> Any:
    """Saved by one library, loaded by the other in the safe mode, which is the default."""
    file = io.BytesIO()
    sender.save(value, file)
    file.seek(0)
    return receiver.load(file)


def plain(value: Any) -> Any:
    """A state without anything of the library in it; tensors with dtype, shape and values."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(plain, value)]
    if hasattr(value, "tolist"):
        return str(value.dtype), tuple(value.shape), value.tolist()
    return value


def continued(optimizer: str, scheduler: str, sender: Any, receiver: Any) -> None:
    first = Run(sender, optimizer, scheduler)
    first.train(STEPS)
    checkpoint = sent(first.checkpoint(), sender, receiver)
    assert plain(checkpoint) == plain(first.checkpoint())
    second = Run(receiver, optimizer, scheduler)
    second.resume(checkpoint)
    expected = first.train(STEPS)
    np.testing.assert_allclose(second.train(STEPS), expected, rtol=TOLERANCE)
    rates = [[group["lr"] for group in run.optimizer.param_groups] for run in (first, second)]
    np.testing.assert_allclose(rates[1], rates[0], rtol=1e-12)
    back = sent(second.checkpoint(), receiver, sender)
    third = Run(sender, optimizer, scheduler)
    third.resume(back)
    np.testing.assert_allclose(third.train(STEPS), first.train(STEPS), rtol=TOLERANCE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("sender", "receiver"), LIBRARIES, ids=["from torch", "to torch"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer: str, sender: Any, receiver: Any):
    continued(optimizer, "ExponentialLR", sender, receiver)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("sender", "receiver"), LIBRARIES, ids=["from torch", "to torch"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_schedulers(scheduler: str, sender: Any, receiver: Any):
    continued("SGD", scheduler, sender, receiver)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("sender", "receiver"), LIBRARIES, ids=["from torch", "to torch"])
def test_muon_and_sparse_adam(sender: Any, receiver: Any):
    """Those two take only matrices, or only sparse gradients."""
    for name in ("Muon", "SparseAdam"):
        states = []
        for library in (sender, receiver):
            weight = library.nn.Parameter(library.ones(3, 2))
            optimizer = getattr(library.optim, name)([weight], lr=0.1)
            if library is receiver:
                optimizer.load_state_dict(sent(states[0], sender, receiver))
            grad = library.ones(3, 2) * 0.5
            weight.grad = grad.to_sparse() if name == "SparseAdam" else grad
            optimizer.step()
            states.append(optimizer.state_dict())
            if library is sender:
                continue
            assert plain(states[0]["param_groups"]) == plain(states[1]["param_groups"])
            assert states[1]["state"].keys() == states[0]["state"].keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("sender", "receiver"), LIBRARIES, ids=["from torch", "to torch"])
def test_whole_optimizers_and_schedulers(sender: Any, receiver: Any):
    """The objects themselves, with `weights_only=False`."""
    run = Run(sender, "Adam", "CosineAnnealingLR")
    run.train(STEPS)
    file = io.BytesIO()
    sender.save([run.model, run.optimizer, run.scheduler], file)
    file.seek(0)
    other = Run(receiver, "Adam", "CosineAnnealingLR")
    other.model, other.optimizer, other.scheduler = receiver.load(file, weights_only=False)
    np.testing.assert_allclose(other.train(STEPS), run.train(STEPS), rtol=TOLERANCE)
