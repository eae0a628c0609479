"""What schedules say: errors, warnings and where they point, states in odd situations."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from conformance.schedules import (
    CLOSED,
    LIBRARIES,
    Halving,
    Options,
    drawn,
    made,
    module,
    optimizer_of,
    parameters,
    plain,
    rates,
)


def outcome(action: Any, library: Any) -> Any:
    """What an action returns or raises, and its warnings with the file that they point at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(action(library))
        except Exception as error:
            result = type(error).__name__, without_addresses(str(error))
    said = [(item.category, str(item.message), item.filename == __file__) for item in caught]
    return result, said


def without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def build(library: Any, kind: str, *arguments: Any, **options: Any) -> Any:
    return getattr(module(library), kind)(optimizer_of(library), *arguments, **options)


def step_first(library: Any) -> Any:
    scheduler = build(library, "StepLR", 1)
    scheduler.step()
    scheduler.step()
    return scheduler.state_dict()


def optimizer_before_schedule(library: Any) -> Any:
    optimizer = optimizer_of(library)
    optimizer.step()
    module(library).StepLR(optimizer, 1).step()


def step_replaced(library: Any) -> Any:
    optimizer, scheduler = made(library, "StepLR", {"step_size": 2})
    optimizer.step = lambda: None
    optimizer.step()
    scheduler.step()


def step_of_a_subclass(library: Any) -> Any:
    class Mine(library.optim.SGD):
        def step(self, closure: Any = None) -> str:
            return "mine"

    optimizer = Mine(parameters(library), lr=0.1)
    scheduler = module(library).StepLR(optimizer, 1)
    said = optimizer.step()
    scheduler.step()
    return said, optimizer.step.__name__, hasattr(optimizer.step, "_wrapped_by_lr_sched")


def two_schedules(library: Any) -> Any:
    optimizer = optimizer_of(library)
    first = module(library).StepLR(optimizer, 2)
    second = module(library).ExponentialLR(optimizer, 0.5)
    optimizer.step()
    first.step()
    second.step()
    return rates(optimizer), first.get_last_lr(), second.get_last_lr()


def rates_asked_for(kind: str, options: Options) -> Any:
    def story(library: Any) -> Any:
        optimizer, scheduler = made(library, kind, options)
        optimizer.step()
        return scheduler.get_lr(), scheduler._get_lr_called_within_step

    return story


def epoch_given(kind: str, options: Options, *arguments: Any) -> Any:
    def story(library: Any) -> Any:
        optimizer, scheduler = made(library, kind, options)
        optimizer.step()
        scheduler.step(*arguments)
        return rates(optimizer), scheduler.last_epoch

    return story


def chained_steps(kind: str) -> Any:
    def story(library: Any) -> Any:
        optimizer = optimizer_of(library)
        parts = [module(library).StepLR(optimizer, 3), module(library).LinearLR(optimizer)]
        extra = (parts, [2]) if kind == "SequentialLR" else ()
        arguments = (optimizer, *extra) if extra else (parts,)
        scheduler = getattr(module(library), kind)(*arguments)
        scheduler.step()
        scheduler.step()

    return story


def own_schedule(base: str, closed: bool) -> Any:
    def story(library: Any) -> Any:
        class Mine(getattr(module(library), base)):
            def get_lr(self) -> list[float]:
                return [rate * 0.5 for rate in self.base_lrs]

            if closed:

                def _get_closed_form_lr(self) -> list[float]:
                    return [float(self.last_epoch) for _ in self.base_lrs]

        optimizer = optimizer_of(library)
        scheduler = Mine(optimizer)
        scheduler.step()
        scheduler.step(7)
        kinds = [isinstance(scheduler, getattr(module(library), name))
                 for name in ("LRScheduler", "_LRScheduler")]  # fmt: skip
        return rates(optimizer), scheduler.state_dict(), kinds

    return story


def group_added(min_lr: Any) -> Any:
    def story(library: Any) -> Any:
        optimizer, scheduler = made(library, "ReduceLROnPlateau", {"patience": 0, "min_lr": min_lr})
        optimizer.add_param_group({"params": [library.ones(2, requires_grad=True)]})
        for _ in range(4):
            scheduler.step(1.0)
        return rates(optimizer)

    return story


def tensor_rates_are_not_aliased(library: Any) -> Any:
    optimizer = optimizer_of(library, tensors=True)
    scheduler = module(library).StepLR(optimizer, 1)
    kept = optimizer.param_groups[0]["lr"]
    optimizer.step()
    scheduler.step()
    scheduler.get_last_lr()[0].fill_(9.0)
    return kept is optimizer.param_groups[0]["lr"], rates(optimizer), scheduler.base_lrs


