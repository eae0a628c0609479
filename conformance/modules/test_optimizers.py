"""Optimizers behave as torch's do: one scenario, two libraries, the same observations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.autograd.observing import observe
from conformance.modules import (
    optim_averages,
    optim_clipping,
    optim_lbfgs,
    optim_names,
    optim_refusals,
    optim_repeats,
    optim_scaled,
)

TOPICS = (
    optim_averages,
    optim_clipping,
    optim_lbfgs,
    optim_names,
    optim_refusals,
    optim_repeats,
    optim_scaled,
)


def scenarios(topic: ModuleType) -> Iterator[Any]:
    """The scenarios of a file."""
    for name, found in vars(topic).items():
        if inspect.isfunction(found) and found.__module__ == topic.__name__ and name[0] != "_":
            yield pytest.param(found, id=f"{topic.__name__.rpartition('.')[2]}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", [s for topic in TOPICS for s in scenarios(topic)])
def test_scenario(scenario: Callable[[Any], Any]) -> None:
    assert observe(scenario, flambeau) == observe(scenario, reference)
