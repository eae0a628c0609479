"""Times the same code under torch and flambeau, in one process and in alternating rounds.

A case is a function of the library that returns a step to time. The ratio is flambeau's time over
torch's: below 1, flambeau is faster.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WARM_UP = 30  # steps not counted: operators are built and modules imported when first used

Build = Callable[[Any], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """What to time, and the ratio that it must stay under (None: no aim)."""

    name: str
    build: Build
    aim: float | None = None


def once(step: Callable[[], Any], count: int) -> float:
    """Seconds per step over `count` steps."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def steps_for(step: Callable[[], Any], seconds: float) -> int:
    """How many steps fill about `seconds`."""
    count = 1
    while True:
        taken = once(step, count) * count
        if taken > seconds / 4:
            return max(1, int(count * seconds / taken))
        count *= 4


def measure(case: Case, libraries: list[Any], rounds: int = 7, seconds: float = 0.1) -> list[float]:
    """The median seconds per step under each library, from alternating rounds."""
    steps = [case.build(library) for library in libraries]
    for step in steps:
        once(step, WARM_UP)
    counts = [steps_for(step, seconds) for step in steps]
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for position, step in enumerate(steps):
            times[position].append(once(step, counts[position]))
    return [statistics.median(taken) for taken in times]


def run(title: str, cases: list[Case], threads: int = 1) -> None:
    """Print a table of all cases; the words on the command line choose some by name."""
    import torch

    import flambeau

    torch.set_num_threads(threads)
    wanted = [c for c in cases if not sys.argv[1:] or any(w in c.name for w in sys.argv[1:])]
    print(f"{title}: torch {torch.__version__} on {threads} thread(s) against flambeau\n")
    print("| case | torch | flambeau | ratio | aim |\n|---|---|---|---|---|")
    for case in wanted:
        theirs, ours = measure(case, [torch, flambeau])
        aim = "" if case.aim is None else f"{'' if ours / theirs <= case.aim else '**missed** '}"
        limit = "" if case.aim is None else f"≤ {case.aim}"
        cells = [case.name, show(theirs), show(ours), f"{ours / theirs:.2f}", aim + limit]
        print(f"| {' | '.join(cells)} |", flush=True)


def show(seconds: float) -> str:
    """A time with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