WORDS: dict[str, Any] = {
    "step first": step_first,
    "the optimizer before the schedule": optimizer_before_schedule,
    "step replaced": step_replaced,
    "step of a subclass": step_of_a_subclass,
    "two schedules": two_schedules,
    "tensor rates": tensor_rates_are_not_aliased,
    "steps in a chain": chained_steps("ChainedScheduler"),
    "steps in a sequence": chained_steps("SequentialLR"),
    "an own schedule": own_schedule("LRScheduler", False),
    "an own schedule in closed form": own_schedule("LRScheduler", True),
    "an old schedule": own_schedule("_LRScheduler", False),
    "a group added": group_added(0.01),
    "a group added to a list": group_added([0.01, 0.02]),
    "an epoch": epoch_given("StepLR", {"step_size": 2}, 5),
    "an epoch without a closed form": epoch_given("LambdaLR", {"lr_lambda": Halving(2)}, 5),
    "an epoch of a plateau": epoch_given("ReduceLROnPlateau", {}, 1.0, 5),
    "a tensor as measure": lambda t: build(t, "ReduceLROnPlateau").step(t.tensor(0.5)),
    "a measure of two": lambda t: build(t, "ReduceLROnPlateau").step("many"),
    "a negative epoch": epoch_given("CosineAnnealingWarmRestarts", {"T_0": 3}, -1),
    "the base": lambda t: build(t, "LRScheduler"),
    "no optimizer": lambda t: module(t).StepLR(3, 1),
    "no optimizer, plateau": lambda t: module(t).ReduceLROnPlateau(3),
    "no optimizer, cycle": lambda t: module(t).OneCycleLR(3, 0.1, 5),
    "no optimizer, cyclic": lambda t: module(t).CyclicLR(3, 0.1, 5),
    "resumed without initial rates": lambda t: build(t, "StepLR", 2, last_epoch=3),
    "verbose": lambda t: build(t, "StepLR", 2, verbose=True),
    "verbose plateau": lambda t: build(t, "ReduceLROnPlateau", verbose=True),
    "constant of 2": lambda t: build(t, "ConstantLR", factor=2.0),
    "linear from 0": lambda t: build(t, "LinearLR", start_factor=0.0),
    "linear to 2": lambda t: build(t, "LinearLR", end_factor=2.0),
    "too many functions": lambda t: build(t, "LambdaLR", [abs, abs, abs]),
    "too many functions to multiply": lambda t: build(t, "MultiplicativeLR", [abs, abs, abs]),
    "a number to multiply": lambda t: build(t, "MultiplicativeLR", 0.5),
    "restart of 0": lambda t: build(t, "CosineAnnealingWarmRestarts", 0),
    "restart of 1.5": lambda t: build(t, "CosineAnnealingWarmRestarts", 1.5),
    "restart times 0": lambda t: build(t, "CosineAnnealingWarmRestarts", 2, T_mult=0),
    "least rate of a string": lambda t: build(
        t, "CosineAnnealingWarmRestarts", 2, eta_min="0"
    ),
    "factor of 1": lambda t: build(t, "ReduceLROnPlateau", factor=1.0),
    "unknown mode": lambda t: build(t, "ReduceLROnPlateau", mode="none"),
    "unknown threshold": lambda t: build(t, "ReduceLROnPlateau", threshold_mode="none"),
    "too many least rates": lambda t: build(t, "ReduceLROnPlateau", min_lr=[0, 0, 0]),
    "unknown state": lambda t: build(t, "ReduceLROnPlateau").load_state_dict({"mode": "none"}),
    "cyclic without a mode": lambda t: build(t, "CyclicLR", 0.1, 1.0, mode="none"),
    "cyclic with many rates": lambda t: build(t, "CyclicLR", [0.1] * 3, 1.0),
    "cyclic with many highest": lambda t: build(t, "CyclicLR", 0.1, [1.0]),
    "cyclic with many momenta": lambda t: build(t, "CyclicLR", 0.1, 1.0, base_momentum=[0.1]),
    "cyclic without momentum": lambda t: module(t).CyclicLR(optimizer_of(t, "Adagrad"), 0.1, 1.0),
    "cycle without momentum": lambda t: module(t).OneCycleLR(optimizer_of(t, "Adagrad"), 0.1, 9),
    "cycle without steps": lambda t: build(t, "OneCycleLR", 0.1),
    "cycle with half": lambda t: build(t, "OneCycleLR", 0.1, epochs=3),
    "cycle of 0 steps": lambda t: build(t, "OneCycleLR", 0.1, 0),
    "cycle of 0 epochs": lambda t: build(t, "OneCycleLR", 0.1, epochs=0, steps_per_epoch=2),
    "cycle of 0 batches": lambda t: build(t, "OneCycleLR", 0.1, epochs=2, steps_per_epoch=0),
    "cycle with a whole share": lambda t: build(t, "OneCycleLR", 0.1, 9, pct_start=1),
    "cycle with share 2": lambda t: build(t, "OneCycleLR", 0.1, 9, pct_start=2.0),
    "cycle along a parabola": lambda t: build(t, "OneCycleLR", 0.1, 9, anneal_strategy="square"),
    "cycle with many rates": lambda t: build(t, "OneCycleLR", [0.1] * 3, 9),
    "past the cycle": epoch_given("OneCycleLR", {"max_lr": 0.1, "total_steps": 9}, 10),
    "no schedules": lambda t: module(t).ChainedScheduler([]),
    "no schedules after another": lambda t: build(t, "SequentialLR", [], []),
    "a chain of numbers": lambda t: module(t).ChainedScheduler([3]),
    "a sequence of numbers": lambda t: build(t, "SequentialLR", [3], []),
    "a chain with a plateau": lambda t: module(t).ChainedScheduler([build(t, "ReduceLROnPlateau")]),
    "a sequence of another": lambda t: build(t, "SequentialLR", [build(t, "StepLR", 1)], []),
    "a chain of another": lambda t: module(t).ChainedScheduler(
        [build(t, "StepLR", 1), build(t, "ExponentialLR", 0.5)]
    ),
    "a sequence without milestones": lambda t: module(t).SequentialLR(
        (s := build(t, "StepLR", 1)).optimizer, [s, s], []
    ),
    **{f"{name} asked": rates_asked_for(name, drawn(name, 0)) for name in CLOSED},
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    ours, theirs = (outcome(WORDS[name], library) for library in LIBRARIES)
    (result, said), (expected, expected_said) = ours, theirs
    assert repr(result).replace("flambeau.", "torch.") == repr(expected)
    # Torch's complaint about `get_lr` points into torch itself; ours points at who asked.
    assert [item[:2] for item in said] == [item[:2] for item in expected_said]
    assert all(here for _, _, here in said) or not all(here for _, _, here in expected_said)
