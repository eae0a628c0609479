"""Random tests draw something new in every run, and say how to draw it again.

One seed, printed by pytest, stands for all that a run draws: Hypothesis's examples and what
`generator` gives. `--hypothesis-seed=N` sets it. Workers of pytest-xdist are told the same seed.

With `FLAMBEAU_DRAW_AGAIN=1`, as in CI, a test that fails on what it drew draws again. It fails if
it fails again; else the run's summary names it with its seed, as something found that is to be
looked at. So a change is not refused for a rarity that was there before it, and none is lost.

Where `FLAMBEAU_SAMPLES=1`, as in CI, slow tests go through `some` of their cases only, and
`FLAMBEAU_FILES_IN=2` draws one file of tests in two.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import core, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

WORD = "flambeau_random_seed"
FOUND = "found by a draw"
Case = TypeVar("Case")


class Run:
    """The seed of this run, and whether it was shown; 0 outside of pytest, where a module of tests
    is used by hand.
    """

    seed = 0
    is_shown = False
    generators = 0
    """How many were asked for."""


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
    Run.generators += 1
    return random.Random(repr((Run.seed, *what)))


def token(*what: Any) -> str:
    """The same as a word, for those who make their own generators of it."""
    return f"{generator(*what).getrandbits(32):08x}"


def some(what: str, cases: Sequence[Case], count: int) -> list[Case]:
    """So many cases, in their order, where samples are asked for; else all of them. They may become
    parameters: workers draw the same.
    """
    if not os.environ.get("FLAMBEAU_SAMPLES"):
        return list(cases)
    kept = random.Random(repr((Run.seed, what))).sample(range(len(cases)), count)
    return [cases[place] for place in sorted(kept)]


def is_left_out(file: Path, root: Path) -> bool:
    """Whether this run does without a file of tests."""
    share = int(os.environ.get("FLAMBEAU_FILES_IN", "1"))
    if share == 1 or not file.name.startswith("test_"):
        return False
    name = file.relative_to(root).as_posix()
    return random.Random(repr((Run.seed, name))).randrange(share) > 0


def called(item: pytest.Function) -> Generator[None, Any, Any]:
    """Around the call of a test: draws a second time where the first one fails (see above)."""
    before = Run.generators
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as error:
        drew = Run.generators > before or is_hypothesis_test(item.obj)
        if not (drew and os.environ.get("FLAMBEAU_DRAW_AGAIN")):
            raise
        _once_more(item)
        words = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        item.user_properties.append((FOUND, f"--hypothesis-seed={Run.seed} {words}"))
        return True


def _once_more(item: pytest.Function) -> None:
    """Calls a test with another seed."""
    seeds = Run.seed, core.global_force_seed
    Run.seed = secrets.randbelow(1 << 32)
    if seeds[1] is not None:
        core.global_force_seed = Run.seed
    try:
        names = item._fixtureinfo.argnames
        item.obj(**{name: item.funcargs[name] for name in names})
    finally:
        Run.seed, core.global_force_seed = seeds


def findings(passed: list[Any]) -> list[str]:
    """A line for each test that failed on its first draw alone."""
    return [
        f"found by a draw: {report.nodeid} {text}"
        for report in passed
        for name, text in report.user_properties
        if name == FOUND
    ]
