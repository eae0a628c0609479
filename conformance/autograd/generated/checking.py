"""One program from beginning to end: whether the two libraries agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch as reference

import flambeau
from conformance.jit.generated.comparing import EPSILON, compare_arrays

from .comparing import Difference, at, difference
from .observing import Outcome, Seen
from .running import outcome
from .words import Words

SHIFT = 1e-7
"""By which part numbers are changed to see how well the results are determined."""
REACH = 1e3
"""A difference of so many times what one rounding of all numbers does is still rounding."""


OF_INTEGERS = EPSILON["float32"]
"""Functions of integers are taken in single precision."""


@dataclass(frozen=True)
class Checked:
    """What came of a program."""

    difference: Difference | None = None
    raised: int = 0
    """How many statements raise in both."""
    undetermined: bool = False
    statement: str = ""
    """The statement at which the outcomes part."""


def check(text: str, stage: Callable[[str], object] = str, language: type[Words] = Words,
          rules: Rules | None = None) -> Checked:  # fmt: skip
    """Compare the libraries; `stage` is told which one runs."""
    rules = rules or PROGRAMS
    stage("running in PyTorch")
    wanted = outcome(text, reference, language=language)
    stage("running here")
    found = rules.difference(outcome(text, flambeau, language=language), wanted)
    raised = sum(bool(line.error) for line in wanted.lines)
    if found is None:
        return Checked(raised=raised)
    if found.of_values and not rules.determined(text, wanted, found, language):
        return Checked(raised=raised, undetermined=True)
    return Checked(found, raised, statement=rules.statement(text, wanted, found))


def _statement(text: str, wanted: Outcome, found: Difference) -> str:
    """The statement at which outcomes part."""
    first = found.place[0] if found.place else -1
    return wanted.lines[first].text if isinstance(first, int) and first >= 0 else "the end"


def _determined(text: str, wanted: Outcome, found: Difference, language: type[Words]) -> bool:
    """Whether a difference in values is more than rounding could make."""
    told = at(wanted, found.place)
    if found.size * _largest(told) <= REACH * _epsilon(wanted) * _scale(wanted):
        return False  # what is left of larger numbers
    factor = REACH * _epsilon(wanted) / SHIFT
    limit = found.size / factor if factor else np.inf
    return moves_less(text, wanted, found, SHIFT, limit, language)


def moves_less(text: str, wanted: Outcome, found: Difference, shift: float, limit: float,
               language: type[Words]) -> bool:  # fmt: skip
    """Whether PyTorch's result moves by less than a limit, if all numbers change by a part of them,
    up or down."""
    told = at(wanted, found.place)
    for signed in (shift, -shift):
        other = at(outcome(text, reference, signed, language), found.place)
        if not isinstance(other, Seen) or other.values.shape != told.values.shape:
            return False
        moved = compare_arrays(other.values, told.values, signs=False)
        if not np.isfinite(moved) or moved >= limit:
            return False
    return True


def _largest(told: Any) -> float:
    sizes = np.abs(told.values[np.isfinite(told.values)])
    return float(sizes.max(initial=1e-30))


def _scale(wanted: Outcome) -> float:
    """The size of the numbers of a program."""
    sizes = [_largest(value) for line in wanted.lines for value in _tensors(line.values)]
    sizes += [_largest(value) for value in _tensors(wanted.final)]
    return min(max(sizes, default=1.0), 1e3)


def _epsilon(wanted: Outcome) -> float:
    """One rounding in the coarsest type that a program uses."""
    types = types_in(wanted)
    if any("autocast" in line.text for line in wanted.lines):
        types.add("bfloat16")
    return max((EPSILON.get(name, OF_INTEGERS) for name in types), default=0.0)


def types_in(wanted: Outcome) -> set[str]:
    """The element types of a program's tensors."""
    return {value.dtype for line in wanted.lines for value in _tensors(line.values)}


def _tensors(value: Any) -> Iterator[Seen]:
    """The tensors in what was seen."""
    if isinstance(value, Seen):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _tensors(inner)


class Rules(NamedTuple):
    """How a tester compares outcomes, which differences of values count, and what a finding is
    called by."""

    difference: Callable[[Outcome, Outcome], Difference | None]
    determined: Callable[[str, Outcome, Difference, type[Words]], bool]
    statement: Callable[[str, Outcome, Difference], str]


PROGRAMS = Rules(difference, _determined, _statement)
