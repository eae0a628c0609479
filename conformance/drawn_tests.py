"""What the tests of drawn programs share: programs that were found, and new ones for a while."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.jit.generated.__main__ import report
from conformance.jit.generated.workers import Plan, Total, run
from tests.random_seeds import token

WORKERS = int(os.environ.get("FLAMBEAU_GENERATED_WORKERS", "1"))


def kept(test: str) -> list[Path]:
    """The programs in `generated/found/` beside a test file, `__file__`."""
    return sorted(Path(test).with_name("generated").joinpath("found").glob("*.txt"))


def new_ones(what: str, seconds: float, judge: str, foreign: tuple[str, ...],
             capsys: pytest.CaptureFixture[str]) -> tuple[Total, str]:  # fmt: skip
    """Draw and compare as many programs as there is time for; what came of it, and the seed."""
    seed = token(what)
    with capsys.disabled():
        print(f"\ngenerated {what}: seed {seed}")
        plan = Plan(seed, minutes=seconds / 60, workers=WORKERS, judge=judge, foreign=foreign)
        total = run(plan)
        print(total.line())
    report(total)
    return total, seed
