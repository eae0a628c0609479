"""Random programs that write to what autograd saved, or give tensors other memory, fail, or do not,
just as under torch.

Every run draws new programs. `FLAMBEAU_PROGRAMS=10000` sets how many are run (500 by default).
"""

from __future__ import annotations

import os

import pytest

import flambeau
from conformance.autograd import memory_programs
from conformance.autograd.version_programs import Writer, difference, run, shrunk
from tests.random_seeds import generator

torch = pytest.importorskip("torch")
COUNT = int(os.environ.get("FLAMBEAU_PROGRAMS", "500"))


def differing(program: list[str]) -> str | None:
    """The first thing in which the libraries differ."""
    return difference(run(program, torch), run(program, flambeau))


def test_random_writes_to_saved_tensors() -> None:
    for number in range(COUNT):
        program = Writer(generator("writes", number)).program()
        if differing(program) is None:
            continue
        program = shrunk(program, differing)
        lines = "\n".join(program)
        pytest.fail(f"{lines}\n{differing(program)}")


def differing_memory(program: list[str]) -> str | None:
    """The same for programs that give tensors other memory."""
    ran = [memory_programs.run(program, t) for t in (torch, flambeau)]
    return memory_programs.difference(*ran)


def test_random_changes_of_memory() -> None:
    for number in range(COUNT):
        program = memory_programs.Writer(generator("memory", number)).program()
        if differing_memory(program) is None:
            continue
        program = shrunk(program, differing_memory)
        lines = "\n".join(program)
        pytest.fail(f"{lines}\n{differing_memory(program)}")


def test_what_differs_is_found() -> None:
    """The comparison itself: a library that counts no writes would not pass."""
    program = ["v0 = h.exp()", "L.append(v0.sum())", "v0.mul_(2)"]
    assert difference(run(program, torch), run(program[:2], torch)) is not None
    assert shrunk(program, lambda lines: "v0.mul_(2)" in lines) == ["v0.mul_(2)"]
