"""One case from beginning to end: whether the optimised form and the others agree."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
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

    @property
    def against_plain(self) -> bool:
        """Whether PyTorch has no part in it."""
        return "plain" in self.forms


@dataclass
class Checked:
    """What came of a case."""

    finding: Finding | None = None
    compiled: bool = True
    raised: int = 0
    """How many calls raise an error in all forms."""
    explained: Counter[str] = field(default_factory=Counter)
    """Differences that are none: `unused` computations, numbers that are not `determined`."""


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
    return compared(case, found, wanted)


def _fresh(case: Case, function: Any) -> Any:
    """What is called next: a module has changed, a function has not."""
    return Program(case, flambeau).subject() if "class M" in case.text else function


def compared(case: Case, found: list[Outcome], wanted: list[Outcome],
             rules: Rules = STRICT, forms: str = "optimised against plain") -> Checked:  # fmt: skip
    """The first call that differs."""
    result = Checked(raised=sum(bool(outcome.raised) for outcome in wanted))
    for index, (mine, other) in enumerate(zip(found, wanted, strict=True)):
        told = difference(mine, other, rules)
        if told is None:
            continue
        reason = _explained(case, mine, wanted, index, told, rules)
        if reason:
            result.explained[reason] += 1
            if bool(mine.raised) != bool(other.raised) and "class M" in case.text:
                break  # what is written after a call was written to one of the modules only
            continue
        result.finding = Finding(case, index, told, forms)
        break
    return result


def _explained(case: Case, mine: Outcome, wanted: list[Outcome], index: int,
               told: Difference, rules: Rules) -> str:  # fmt: skip
    """Why a difference must be expected, if it must: unused computations are left out, as PyTorch
    does, with their errors and random numbers; and numbers may not be well determined."""
    raise_both = bool(mine.raised and wanted[index].raised)
    if _may_be_unused(told) or raise_both or RANDOM.search(case.text):
        tidied = _tidied(case)
        without = difference(tidied[index], wanted[index], rules)
        drawn = tidied[index].random != wanted[index].random  # then everything may be another
        allowed = without is not None and (drawn or without.of_values or _may_be_unused(without))
        left = difference(mine, tidied[index])
        if allowed and left is None:
            return "unused"
        if allowed and left is not None and left.of_values:
            return "" if conditioning.determined(case, tidied, index, left, True) else "unused"
    if not told.of_values and not told.kind.startswith(("raises", "does not")):
        return ""
    determined = conditioning.determined(case, wanted, index, told)
    return "" if determined else "undetermined"


def _may_be_unused(told: Difference) -> bool:
    """Whether the difference may be that something is not computed which nothing uses."""
    starts = ("random state", "does not raise in call", "raises another")
    return told.kind.startswith(starts)


TIES = re.compile(r"median|topk|sort|kthvalue|mode|max|min")
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
    """Compare the optimised form with PyTorch's script, and with PyTorch's eager run where that
    differs: what its two runs do not agree on is its own."""
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
    rules = replace(ACROSS, indices=TIES.search(case.text) is None)
    result = compared(case, found, wanted, rules, "optimised against PyTorch")
    if result.finding is None:
        return result
    eager = Program(case, reference, scripted=False).subject()
    again = compared(case, found, outcomes(eager, case, reference), rules,
                     "optimised against PyTorch")  # fmt: skip
    if again.finding is None:
        again.explained["PyTorch's own"] += 1
    return again
