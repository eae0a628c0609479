"""How long a fresh process takes to its first training step, beside torch.

Usage: python benchmarks/first_steps.py [patterns of model names] [--rounds N] [--threads N]

Each model of `models.py` is built and run in processes that are new for each measurement, torch's
and flambeau's in turn. What a process spends is told apart: the import, the model with its data,
the first step, the second one. Before that, two processes of flambeau fill the disk cache of
kernels: one that nothing precedes and whose first step compiles all of them (its time is shown, and
kernels go to a folder of the benchmark's own), one whose calls come late enough to be cached. Times
are medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from harness import show

PACKAGES = ("torch", "flambeau")
PARTS = ("import", "model", "first step", "second step")


def measure(package: str, name: str, threads: int) -> None:
    """In a process of its own: print the seconds of each part as JSON."""
    import importlib

    marks = [time.perf_counter()]
    torch = importlib.import_module(package)
    if threads:
        torch.set_num_threads(threads)
    marks.append(time.perf_counter())
    import models

    torch.manual_seed(0)
    step = models.cases(torch)[name]()
    marks.append(time.perf_counter())
    for _ in range(2):
        step()
        marks.append(time.perf_counter())
    print(json.dumps([b - a for a, b in zip(marks, marks[1:], strict=False)]))


def asked(package: str, name: str, threads: int, environment: dict[str, str]) -> list[float]:
    """A measurement in a new process."""
    command = [sys.executable, __file__, "--measure", package, name, "--threads", str(threads)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(name: str, rounds: int, threads: int, environment: dict[str, str]) -> str:
    """A line of the table."""
    cold = asked("flambeau", name, threads, environment)
    asked("flambeau", name, threads, environment)
    found: dict[str, list[list[float]]] = {package: [] for package in PACKAGES}
    for _ in range(rounds):
        for package in PACKAGES:
            found[package].append(asked(package, name, threads, environment))
    middle = {package: [statistics.median(part) for part in zip(*times, strict=True)]
              for package, times in found.items()}  # fmt: skip
    pairs = [f"{show(theirs)} / {show(ours)}" for theirs, ours in
             zip(*[middle[package] for package in PACKAGES], strict=True)]  # fmt: skip
    theirs, ours = (middle[package] for package in PACKAGES)
    return (f"| {name} | {' | '.join(pairs)} | {theirs[2] / ours[2]:.2f} | "
            f"{sum(theirs[:3]) / sum(ours[:3]):.2f} | {show(cold[2])} |")  # fmt: skip


def names_of(words: list[str]) -> list[str]:
    """The models that are chosen."""
    import models

    import flambeau as torch

    names = list(models.cases(torch))
    return [n for n in names if not words or any(re.search(word, n) for word in words)]


def main() -> None:
    """All models, or those with the words of the command line in their names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", help="regular expressions that choose")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="of both sides")
    parser.add_argument("--measure", metavar="PACKAGE", help=argparse.SUPPRESS)
    options: Any = parser.parse_args()
    if options.measure:
        measure(options.measure, options.words[0], options.threads)
        return
    print("python benchmarks/first_steps.py", *sys.argv[1:], flush=True)
    heads = ["model", *[f"{part}, torch / flambeau" for part in PARTS], "first step, ratio",
             "from start to first step, ratio", "first step, compiling"]  # fmt: skip
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for name in names_of(options.words):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "FLAMBEAU_CACHE_DIR": folder}
            print(row(name, options.rounds, options.threads, environment), flush=True)


if __name__ == "__main__":
    main()
