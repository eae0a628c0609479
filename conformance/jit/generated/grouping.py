"""Findings of the same kind put together: by how forms differ, and by who must be on for it."""

from __future__ import annotations

from dataclasses import fields

from flambeau.jit.optimise import settings

from .cases import Case
from .checking import Checked, Finding, check, check_across

SWITCHES = tuple(f.name for f in fields(settings.Settings) if f.name != "raise_faults")


def shows(case: Case, finding: Finding, **switches: bool) -> bool:
    """Whether a case differs in the way of a finding."""
    try:
        found = _checked(case, finding, switches)
    except Exception:  # noqa: BLE001  # the tester's own; then it is another finding
        return False
    return found.finding is not None and found.finding.kind == finding.kind


def _checked(case: Case, finding: Finding, switches: dict[str, bool]) -> Checked:
    if finding.against_plain:
        return check(case, **switches)
    import torch as reference

    return check_across(case, reference)


def involved(finding: Finding) -> tuple[str, ...]:
    """The parts of the optimiser without which the forms agree, or differ otherwise."""
    return tuple(name for name in SWITCHES if not shows(finding.case, finding, **{name: False}))


def signature(finding: Finding) -> str:
    """The group of a finding."""
    if not finding.against_plain:
        return finding.kind
    return f"{finding.kind} [{', '.join(involved(finding)) or 'any part'}]"
