"""Random tests draw something new in every run, and say how to draw it again.

One seed, printed by pytest, stands for all that a run draws: Hypothesis's examples and what
`generator` gives. `--hypothesis-seed=N` sets it. Workers of pytest-xdist are told the same seed.
"""

from __future__ import annotations

import os
import random
import secrets
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

WORD = "flambeau_random_seed"


class Run:
    """The seed of this run, and whether it was shown; 0 outside of pytest, where a module of tests
    is used by hand.
    """

    seed = 0
    is_shown = False


def load_profile() -> None:
    """Hypothesis's settings for all tests. Where it finds itself in CI, its own would draw the same
    examples every time. Failing examples are kept for the next run, but not in CI, which has none.
    """
    kept = {"database": None} if os.environ.get("CI") else {}
    settings.register_profile("flambeau", derandomize=False, print_blob=True, deadline=None, **kept)
    settings.load_profile("flambeau")
    _let_the_seed_decide()


def _let_the_seed_decide() -> None:
    """Hypothesis also draws numbers that it finds in the source of what is imported by then: a test
    by itself, or in another process, would draw something else.
    """
    if hasattr(providers, "_get_local_constants"):
        none = providers._local_constants
        providers._get_local_constants = lambda: none


def settle(config: pytest.Config) -> None:
    """The run's seed: what the command line says, or the process that this one is a worker of;
    else a new one. Hypothesis finds it in pytest's options.
    """
    given = config.option.hypothesis_seed
    if given in (None, "random"):
        given = getattr(config, "workerinput", {}).get(WORD, secrets.randbelow(1 << 32))
    config.option.hypothesis_seed = Run.seed = int(given)


def tell(node: Any) -> None:
    """The same seed for a worker of pytest-xdist."""
    node.workerinput[WORD] = Run.seed


def told() -> list[str]:
    """How to draw the same again; once, however many files `conftest.py` take part."""
    if Run.is_shown:
        return []
    Run.is_shown = True
    return [f"random tests: --hypothesis-seed={Run.seed} draws the same again"]


def generator(*what: Any) -> random.Random:
    """Random numbers for a test, by its parameters: others in every run."""
    return random.Random(repr((Run.seed, *what)))
