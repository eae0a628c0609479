"""No parameter is taken and then ignored, but for those of which the documentation says why."""

from __future__ import annotations

import random

import pytest

from conformance.calls.generated.sources import targets
from conformance.unread import reasons
from conformance.unread.effects import Finding, findings, told_apart
from conformance.unread.programs import PROGRAMS
from conformance.unread.reading import unread
from tests.random_seeds import token

DRAWN = 6
"""How many functions are called in drawn ways, others in every run."""


def test_the_page_has_the_table_of_now() -> None:
    page = reasons.PAGE.read_text("utf-8")
    assert page.count(reasons.BEGIN) == page.count(reasons.END) == 1
    assert reasons.with_table(page) == page, "python -m conformance.unread --write"
    assert len(reasons.REASONS) < 40


def test_every_parameter_is_read() -> None:
    left = [entry for entry in unread() if reasons.reason(entry.path, entry.parameter) is None]
    assert not left


def test_what_is_not_read_is_found() -> None:
    found = {(entry.path, entry.parameter) for entry in unread()}
    assert ("torch.Tensor.expand", "implicit") in found
    assert ("torch.layer_norm", "eps") not in found


@pytest.mark.parametrize("part", range(8))
def test_programs(part: int) -> None:
    for program in PROGRAMS[part::8]:
        finding, _ = told_apart(program.path, program.parameter, program.texts())
        assert _explained(finding), finding


def test_what_has_no_effect_is_found() -> None:
    texts = [f"x = torch.tensor([[1.0], [2.0]])\nr = x.ctc({n})\n" for n in (1, 2)]
    assert told_apart("x", "y", texts) == (None, False), "both fail in both"
    texts = [f"r = 1 if torch.__name__ == 'flambeau' else {n}\n" for n in (1, 2)]
    finding, acts = told_apart("x", "y", texts)
    assert finding is not None
    assert not acts


def test_drawn_calls() -> None:
    """What our code never tells apart, but for one: a parameter may act in calls that were not
    drawn. Calls in which it tells too little are for `conformance.calls`."""
    seed = token("calls")
    print(f"seed {seed}")
    drawn = random.Random(seed).sample(targets(), DRAWN)
    found = [finding for target in drawn for finding in findings(target, seed)]
    never = [one for one in found if one.never and not _explained(one)]
    assert len(never) <= 1, never


def _explained(finding: Finding | None) -> bool:
    return finding is None or reasons.reason(finding.path, finding.parameter) is not None
