"""What a process does with a drawn program: libraries are compared, and findings made small."""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch as reference

import flambeau
from conformance.jit.generated.workers import LIMIT, SHRUNK, Plan, Slow, limited

from . import checking, programs, shrinking
from .words import Words

drawn = programs.case
Check = Callable[..., checking.Checked]
WORD = re.compile(r"([A-Za-z_]\w*)\(")


def warm_up() -> None:
    """Let both libraries import what they need for backward: a process that runs out of time in
    the middle of an import is broken for good."""
    for library in (reference, flambeau):
        x = library.ones(2, requires_grad=True)
        result = library.utils.checkpoint.checkpoint(lambda y: y * y, x, use_reentrant=False)
        library.autograd.functional.vjp(lambda y: y.exp(), x, result.detach())
        result.sum().backward()
    programs.everyday()  # reads every operator's row, which processes made from this one share


warm_up()


def written(case: str) -> str:
    return case


def judged(
    pipe: Connection,
    plan: Plan,
    case: str,
    seen: Counter[str],
    language: type[Words] = Words,
    check: Check = checking.check,
) -> dict[str, Any]:
    """Compare the libraries on a program."""
    check = functools.partial(check, language=language)
    with limited(LIMIT):
        result = check(case, lambda stage: pipe.send({"stage": stage}))
    counts = {
        "programs": 1, "raised": result.raised, "undetermined": result.undetermined,
        "findings": result.difference is not None,
    }  # fmt: skip
    if result.difference is None:
        return {"counts": counts, "found": []}
    return {"counts": counts, "found": [_told(pipe, case, result, seen, check)]}


def _told(pipe: Connection, case: str, result: checking.Checked, seen: Counter[str],
          check: Check) -> dict[str, Any]:  # fmt: skip
    """A finding as data, made small if it is one of the first of its kind."""
    small, first, wanted = case, signature(result), result
    seen[first] += 1
    if seen[first] <= SHRUNK:
        small = shrinking.shrunk(case, lambda text: _shows(wanted, text, pipe, check))
        with contextlib.suppress(Slow), limited(LIMIT):
            result = check(small)
    detail = result.difference.detail if result.difference else ""
    return {"group": signature(result), "case": small, "drawn": case, "seed": "", "detail": detail}


def signature(result: checking.Checked) -> str:
    """The group of a finding: how outcomes differ, and at which call."""
    if result.difference is None:
        return "lost while it was made small"
    called = ", ".join(WORD.findall(result.statement)) or result.statement
    return f"{result.difference.kind} | {called}"


def _shows(wanted: checking.Checked, text: str, pipe: Connection, check: Check) -> bool:
    """Whether a smaller program shows a difference of the same kind."""
    try:
        with limited(LIMIT / 4):
            found = check(text, lambda stage: pipe.send({"stage": stage}))
    except Slow:
        return False
    except Exception:  # noqa: BLE001  # a name that is not there any more
        return False
    one, two = found.difference, wanted.difference
    if one is None or two is None or one.kind != two.kind:
        return False
    of_words = "raise" in one.kind or "words" in one.kind
    return not of_words or _without_numbers(one.detail) == _without_numbers(two.detail)


def _without_numbers(detail: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+", "", detail)
