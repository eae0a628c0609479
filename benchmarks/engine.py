"""The CPU engine beside torch: one table for all that it promises.

Usage: python benchmarks/engine.py [patterns of group or case names] [--rounds N] [--threads N]
                                   [--keep-memory]

Each side runs in a process of its own, both with all threads (or N), in alternating rounds; both
must compute the same. A side's steps follow each other without a pause, as in training: some that
are not measured, in which the other side's threads stop looking for work, then those that are.
The times are medians of the rounds; the ratio is the median of each round's torch time over
flambeau's: above 1, flambeau is faster. Rounds are short, so that both sides of one see the
machine in the same state: what a virtual machine calls two cores may be two threads of one core
for seconds, which halves every figure of both. Of models a side runs a second at a time, and how
many cores it kept busy is shown. With `--keep-memory` torch runs with a glibc that keeps freed
memory, which spares it page faults.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import show

AIMS = {"pointwise": 3.0, "reductions": 1.0, "matmul float32": 1.0, "matmul bfloat16": 1.0,
        "conv2d": 1.0, "models": 1.2, "small": 1.0}  # fmt: skip
MEAN_AIMS = {"reductions": 1.5, "conv2d": 1.3}
ROUND = 0.05  # seconds of a side in a round
STEADY = 1.0  # and of a model: hundreds of steps of a small one
LEAD = 0.05  # seconds of steps before it, in which the other side's threads stop looking for work
SLOW = 2.0  # seconds of a step from which three rounds must do
KEEP = "glibc.malloc.mmap_threshold=2147483648:glibc.malloc.trim_threshold=4294967296"


# ---- a side: a process that builds and times cases, told by lines of JSON


def serve(package: str) -> None:
    """Answer requests until the input ends."""
    import importlib

    import workloads

    torch = importlib.import_module(package)
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    step: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, Any]
        if request["do"] == "list":
            reply = {"cases": list(workloads.GROUPS[request["group"]](torch))}
        elif request["do"] == "build":
            torch.manual_seed(0)
            step = workloads.GROUPS[request["group"]](torch)[request["case"]]()
            reply = {"check": _digest(step())}
        elif request["do"] == "threads":
            torch.set_num_threads(request["count"])
            reply = {"threads": torch.get_num_threads()}
        elif request["do"] == "quickest":
            reply = {"seconds": _quickest(step, request["seconds"])}
        else:
            reply = _timed(step, request["count"])
        print(json.dumps(reply), file=replies, flush=True)


def _digest(result: Any) -> list[float]:
    """Two numbers that tell results apart; none where a step gives no tensor of floats."""
    if not hasattr(result, "detach") or not result.is_floating_point():
        return []
    flat = result.detach().float().reshape(-1)
    norm = float((flat.double() ** 2).mean() ** 0.5)
    return [norm, float(flat[flat.shape[0] // 3])]


def _timed(step: Any, count: int) -> dict[str, Any]:
    lead = time.perf_counter() + LEAD
    while time.perf_counter() < lead:
        step()
    used = _busy_seconds()
    start = time.perf_counter()
    for _ in range(count):
        step()
    passed = time.perf_counter() - start
    return {
        "seconds": passed / count,
        "busy": (_busy_seconds() - used) / passed,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def _quickest(step: Any, seconds: float) -> float:
    """The shortest of many steps, after some that are not measured."""
    lead = time.perf_counter() + LEAD / 2
    step()
    while time.perf_counter() < lead:
        step()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:  # noqa: PLR2004
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)


def _busy_seconds() -> float:
    """The time that all threads of this process have used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Side:
    """A process that serves one library."""

    def __init__(self, package: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", package], text=True, cwd=Path(__file__).parent,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment},
        )  # fmt: skip

    def ask(self, **request: Any) -> dict[str, Any]:
        """One request and its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a side ended at {request}")
        return json.loads(line)

    def use(self, threads: int) -> None:
        """Set the number of threads; 0 leaves it."""
        if threads:
            self.ask(do="threads", count=threads)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


# ---- the driver


def measured(sides: list[Side], group: str, case: str, rounds: int) -> dict[str, Any]:
    """Medians of both sides and of their ratio, and whether they agree."""
    built = [side.ask(do="build", group=group, case=case) for side in sides]
    tolerance = 0.05 if "bfloat16" in f"{group} {case}" else 2e-3
    agree = all(
        math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
        for a, b in zip(built[0]["check"], built[1]["check"], strict=True)
    )
    counts = []
    if group == "models":
        rounds = max(3, rounds // 3)
    for side in sides:
        once = side.ask(do="time", count=1)["seconds"]
        if once < SLOW:
            once = side.ask(do="time", count=2)["seconds"]
        else:
            rounds = min(rounds, 3)
        counts.append(max(1, min(20000, round((STEADY if group == "models" else ROUND) / once))))
    times: list[list[float]] = [[], []]
    busy: list[list[float]] = [[], []]
    peaks = [0, 0]
    for _ in range(rounds):
        for position, side in enumerate(sides):
            reply = side.ask(do="time", count=counts[position])
            times[position].append(reply["seconds"])
            busy[position].append(reply["busy"])
            peaks[position] = reply["peak"]
    middle = [statistics.median(taken) for taken in times]
    ratio = statistics.median(theirs / ours for theirs, ours in zip(*times, strict=True))
    cores = [statistics.median(used) for used in busy]
    return {"times": middle, "ratio": ratio, "agree": agree, "peaks": peaks, "cores": cores}


def table(group: str, options: argparse.Namespace) -> list[float]:
    """Measure and print one group; the ratios."""
    environment = {"GLIBC_TUNABLES": KEEP} if options.keep_memory else {}
    names = _ask_once(group, environment)
    wanted = [n for n in names if not options.words
              or any(re.search(word, f"{group} {n}") for word in options.words)]  # fmt: skip
    if not wanted:
        return []
    aim = AIMS[group]
    print(f"\n## {group} (aim: {aim}× each)\n")
    models = " peak memory, flambeau / torch | busy cores, torch and flambeau |"
    print("| case | torch | flambeau | torch / flambeau |" + models * (group == "models"))
    print("|---|---|---|---|" + "---|---|" * (group == "models"))
    ratios = []
    # Models get a process each, so that a peak of memory is their own.
    for names_together in [[n] for n in wanted] if group == "models" else [wanted]:
        sides = [Side("torch", environment), Side("flambeau", {})]
        for side in sides:
            side.use(options.threads)
        for name in names_together:
            found = measured(sides, group, name, options.rounds)
            ratios.append(found["ratio"])
            print(row(group, name, found, aim), flush=True)
        for side in sides:
            side.close()
    mean = statistics.geometric_mean(ratios)
    aim_text = f", aim {MEAN_AIMS[group]}" if group in MEAN_AIMS else ""
    print(f"| geometric mean | | | **{mean:.2f}**{aim_text} |")
    return ratios


def _ask_once(group: str, environment: dict[str, str]) -> list[str]:
    side = Side("flambeau", environment)
    names: list[str] = side.ask(do="list", group=group)["cases"]
    side.close()
    return names


def row(group: str, name: str, found: dict[str, Any], aim: float) -> str:
    """A line of the table."""
    theirs, ours = found["times"]
    mark = "" if found["ratio"] >= aim else " (missed)"
    wrong = "" if found["agree"] else " **results differ**"
    line = f"| {name}{wrong} | {show(theirs)} | {show(ours)} | {found['ratio']:.2f}{mark} |"
    if group == "models":
        peaks, cores = found["peaks"], found["cores"]
        line += f" {peaks[1] / peaks[0]:.2f} | {cores[0]:.1f} and {cores[1]:.1f} |"
    return line


def main() -> None:
    """All groups, or those with the words of the command line in their names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="regular expressions that choose")
    parser.add_argument("--rounds", type=int, default=15, help="of models at most a third")
    parser.add_argument("--threads", type=int, default=0, help="of both sides")
    parser.add_argument("--keep-memory", action="store_true", help="a glibc that keeps memory")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    import workloads

    print("python benchmarks/engine.py", *sys.argv[1:], flush=True)
    ratios = []
    for group in workloads.GROUPS:
        ratios += table(group, options)
    if ratios:
        print(f"\nGeometric mean of all: {statistics.geometric_mean(ratios):.2f}")
    if not options.words:
        print(
            "\n## first call of a kernel (aims: 40 ms compiling, 1 ms from the disk)\n", flush=True
        )
        script = Path(__file__).parent / "runtime.py"
        subprocess.run([sys.executable, script, "compile", "load"], check=True)


if __name__ == "__main__":
    main()
