"""Collectives in 2 and 4 processes: every rank sees what it sees under PyTorch's gloo.

In 4 processes some of the programs, others in each run; FLAMBEAU_EVERY_PROGRAM=1: all of them.
"""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from conformance.distributed import ranks
from tests.random_seeds import generator, some

pytest.importorskip("torch")

EVERY = os.environ.get("FLAMBEAU_EVERY_PROGRAM") == "1"
PROGRAMS = (
    "reductions movements splits messages objects groups asynchronous errors data_parallel unused "
    "hooks gradients uneven zero compressed pipelines functional averages at_once threads strided "
    "of_some"
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
    if re.search(r"\b(gather|permute|splits) complex", name):  # we move more types
        refused = ["RuntimeError", "Invalid scalar type"]
        return theirs == refused and (ours is None or ours[0] != "RuntimeError")
    if name == "lists":  # of tensors of different lengths
        return theirs[1].startswith("ProcessGroupGloo::alltoall: invalid tensor size")
    if name == "both":  # PyTorch's optimizer goes on with the gradients of its last own batch
        return True
    if "complex" in name and theirs and isinstance(theirs[1], str):
        parts = re.split(
            r"[\x00-\x1f]", theirs[1]
        )  # PyTorch prints the operation as such a character
        if len(parts) == 2:
            return theirs[0] == ours[0] and ours[1].startswith(parts[0])
    if name.startswith("reduce_scatter complex"):  # PyTorch reduces the two halves of the numbers
        return ours[0] == "RuntimeError" and ours[1].endswith("does not support complex tensors")
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
