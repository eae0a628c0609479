"""Autograd behaves as torch's does: one scenario, two libraries, the same observations.

A scenario (one of `conformance/autograd/`) gets the library and returns plain data (numbers, names,
flags), or raises; the types and the first lines of errors are compared too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.autograd import (
    again,
    backward,
    bits,
    checkpoint_options,
    checkpoints,
    copies,
    functions,
    gradchecks,
    histories,
    hooks,
    leaves,
    modes,
    mutation,
    nesting,
    orders,
    other,
    ownership,
    reach,
    rules_of_jvp,
    saved,
    slopes,
    underived,
    versions,
    views,
)
from conformance.autograd.observing import observe


@pytest.fixture(autouse=True)
def _every_warning() -> Iterator[None]:
    """Some warnings are given once per process only."""
    for library in (reference, flambeau):
        library.set_warn_always(True)
    yield
    for library in (reference, flambeau):
        library.set_warn_always(False)


def scenarios(topic: ModuleType) -> Iterator[Any]:
    """The scenarios of a file."""
    for name, found in vars(topic).items():
        if inspect.isfunction(found) and found.__module__ == topic.__name__ and name[0] != "_":
            yield pytest.param(found, id=name)


TOPICS = (
    leaves,
    copies,
    backward,
    orders,
    ownership,
    reach,
    rules_of_jvp,
    hooks,
    histories,
    views,
    bits,
    versions,
    modes,
    functions,
    other,
    checkpoint_options,
    checkpoints,
    saved,
    slopes,
    underived,
    gradchecks,
    mutation,
    again,
    nesting,
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", [s for topic in TOPICS for s in scenarios(topic)])
def test_scenario(scenario: Callable[[Any], Any]) -> None:
    assert observe(scenario, flambeau) == observe(scenario, reference)
