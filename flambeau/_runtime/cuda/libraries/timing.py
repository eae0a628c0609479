"""Which of several ways of doing the same is the fastest on this device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from flambeau._runtime.cuda.memory import running

RUNS = 5
ENOUGH = 2e-3
"""Seconds after which a way has been measured long enough."""
MARGIN = 0.97
"""What a way has to take of the first one's time to be preferred: noise chooses nothing."""


def _seconds(work: Callable[[], object]) -> float:
    """The shortest of a few runs; infinite where the library refuses."""
    driver = running()
    try:
        work()
    except RuntimeError:
        return float("inf")
    driver.synchronize()
    best, spent = float("inf"), 0.0
    for _ in range(RUNS):
        start = time.perf_counter()
        for _ in range(RUNS):
            work()
        driver.synchronize()
        took = time.perf_counter() - start
        best, spent = min(best, took / RUNS), spent + took
        if spent > ENOUGH:
            break
    return best


def fastest(ways: Sequence[Callable[[], object]]) -> int:
    """The number of the fastest way; 0 unless another is clearly faster.

    The device is waited for: not while a graph is captured.
    """
    if len(ways) == 1:
        return 0
    took = [_seconds(way) for way in ways]
    number = min(range(len(took)), key=took.__getitem__)
    return number if took[number] < MARGIN * took[0] or took[0] == float("inf") else 0
