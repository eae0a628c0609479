"""nn.Module and what surrounds it behave as torch's do: one scenario, two libraries."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.autograd.observing import observe
from conformance.modules import (
    module_containers,
    module_conversion,
    module_functions,
    module_lazy,
    module_members,
    module_pruning,
    module_reparametrized,
)
from conformance.modules.module_attempts import tried
from tests.random_seeds import generator

TOPICS = (
    module_containers,
    module_conversion,
    module_functions,
    module_lazy,
    module_members,
    module_pruning,
    module_reparametrized,
)


def scenarios(topic: ModuleType) -> Iterator[Any]:
    """The scenarios of a file."""
    for name, found in vars(topic).items():
        if inspect.isfunction(found) and found.__module__ == topic.__name__ and name[0] != "_":
            yield pytest.param(found, id=f"{topic.__name__.rpartition('.')[2]}-{name}")


@pytest.fixture(autouse=True)
def _every_warning() -> Iterator[None]:
    """Some warnings are given once per process only."""
    for library in (reference, flambeau):
        library.set_warn_always(True)
    yield
    for library in (reference, flambeau):
        library.set_warn_always(False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", [s for topic in TOPICS for s in scenarios(topic)])
def test_scenario(scenario: Callable[[Any], Any]) -> None:
    assert observe(scenario, flambeau) == observe(scenario, reference)


# ---- drawn programs over containers

KINDS = ("ReLU", "Tanh", "ELU")
NAMES = ("a", "b", "0", "1", "2", "3")


def drawn_step(draw: random.Random) -> tuple[Any, ...]:
    """One change of a container."""
    place = draw.randint(-4, 5)
    kind = draw.choice(KINDS)
    span = slice(draw.randint(-2, 2), draw.randint(-2, 4), draw.choice((None, 1, 2, -1)))
    return draw.choice((
        ("insert", place, kind), ("append", kind), ("pop", place), ("del", place), ("del", span),
        ("set", place, kind), ("get", span), ("get", place), ("extend", kind),
        ("name", draw.choice(NAMES), kind), ("times", draw.choice((0, 1, 2))), ("add", kind),
    ))  # fmt: skip


def taken(library: Any, held: Any, step: tuple[Any, ...]) -> Any:
    """Take a step; what comes of it."""
    what, *rest = step
    if rest and rest[-1] in KINDS:
        rest[-1] = getattr(library.nn, rest[-1])()
    if what in ("insert", "append", "pop"):
        return getattr(held, what)(*rest)
    if what == "name":
        return held.add_module(*rest)
    if what == "extend":
        return held.extend([rest[0], rest[0]])
    if what == "times":
        return held * rest[0]
    if what == "add":
        return held + type(held)(*([[rest[0]]] if "List" in type(held).__name__ else rest))
    operate = {"del": held.__delitem__, "set": held.__setitem__, "get": held.__getitem__}
    return operate[what](*rest)


def run_steps(library: Any, container: str, steps: list[tuple[Any, ...]]) -> list[Any]:
    """What comes of each step, and what the container holds after it."""
    held = getattr(library.nn, container)()
    for _ in range(3):
        held.append(library.nn.Tanh())
    found = []
    for step in steps:
        outcome = tried(lambda step=step: taken(library, held, step))
        found.append((outcome, [(name, repr(child)) for name, child in held._modules.items()]))
    return found


@pytest.mark.parametrize("container", ["Sequential", "ModuleList"])
@pytest.mark.parametrize("number", range(40))
def test_drawn_container(container: str, number: int) -> None:
    draw = generator(container, number)
    steps = [drawn_step(draw) for _ in range(12)]
    results = [run_steps(library, container, steps) for library in (flambeau, reference)]
    assert results[0] == results[1], f"{steps}"
