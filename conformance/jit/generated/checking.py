"""One case from beginning to end: whether the optimised form and the others agree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import flambeau

from . import conditioning
from .cases import Case
from .comparing import ACROSS, STRICT, Difference, Rules, difference
from .observing import Outcome
from .running import NotCompiled, Program, optimised, outcomes, plainly


@dataclass(frozen=True)
class Finding:
    """A case whose forms differ."""

    case: Case
    call: int
    difference: Difference
    forms: str = "optimised against plain"

    @property
    def kind(self) -> str:
        return f"{self.forms}: {self.difference.kind}"


@dataclass
class Checked:
    """What came of a case."""

    finding: Finding | None = None
    compiled: bool = True
    raised: int = 0
    """How many calls raise an error in all forms."""
    undetermined: int = 0
    """How many differences were only rounding that grew."""


def check(case: Case, **switches: bool) -> Checked:
    """Compare the optimised form with the plain one."""
    try:
        function = Program(case, flambeau).subject()
    except NotCompiled:
        return Checked(compiled=False)
    with plainly():
        wanted = outcomes(function, case, flambeau)
    again = _fresh(case, function)
    with optimised(case, **switches):
        found = outcomes(again, case, flambeau)
    return compared(case, function, found, wanted)


def _fresh(case: Case, function: Any) -> Any:
    """What is called next: a module has changed, a function has not."""
    return Program(case, flambeau).subject() if "class M" in case.text else function


def compared(case: Case, function: Any, found: list[Outcome], wanted: list[Outcome],
             rules: Rules = STRICT, forms: str = "optimised against plain") -> Checked:  # fmt: skip
    """The first call that differs."""
    result = Checked(raised=sum(bool(outcome.raised) for outcome in wanted))
    for index, (mine, other) in enumerate(zip(found, wanted, strict=True)):
        told = difference(mine, other, rules)
        if told is None:
            continue
        if _explained(case, function, mine, wanted, index, told):
            result.undetermined += 1
            continue
        result.finding = Finding(case, index, told, forms)
        break
    return result


def _explained(case: Case, function: Any, mine: Outcome, wanted: list[Outcome], index: int,
               told: Difference) -> bool:  # fmt: skip
    """Whether a difference is what must be expected: unused computations are left out, as PyTorch
    does, with their errors and random numbers; and numbers that are not well determined."""
    raises = told.kind.startswith(("raises", "does not"))
    if raises or told.kind == "random state" or RANDOM.search(case.text):
        if difference(mine, _tidied(case)[index]) is None:
            return True
    if not told.of_values and not raises:
        return False
    return not conditioning.determined(case, function, wanted, index, told)


RANDOM = re.compile(r"rand|dropout|bernoulli|normal|rrelu|poisson|multinomial|exponential|uniform"
                    r"|cauchy|geometric_")  # fmt: skip
TIDY = {
    "clean_up": True, "fusion": False, "loop_batching": False, "hoisting": False, "scans": False,
    "images": False, "subscripts": False,
}  # fmt: skip


def _tidied(case: Case) -> list[Outcome]:
    """What comes of a program without the computations that nothing uses."""
    function = Program(case, flambeau).subject()
    with optimised(case, **TIDY):
        return outcomes(function, case, flambeau)


def check_across(case: Case, reference: Any) -> Checked:
    """Compare the optimised form with PyTorch's script."""
    try:
        function = Program(case, flambeau).subject()
    except NotCompiled:
        return Checked(compiled=False)
    try:
        theirs = Program(case, reference).subject()
    except NotCompiled:
        return Checked(compiled=False)
    wanted = outcomes(theirs, case, reference)
    with optimised(case):
        found = outcomes(function, case, flambeau)
    return compared(case, function, found, wanted, ACROSS, "optimised against PyTorch")
