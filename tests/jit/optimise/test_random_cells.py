"""Loops with random cells compute what they compute as they stand: numbers, gradients and which of
them exist, memory, and errors where something was written to.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from flambeau.jit.optimise import settings as switches
from tests.jit.optimise.random_cells import (
    Outcome,
    Program,
    assert_outcomes_agree,
    draw_calls,
    draw_plan,
    forms_of,
    is_settled,
)

# ruff: noqa: ANN001, ANN201

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _only_loops():
    """What groups of operators do has tests of its own."""
    with switches.using(fusion=False, raise_faults=True):
        yield


def assert_calls_agree(program, random, count):
    """Some calls of a program give what it gives as it stands."""
    plain, fast = forms_of(program.function)
    assume(fast is not None)
    for arguments in draw_calls(random, program.rank, count):
        plan = draw_plan(random)
        expected = Outcome(plain, arguments, plan)
        got = Outcome(fast, arguments, plan)
        if got.seen == expected.seen and not is_settled(plain, arguments, plan, expected):
            continue
        assert_outcomes_agree(got, expected, arguments.dtype)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_cells_agree(random):
    program = Program(random)
    try:
        assert_calls_agree(program, random, 3)
    except AssertionError:
        print(program.text)
        raise
