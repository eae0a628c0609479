"""Findings of the same kind put together: by how forms differ, and by who must be on for it."""

from __future__ import annotations

from dataclasses import fields

from flambeau.jit.optimise import settings

from .cases import Case
from .checking import Checked, Finding, check

SWITCHES = tuple(f.name for f in fields(settings.Settings) if f.name != "raise_faults")


def shows(case: Case, kind: str, **switches: bool) -> bool:
    """Whether a case differs in a way."""
    try:
        found: Checked = check(case, **switches)
    except Exception:  # noqa: BLE001  # the tester's own; then it is another finding
        return False
    return found.finding is not None and found.finding.kind == kind


def involved(case: Case, kind: str) -> tuple[str, ...]:
    """The parts of the optimiser without which the forms agree, or differ otherwise."""
    return tuple(name for name in SWITCHES if not shows(case, kind, **{name: False}))


def signature(finding: Finding) -> str:
    """The group of a finding."""
    parts = involved(finding.case, finding.kind)
    return f"{finding.kind} [{', '.join(parts) or 'any part'}]"
