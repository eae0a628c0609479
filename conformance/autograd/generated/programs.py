"""Whole programs: some leaves, statements, and gradients of what is left."""

from __future__ import annotations

import random
from functools import cache

import torch as reference

from conformance.jit.generated import operators
from conformance.jit.generated.expressions import Refused, Taste

from .drawing import Drawing
from .running import begin_numbers, quiet
from .statements import Statements

LENGTHS = (2, 3, 4, 5, 6, 7, 8, 10, 12)


def case(seed: str) -> str:
    """The program of a seed."""
    drawn = random.Random(seed)
    program = Drawing(drawn, _taste(drawn))
    statements = Statements(program)
    begin_numbers(reference, 3)
    with quiet():
        _begin(program, statements)
        for _ in range(drawn.choice(LENGTHS)):
            if not program.ended:
                statements.statement()
        _end(program, statements)
    return "\n".join(program.written) + "\n"


def _taste(drawn: random.Random) -> Taste:
    some = drawn.sample(everyday(), drawn.randint(20, 60))
    return Taste(drawn.choice((0.2, 0.5, 0.8)), tuple(some), 0.0, 0.0, 2)


@cache
def everyday() -> list[operators.Operator]:
    """The operators that programs are drawn from, rather than from all."""
    return [op for op in operators.catalogue() if op.name in operators.EVERYDAY]


def _begin(program: Drawing, statements: Statements) -> None:
    """Two leaves that learn, and what else there may be."""
    shape = program.random.choice(("(3,)", "(2, 3)", "(2, 3)", "(3, 3)", "(2, 2, 3)"))
    for _ in range(2):
        seed, name = program.random.randrange(100), program.new_name("x")
        program.add(f"{name} = make({seed}, {shape}).requires_grad_()", always=True)
    for _ in range(program.random.choice((0, 0, 1, 2))):
        program.add(statements.make())


def _end(program: Drawing, statements: Statements) -> None:
    """Gradients, and sometimes gradients of these."""
    for _ in range(program.random.choice((1, 2, 3))):
        if program.ended:
            return
        try:
            program.add(program.random.choice((statements.grads, statements.backward))())
        except Refused:
            return
