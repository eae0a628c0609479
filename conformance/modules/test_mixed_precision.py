"""Mixed precision behaves as torch's does: one scenario, two libraries, the same observations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.autograd.observing import observe
from conformance.modules import amp_backward, amp_programs, amp_recurrent, amp_scaling, amp_weights
from tests.random_seeds import generator

HELPERS = ("around", "backward_alone", "flat", "number", "rounded", "state", "types_of")


def scenarios(topic: ModuleType) -> Iterator[Any]:
    """The scenarios of a file."""
    for name, found in vars(topic).items():
        own = inspect.isfunction(found) and found.__module__ == topic.__name__
        if own and name[0] != "_" and name not in HELPERS:
            yield pytest.param(found, id=f"{topic.__name__.rpartition('.')[2]}-{name}")


TOPICS = (amp_backward, amp_recurrent, amp_scaling, amp_weights)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", [s for topic in TOPICS for s in scenarios(topic)])
def test_scenario(scenario: Callable[[Any], Any]) -> None:
    theirs = observe(scenario, reference)
    if NO_PRIMITIVE in str(theirs) or (scenario.__name__ in BY_PROCESSOR and lacks_primitive()):
        pytest.skip("PyTorch has other kernels of this type, or none, for this processor")
    assert observe(scenario, flambeau) == theirs


NO_PRIMITIVE = "could not create a primitive"
"""What PyTorch says where oneDNN lacks a kernel for a processor: of bfloat16 without AVX-512."""
BY_PROCESSOR = ("types_that_do_not_go_together",)
"""Where a convolution refuses types in the words of the kernels that there are."""


@cache
def lacks_primitive() -> bool:
    """Whether PyTorch has no LSTM of bfloat16 here."""
    try:
        with reference.autocast("cpu"):
            reference.nn.LSTM(2, 2)(reference.ones(4, 2, 2))
    except RuntimeError as error:
        return NO_PRIMITIVE in str(error)
    return False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(8))
def test_random_programs(block: int) -> None:
    for number in range(25):
        seed = generator(block * 25 + number).randrange(1 << 32)
        mine, theirs = amp_programs.run(flambeau, seed), amp_programs.run(reference, seed)
        if any(line[:2] == ("LSTM", "RuntimeError") for line in theirs) and lacks_primitive():
            continue
        amp_programs.compare(mine, theirs, seed)
