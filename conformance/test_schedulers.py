"""Schedules with random options over 70 steps: the rates, states and files of torch."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from conformance.schedules import (
    ABOUT,
    CASES,
    CLOSED,
    COMPOSED,
    LIBRARIES,
    OPTIONS,
    STEPS,
    Halving,
    drawn,
    integer,
    made,
    module,
    optimizer_of,
    plain,
    quiet,
    rates,
    step,
    traced,
)


def test_every_schedule_is_tried() -> None:
    assert set(module(reference).__all__) == {*OPTIONS, *COMPOSED, "LRScheduler"}
    assert module(flambeau).__all__ == module(reference).__all__


@pytest.mark.parametrize("name", module(reference).__all__)
def test_signature(name: str) -> None:
    ours, theirs = (getattr(module(library), name) for library in LIBRARIES)
    assert (ours.__name__, ours.__qualname__) == (theirs.__name__, theirs.__qualname__)
    for method in ("__init__", "step"):
        pair = [inspect.signature(getattr(cls, method)).parameters for cls in (ours, theirs)]
        described = [[(p.name, p.kind, p.default) for p in found.values()] for found in pair]
        assert described[0] == described[1]


# ---- the same rates and states


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_steps(name: str, seed: int) -> None:
    options, about = drawn(name, seed), ABOUT[seed % len(ABOUT)]
    if name == "ReduceLROnPlateau" or not about.get("tensors"):
        assert traced(flambeau, name, options, **about) == traced(reference, name, options, **about)
        return
    # Rates that are float32 tensors: bit by bit too.
    ours, theirs = (traced(library, name, options, **about) for library in LIBRARIES)
    assert repr(ours).replace("flambeau.", "torch.") == repr(theirs)


@pytest.mark.parametrize("name", CLOSED)
def test_epochs_given(name: str) -> None:
    """`step(epoch)` goes to any epoch; `step()` goes on from there."""
    for seed in range(6):
        options, found = drawn(name, seed), []
        epochs = np.random.default_rng(seed).integers(0, 60, size=12).tolist()
        for library in LIBRARIES:
            optimizer, scheduler = made(library, name, options, **ABOUT[seed % 2])
            with quiet():
                for epoch in epochs:
                    scheduler.step(epoch)
                    found.append([rates(optimizer), plain(scheduler.state_dict())])
                    scheduler.step()
                    found.append([rates(optimizer), plain(scheduler.state_dict())])
        assert found[: len(found) // 2] == found[len(found) // 2 :]


def test_fractions_of_epochs() -> None:
    for seed in range(12):
        options, found = drawn("CosineAnnealingWarmRestarts", seed), []
        for library in LIBRARIES:
            optimizer, scheduler = made(library, "CosineAnnealingWarmRestarts", options)
            for batch in range(100):
                scheduler.step(batch / 7)
                found.append([rates(optimizer), plain(scheduler.state_dict())])
        assert found[:100] == found[100:]


@pytest.mark.parametrize("name", CLOSED)
def test_begun_in_the_middle(name: str) -> None:
    """A new schedule with `last_epoch`, where the groups hold what an earlier one wrote."""
    for seed in range(6):
        options, results = drawn(name, seed), []
        for library in LIBRARIES:
            optimizer, scheduler = made(library, name, options)
            for number in range(20):
                step(optimizer, scheduler, number)
            kind = getattr(module(library), name)
            scheduler = kind(optimizer, last_epoch=scheduler.last_epoch, **options)
            found = [rates(optimizer)]
            found += [step(optimizer, scheduler, number) for number in range(20)]
            results.append((found, plain(scheduler.state_dict())))
        assert results[0] == results[1]


# ---- schedules of schedules

PARTS = [name for name in OPTIONS if name not in ("ReduceLROnPlateau", "OneCycleLR", "CyclicLR")]


def composed(library: Any, kind: str, seed: int, depth: int = 1) -> tuple[Any, Any]:
    """Two to four random schedules, one of which may be composed itself."""
    rng = np.random.default_rng((seed, len(kind)))
    optimizer = optimizer_of(library)
    return optimizer, composed_on(library, optimizer, kind, rng, depth)


def composed_on(library: Any, optimizer: Any, kind: str, rng: Any, depth: int) -> Any:
    count = integer(rng, 2, 5)
    parts = []
    for _ in range(count):
        name = PARTS[integer(rng, 0, len(PARTS))]
        parts.append(getattr(module(library), name)(optimizer, **OPTIONS[name](rng)))
    if depth and rng.random() < 0.4:
        inner = COMPOSED[integer(rng, 0, 2)]
        parts[-1] = composed_on(library, optimizer, inner, rng, depth - 1)
    if kind == "ChainedScheduler":
        return module(library).ChainedScheduler(parts)
    milestones = sorted(rng.choice(np.arange(1, 60), size=count - 1, replace=False).tolist())
    return module(library).SequentialLR(optimizer, parts, milestones)


@pytest.mark.parametrize("kind", COMPOSED)
@pytest.mark.parametrize("seed", range(25))
def test_schedules_of_schedules(kind: str, seed: int) -> None:
    results = []
    for library in LIBRARIES:
        with quiet():
            results.append(story_of_composed(library, kind, seed))
    assert results[0] == results[1]


def story_of_composed(library: Any, kind: str, seed: int) -> Any:
    # A nested chain has no `last_epoch`, over which a sequence stumbles in torch too.
    try:
        optimizer, scheduler = composed(library, kind, seed)
        found = [step(optimizer, scheduler, number) for number in range(STEPS)]
    except Exception as error:
        return type(error).__name__, str(error)
    return found, plain(scheduler.state_dict())


# ---- files


def saved(library: Any, optimizer: Any, scheduler: Any) -> io.BytesIO:
    file = io.BytesIO()
    library.save({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, file)
    file.seek(0)
    return file


DIRECTIONS = [(reference, flambeau), (flambeau, reference), (flambeau, flambeau)]


def by_name(libraries: tuple[Any, Any]) -> str:
    return " to ".join(library.__name__ for library in libraries)


@pytest.mark.parametrize("direction", DIRECTIONS, ids=by_name)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_checkpoint_goes_on_in_the_other(name: str, direction: tuple[Any, Any]) -> None:
    writer, reader = direction
    for seed in range(4):
        options = drawn(name, seed)
        optimizer, scheduler = made(writer, name, options, **ABOUT[seed % len(ABOUT)])
        for number in range(11 + seed):
            step(optimizer, scheduler, number)
        file = saved(writer, optimizer, scheduler)
        taken = made(reader, name, copy.deepcopy(options), **ABOUT[seed % len(ABOUT)])
        state = reader.load(file, weights_only=True)
        # The schedule first: what it wrote when it was made, the optimizer's state overwrites.
        taken[1].load_state_dict(state["scheduler"])
        taken[0].load_state_dict(state["optimizer"])
        assert same(scheduler.state_dict(), taken[1].state_dict())
        for number in range(20, STEPS):
            assert same(step(optimizer, scheduler, number), step(*taken, number))


@pytest.mark.parametrize("direction", DIRECTIONS[:2], ids=by_name)
@pytest.mark.parametrize("kind", COMPOSED)
def test_a_checkpoint_of_composed(kind: str, direction: tuple[Any, Any]) -> None:
    writer, reader = direction
    with quiet():
        optimizer, scheduler = composed(writer, kind, 3, depth=0)
        for number in range(13):
            step(optimizer, scheduler, number)
        taken = composed(reader, kind, 3, depth=0)
        state = reader.load(saved(writer, optimizer, scheduler), weights_only=True)
        taken[1].load_state_dict(state["scheduler"])
        taken[0].load_state_dict(state["optimizer"])
        for number in range(20, STEPS):
            assert same(step(optimizer, scheduler, number), step(*taken, number))
        assert same(scheduler.state_dict(), taken[1].state_dict())


def same(ours: Any, theirs: Any) -> bool:
    """Bit by bit equal, whichever library's tensors they hold."""
    pair = [repr(plain(value)).replace("flambeau.", "torch.") for value in (ours, theirs)]
    return pair[0] == pair[1]


