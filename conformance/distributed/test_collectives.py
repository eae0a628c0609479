"""Collectives in 2 and 4 processes: every rank sees what it sees under PyTorch's gloo.

In 4 processes some of the programs, others in each run; FLAMBEAU_EVERY_PROGRAM=1: all of them.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from conformance.distributed import ranks
from tests.random_seeds import generator, some

pytest.importorskip("torch")

EVERY = os.environ.get("FLAMBEAU_EVERY_PROGRAM") == "1"
PROGRAMS = (
    "reductions movements splits messages objects groups asynchronous errors data_parallel unused "
    "hooks gradients uneven zero compressed pipelines"
).split()


def compare(program: str, size: int, seed: int = 0) -> None:
    """Every line that every rank recorded is the same."""
    theirs = ranks.run("torch", program, size, seed)
    ours = ranks.run("flambeau", program, size, seed)
    for rank, (expected, seen) in enumerate(zip(theirs, ours, strict=True)):
        assert len(expected) == len(seen)
        different = [
            (rank, name, theirs_saw, ours_saw)
            for (name, theirs_saw), (_, ours_saw) in zip(expected, seen, strict=True)
            if not ranks.agree(theirs_saw, ours_saw) and not is_meant(name, theirs_saw, ours_saw)
        ]
        assert different == []


def is_meant(name: str, theirs: Any, ours: Any) -> bool:
    """Whether a difference stands in docs/compatibility.md."""
    if name.startswith("gather complex"):
        return theirs == ["RuntimeError", "Invalid scalar type"]
    if name == "lists":  # of tensors of different lengths
        return theirs[1].startswith("ProcessGroupGloo::alltoall: invalid tensor size")
    if name == "both":  # PyTorch's optimizer goes on with the gradients of its last own batch
        return True
    if name.startswith("reduce complex"):  # PyTorch prints the operation as a control character
        return theirs[0] == ours[0] and theirs[1].startswith("reduce does not support")
    return False


@pytest.mark.parametrize("program", some("collectives", PROGRAMS, 8))
def test_two_processes(program: str):
    compare(program, 2)


@pytest.mark.parametrize("place", range(len(PROGRAMS) if EVERY else 2))
def test_four_processes(place: int):
    order = generator("four processes").sample(PROGRAMS, len(PROGRAMS))
    compare(order[place], 4)


@pytest.mark.parametrize("size", [2, 4])
def test_drawn(size: int):
    compare("many", size, generator("distributed").randrange(1 << 30))
