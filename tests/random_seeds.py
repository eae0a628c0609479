"""Random tests draw something new in every run, and say how to draw it again.

One seed, printed by pytest, stands for all that a run draws: Hypothesis's examples and what
`generator` gives. `--hypothesis-seed=N` sets it. Workers of pytest-xdist are told the same seed.
"""

from __future__ import annotations

import os
import random
import secrets
from typing import Any

from hypothesis import settings


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
    settings.register_profile("flambeau", derandomize=False, print_blob=True, **kept)
    settings.load_profile("flambeau")


def settle(option: Any) -> None:
    """The run's seed: what the command line says, else a new one; also in pytest's options, where
    Hypothesis and the workers find it.
    """
    if option.hypothesis_seed in (None, "random"):
        option.hypothesis_seed = secrets.randbelow(1 << 32)
    Run.seed = int(option.hypothesis_seed)


def told() -> list[str]:
    """How to draw the same again; once, however many files `conftest.py` take part."""
    if Run.is_shown:
        return []
    Run.is_shown = True
    return [f"random tests: --hypothesis-seed={Run.seed} draws the same again"]


def generator(*what: Any) -> random.Random:
    """Random numbers for a test, by its parameters: others in every run."""
    return random.Random(repr((Run.seed, *what)))