@pytest.mark.parametrize("direction", DIRECTIONS[:2], ids=by_name)
@pytest.mark.parametrize("name", OPTIONS)
def test_whole_schedules_in_files(name: str, direction: tuple[Any, Any]) -> None:
    """A schedule with its optimizer, saved as an object."""
    writer, reader = direction
    options = drawn(name, 1)
    if "lr_lambda" in options:
        options = {"lr_lambda": Halving(4)}
    optimizer, scheduler = made(writer, name, options)
    for number in range(9):
        step(optimizer, scheduler, number)
    file = io.BytesIO()
    writer.save(scheduler, file)
    file.seek(0)
    taken = reader.load(file, weights_only=False)
    assert type(taken) is getattr(module(reader), name)
    for number in range(9, STEPS):
        with quiet():
            assert same(step(optimizer, scheduler, number), step(taken.optimizer, taken, number))


@pytest.mark.parametrize("name", OPTIONS)
def test_copies(name: str) -> None:
    for duplicate in (copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        options = {"lr_lambda": Halving(4)} if "lr_lambda" in drawn(name, 2) else drawn(name, 2)
        optimizer, scheduler = made(flambeau, name, options)
        for number in range(5):
            step(optimizer, scheduler, number)
        twin = duplicate(scheduler)
        assert twin.optimizer is not optimizer
        for number in range(5, 30):
            assert same(step(optimizer, scheduler, number), step(twin.optimizer, twin, number))
