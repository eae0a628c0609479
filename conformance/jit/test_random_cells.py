"""Scripted loops with random cells against PyTorch's own operators: results, gradients and which of
them exist, and what backward misses after a write.
"""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import pytest
import torch as reference

from flambeau.jit.optimise import settings
from tests.jit.optimise.random_cells import (
    Outcome,
    Program,
    assert_outcomes_agree,
    draw_calls,
    draw_plan,
    forms_of,
    is_settled,
    loaded,
)
from tests.random_seeds import generator


@pytest.fixture(autouse=True)
def _only_loops() -> Any:
    """Groups of operators have tests of their own."""
    with warnings.catch_warnings(), settings.using(fusion=False, raise_faults=True):
        warnings.simplefilter("ignore")
        yield


def compared(seen: list[Any]) -> list[Any]:
    """What is the same in both libraries: not whether a result of a composite operator is a view,
    nor whether gradients of gradients of a constant require grad.
    """
    found: list[Any] = []
    for entry in seen:
        if entry and entry[0] == "raises":
            found.append(("raises", entry[2]))
        elif isinstance(entry, list):
            found.append([item if item is None else tuple(item)[:4 if len(item) > 3 else 2]
                          for item in entry])  # fmt: skip
    return found


@pytest.mark.parametrize("start", range(8))
def test_random_cells(start: int) -> None:
    """Some programs each, others in each run."""
    seed = generator("cells", start).randrange(10**6)
    print("seed", seed)
    random = Random(seed)
    for _ in range(4):
        program = Program(random)
        _, fast = forms_of(program.function)
        if fast is None:
            continue
        theirs = loaded(program.text, reference)
        for arguments in draw_calls(random, program.rank, 3):
            plan = {**draw_plan(random), "again": False}
            expected = Outcome(theirs, arguments, plan, reference)
            if expected.error and "modified by an inplace" not in str(expected.error):
                continue  # code that is not used need not run
            got = Outcome(fast, arguments, plan)
            expected.seen, got.seen = compared(expected.seen), compared(got.seen)
            if got.seen == expected.seen and not is_settled(theirs, arguments, plan, expected):
                continue
            try:
                assert_outcomes_agree(got, expected, arguments.dtype)
            except AssertionError:
                print(program.text)
                raise
