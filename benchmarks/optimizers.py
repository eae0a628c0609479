"""Steps of optimizers beside torch's fastest kind, `fused` or `foreach`.

Usage: `python benchmarks/optimizers.py [words of case names] [--rounds N]`

Each library runs in a process of its own, with all threads, in alternating rounds; the best round
of each counts. Parameters have 100 to 10,000 elements, the large ones a million; only `step()` is
timed. The ratio is torch's time over flambeau's: above 1, flambeau is faster.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import show

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 1e-3}),
    "SGD, momentum": ("SGD", {"lr": 1e-3, "momentum": 0.9}),
    "Adam": ("Adam", {}),
    "AdamW": ("AdamW", {}),
    "RMSprop": ("RMSprop", {}),
    "Adagrad": ("Adagrad", {}),
    "Adamax": ("Adamax", {}),
    "NAdam": ("NAdam", {}),
    "RAdam": ("RAdam", {}),
    "ASGD": ("ASGD", {}),
    "Rprop": ("Rprop", {}),
    "Adadelta": ("Adadelta", {}),
    "Adafactor": ("Adafactor", {}),
    "Muon": ("Muon", {}),
}
SIZES = ("10 parameters", "500 parameters", "10 of 1M")
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
SECONDS = 0.15  # of one round


# ---- a side: a process that builds and times cases, told by lines of JSON


def shapes(size: str) -> list[tuple[int, ...]]:
    """Shapes of the parameters: matrices and vectors in turn."""
    if size == "10 of 1M":
        return [(1000, 1000)] * 10
    elements = np.random.default_rng(0).integers(100, 10_000, int(size.split(maxsplit=1)[0]))
    return [(int(n) // 10, 10) if k % 2 else (int(n),) for k, n in enumerate(elements)]


def build(torch: Any, case: str, kind: str) -> Any:
    """The `step` of an optimizer whose parameters have gradients."""
    label, _, size = case.rpartition(", ")
    name, options = OPTIMIZERS[label]
    generator = np.random.default_rng(1)
    params = []
    for shape in shapes(size):
        if name == "Muon" and len(shape) == 1:
            shape = (shape[0] // 10, 10)
        values, grads = generator.standard_normal((2, *shape), dtype=np.float32)
        parameter = torch.nn.Parameter(torch.from_numpy(values.copy()))
        parameter.grad = torch.from_numpy(grads.copy())
        params.append(parameter)
    chosen = {kind: True} if kind and name != "Muon" else {}
    return getattr(torch.optim, name)(params, **options, **chosen).step


def serve(package: str) -> None:
    """Answer requests until the input ends."""
    torch = importlib.import_module(package)
    step: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "build":
            step = build(torch, request["case"], request["kind"])
            for _ in range(3):
                step()
        start = time.perf_counter()
        for _ in range(request["count"]):
            step()
        print(json.dumps((time.perf_counter() - start) / request["count"]), flush=True)


class Side:
    """A process that serves one library with one kind of step."""

    def __init__(self, package: str, kind: str) -> None:
        self.kind = kind
        self.best = float("inf")
        self.count = 1
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", package], text=True, cwd=Path(__file__).parent,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ),
        )  # fmt: skip

    def ask(self, **request: Any) -> float:
        """One request and its answer: seconds per step."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return float(json.loads(self.process.stdout.readline()))

    def begin(self, case: str) -> None:
        """Build a case and find out how many steps fill a round."""
        self.ask(do="build", case=case, kind=self.kind, count=1)
        self.best = self.ask(do="time", count=2)
        self.count = max(1, round(SECONDS / self.best))

    def time(self) -> None:
        """One round."""
        self.best = min(self.best, self.ask(do="time", count=self.count))

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


# ---- the driver


def row(case: str, sides: list[Side], rounds: int) -> str:
    """Measure a case; a line of the table."""
    ours, foreach, fused = sides
    label = case.rpartition(", ")[0]
    used = [ours, foreach, fused] if OPTIMIZERS[label][0] in FUSED else [ours, foreach]
    for side in used:
        side.begin(case)
    for _ in range(rounds):
        for side in used:
            side.time()
    best = min(used[1:], key=lambda side: side.best)
    ratio = best.best / ours.best
    mark = "" if ratio >= 1 else " (missed)"
    return f"| {case} | {show(best.best)}, {best.kind} | {show(ours.best)} | {ratio:.2f}{mark} |"


def main() -> None:
    """All cases, or those with one of the words of the command line in their names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    cases = [f"{label}, {size}" for size in SIZES for label in OPTIMIZERS]
    wanted = [c for c in cases if not options.words or any(word in c for word in options.words)]
    sides = [Side("flambeau", ""), Side("torch", "foreach"), Side("torch", "fused")]
    print("| case | torch | flambeau | torch / flambeau |\n|---|---|---|---|")
    for case in wanted:
        print(row(case, sides, options.rounds), flush=True)
    for side in sides:
        side.close()


if __name__ == "__main__":
    main()
