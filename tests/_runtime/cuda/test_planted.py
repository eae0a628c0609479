"""A sample of `planted_programs.py`, which draws as many as one likes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from flambeau._runtime.cuda import memory
from tests._runtime.cuda import planted_programs
from tests.random_seeds import generator


@pytest.fixture
def run(plug: Any, monkeypatch: Any) -> Any:
    """Run the program of a seed: run(seed, right)."""
    plug()  # what is left of it is forgotten in the end

    def one(seed: int, right: bool) -> tuple[str, str | None]:
        driver = planted_programs.fresh(seed)
        monkeypatch.setattr(memory, "driver", lambda: driver)
        return planted_programs.run(driver, seed, right)

    return one


@pytest.mark.parametrize("right", [False, True])
def test_what_is_planted_is_found_and_nothing_else(run: Any, right: bool) -> None:
    for seed in generator("planted faults").sample(range(1 << 30), 30):
        kind, found = run(seed, right)
        assert (found is None) == right, (seed, kind, found)


@pytest.mark.parametrize("kind", planted_programs.PLANTS)
def test_every_kind(run: Any, kind: str) -> None:
    kinds = tuple(planted_programs.PLANTS)
    seed = next(s for s in range(10_000) if random.Random(s).choice(kinds) == kind)
    for right in (False, True):
        _, found = run(seed, right)
        assert (found is None) == right, (seed, found)
