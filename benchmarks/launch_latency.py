"""How long the thread pool takes to hand out work.

    python benchmarks/launch_latency.py [--threads 1,2,4,8,16] [--rounds 200] [--json FILE]

Per number of threads, in microseconds, the median, the 90th percentile and the most of all rounds:

- `empty`: a launch of tasks that do nothing, right after another one (the threads look for work);
- `all, awake`: until the last of the threads is at work, right after another launch;
- `all, asleep`: the same after a pause in which they have gone to sleep;
- `half, asleep`: a job of half as many tasks, and how many threads it has woken (at most).

A thread that cannot have a core within 20 ms is no longer waited for; such rounds are counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import flambeau
from flambeau._compiler.language import atomic_add, atomic_load, i64, pointer
from flambeau._compiler.native import native
from flambeau._runtime.launch import kernel
from flambeau._runtime.pool_kernels import now, pause

PATIENCE = 20_000_000
SLEEP = 0.004


@native
def meet(begun: pointer(i64), together: i64, task: i64, tasks: i64):
    """Note when a task begins; then wait until `together` have begun."""
    began = now()
    begun[1 + task] = began
    atomic_add(begun, 1)
    while (atomic_load(begun) < together) & (now() - began < PATIENCE):
        pause()


def rounds_of(tasks: int, together: int, before: Callable[[], Any], count: int) -> dict[str, Any]:
    """Times from the call until the last task began, and until the call was over."""
    run = kernel(meet)
    begun = np.zeros(1 + tasks, np.int64)
    first, over, late = [], [], 0
    for _ in range(count):
        before()
        begun[:] = 0
        start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        run.parallel(tasks, begun, together)
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        first.append((begun[1:].max() - start) / 1e3)
        over.append((end - start) / 1e3)
        late += int(end - start >= PATIENCE)
    return {"begun": figures(first), "over": figures(over), "late": late}


def figures(times: list[float]) -> list[float]:
    """The median, the 90th percentile, the most."""
    times = sorted(times)
    return [round(float(t), 1) for t in
            (statistics.median(times), times[9 * len(times) // 10], times[-1])]  # fmt: skip


def switches() -> int:
    """How often threads of this process have gone to sleep so far."""
    found = 0
    for task in Path("/proc/self/task").iterdir():
        for line in (task / "status").read_text(encoding="ascii").splitlines():
            if line.startswith("voluntary"):
                found += int(line.split()[1])
    return found


def of_threads(threads: int, rounds: int) -> dict[str, Any]:
    """All figures for so many threads."""
    flambeau.set_num_threads(threads)
    nothing = np.zeros(1 + threads, np.int64)
    run = kernel(meet)

    def awake() -> None:
        run.parallel(threads, nothing, 0)

    def asleep() -> None:
        time.sleep(SLEEP)

    for _ in range(20):
        awake()
    found = {"threads": threads, "empty": rounds_of(threads, 0, awake, rounds)["over"]}
    found["all, awake"] = rounds_of(threads, threads, awake, rounds)
    found["all, asleep"] = rounds_of(threads, threads, asleep, rounds // 4)
    half = max(1, threads // 2)
    before = switches()
    found["half, asleep"] = rounds_of(half, half, asleep, rounds // 4)
    found["woken"] = round((switches() - before) / (rounds // 4) - 1, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", default="")
    given = parser.parse_args()
    found = []
    for threads in map(int, given.threads.split(",")):
        found.append(of_threads(threads, given.rounds))
        print("  ".join(f"{name} {value}" for name, value in found[-1].items()), flush=True)
        if given.json:
            Path(given.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
