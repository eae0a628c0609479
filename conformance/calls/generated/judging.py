"""What a process does with a drawn call. Programs are small as they are drawn."""

from __future__ import annotations

import re
from collections import Counter
from multiprocessing.connection import Connection
from typing import Any

from conformance.autograd.generated import checking, judging
from conformance.jit.generated.workers import LIMIT, Plan, limited

from . import programs
from .words import CallWords

drawn = programs.case
written = judging.written
CALLED = re.compile(r"r = (?:x\d+)?([\w.]+)\(")


def judged(pipe: Connection, plan: Plan, case: str, seen: Counter[str]) -> dict[str, Any]:
    """Compare the libraries on a call."""
    with limited(LIMIT):
        result = checking.check(case, lambda stage: pipe.send({"stage": stage}), CallWords)
    found = result.difference
    counts = {
        "programs": 1, "raised": result.raised, "undetermined": result.undetermined,
        "findings": found is not None,
    }  # fmt: skip
    if found is None:
        return {"counts": counts, "found": []}
    told = {"group": signature(case, result), "case": case, "seed": "", "detail": found.detail}
    return {"counts": counts, "found": [told]}


def signature(case: str, result: checking.Checked) -> str:
    """The group of a finding: how outcomes differ, and what was called."""
    name = CALLED.search(case)
    kind = result.difference.kind if result.difference else "lost"
    return f"{kind} | {name[1] if name else 'arguments'}"
