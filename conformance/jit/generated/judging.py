"""What a process does with a drawn script: forms are compared, and findings made small."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from . import checking, grouping, keeping, programs, shrinking
from .workers import LIMIT, SHRUNK, Plan, Slow, limited

drawn, written = programs.case, keeping.written


def judged(pipe: Connection, plan: Plan, case: Any, seen: Counter[str]) -> dict[str, Any]:
    with limited(LIMIT):
        result = checking.check(case)
    counts = {
        "programs": 1, "calls": len(case.calls), "raised": result.raised,
        "not compiled": not result.compiled, **result.explained,
    }  # fmt: skip
    findings = [result.finding] if result.finding is not None else []
    if plan.across and result.compiled and not findings:
        with limited(LIMIT):
            findings += _across(plan, case, counts)
    counts["findings"] = len(findings)
    return {"counts": counts, "found": [_told(pipe, finding, seen) for finding in findings]}


def _across(plan: Plan, case: Any, counts: dict[str, Any]) -> list[Any]:
    """What a run in PyTorch finds, for a share of the programs."""
    if random.Random(case.seed).random() > plan.across:
        return []
    import torch as reference

    counts["across"] = 1
    result = checking.check_across(case, reference)
    counts["not compiled by PyTorch"] = not result.compiled
    return [result.finding] if result.finding is not None else []


def _told(pipe: Connection, finding: Any, seen: Counter[str]) -> dict[str, Any]:
    """A finding as data, made small if it is one of the first of its kind."""
    case, group = finding.case, finding.kind
    found = {"seed": case.seed, "detail": finding.difference.detail, "call": finding.call}
    pipe.send({"stage": "shrinking"})
    with contextlib.suppress(Slow):
        with limited(2 * LIMIT):
            group = grouping.signature(finding)
        seen[group] += 1
        if seen[group] <= SHRUNK:
            case = shrinking.shrunk(case, lambda c: _shows(finding, c, pipe))
            with limited(2 * LIMIT):
                group = grouping.signature(replace(finding, case=case))
    return {**found, "group": group, "case": keeping.written(case),
            "drawn": keeping.written(finding.case)}  # fmt: skip


def _shows(finding: Any, case: Any, pipe: Connection) -> bool:
    """Whether a smaller case still shows a finding."""
    pipe.send({"stage": "shrinking"})
    try:
        with limited(LIMIT / 4):
            return grouping.shows(case, finding)
    except Slow:
        return False
