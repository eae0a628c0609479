"""Which steps of a program are recorded, and what happens between two steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau.profiler.kinds import ProfilerAction, Schedule

NONE, WARMUP, RECORD, SAVE, STOPPED = ProfilerAction


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Schedule:  # fmt: skip
    """Cycles of `wait` steps off, `warmup` steps that are not kept and `active` steps that are.

    repeat: how many cycles there are; 0: until the profiler stops.
    skip_first: steps before the first cycle.
    skip_first_wait: if not 0, the first cycle does not wait.

    >>> plan = schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, length)
        if place < wait or (repeat > 0 and cycle >= repeat):
            return NONE
        if place < wait + warmup:
            return WARMUP
        return SAVE if place == length - 1 else RECORD

    return action


def always(step: int) -> ProfilerAction:
    """Without a schedule, everything is recorded."""
    return RECORD


def checked(action: ProfilerAction) -> ProfilerAction:
    """What a schedule returned.

    Raises:
        ValueError: it is not for schedules.
    """
    if action is STOPPED:
        raise ValueError(
            "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be "
            "returned by a user-provided schedule"
        )
    return action


TRANSITIONS = {
    (NONE, WARMUP): "prepare",
    (NONE, RECORD): "prepare start",
    (NONE, SAVE): "prepare start",
    (WARMUP, NONE): "warn start stop",
    (WARMUP, RECORD): "start",
    (WARMUP, SAVE): "start",
    (RECORD, NONE): "warn stop",
    (RECORD, WARMUP): "warn stop",
    (SAVE, NONE): "stop ready",
    (SAVE, WARMUP): "stop ready prepare",
    (SAVE, RECORD): "stop ready prepare start",
    (SAVE, SAVE): "stop ready prepare start",
    (WARMUP, None): "start stop",
    (RECORD, None): "stop ready",
    (SAVE, None): "stop ready",
}
"""(a step's action, the next one's; None: the end) -> what the profiler does between them."""


def between(before: ProfilerAction, after: ProfilerAction | None,
            do: dict[str, Callable[[], Any]]) -> None:  # fmt: skip
    """Carry out what lies between two steps."""
    for word in TRANSITIONS.get((before, after), "").split():
        if word != "warn":
            do[word]()
        elif after is not None:
            text = f"Incorrect schedule: {before.name} followed by {after.name}"
            warnings.warn(text, stacklevel=4)
