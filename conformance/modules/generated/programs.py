"""Whole programs: a module or two, statements of some kinds, and a last look."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch as reference

from conformance.autograd.generated.running import begin_numbers, quiet

from .behaviour import Behaviour
from .drawing import Drawing, Refused
from .structure import Structure
from .training import Training

LENGTHS = (2, 3, 4, 5, 6, 7, 8, 10, 12)
TRIES = 20
Kinds = list[tuple[Callable[[], str], float]]


def case(seed: str) -> str:
    """The program of a seed."""
    drawn = random.Random(seed)
    program = Drawing(drawn)
    kinds = _kinds(program)
    begin_numbers(reference, 3)
    with quiet(), program.words.apart():
        _begin(program)
        for _ in range(drawn.choice(LENGTHS)):
            if not program.ended:
                _statement(program, kinds)
    return "\n".join(program.written) + "\n"


def _kinds(program: Drawing) -> Kinds:
    """What a program is made of; rather of one thing than of everything."""
    behaviour = Behaviour(program)
    parts = (Structure(program), behaviour, Training(program, behaviour))
    weights = program.one((1, 1, 1), (4, 1, 0), (1, 4, 0), (0.5, 1, 3), (0, 3, 0.5), (0.5, 0.7, 4))
    return [
        (make, weight * share)
        for part, share in zip(parts, weights, strict=True)
        for make, weight in part.kinds
    ]


def _begin(program: Drawing) -> None:
    """A type, and something to begin with."""
    if program.chance(0.6):
        program.add("torch.set_default_dtype(torch.float64)")
    structure = Structure(program)
    for _ in range(program.one(1, 1, 2)):
        program.add(structure.make(), always=True)
    if program.chance(0.5):
        name = program.new_name("x")
        program.add(f"{name} = batch({program.seed()}){program.one('', '.requires_grad_()')}")


def _statement(program: Drawing, kinds: Kinds) -> None:
    """Draw one that passes."""
    for _ in range(TRIES):
        make = program.random.choices(*zip(*kinds, strict=True))[0]
        try:
            if program.add(make()):
                return
        except Refused:
            continue
