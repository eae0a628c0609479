"""Times `save` and `load` under torch and flambeau, checksums included.

    python benchmarks/serialization.py              # files in memory (/dev/shm) and on the disk
    python benchmarks/serialization.py small disk   # only cases and places with these words

Each library runs in a process of its own; rounds alternate and the best of each counts. Files on
the disk are saved twice: as flambeau does it, with fsync, and without, as torch does it. Torch
checks no checksums when it loads.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROUNDS = 5
AIM = 1.3
MAPPING_AIM = 0.010  # seconds to open a file of 1 GB
SHAPES = {
    "1 tensor of 400 MB": (1, (100, 1_000_000)),
    "500 tensors of 1 MB": (500, (500, 500)),
    "5000 small tensors": (5000, (16, 16)),
    "1 GB, mapped": (10, (25, 1_000_000)),
}
ACTIONS = ("save", "save without fsync", "load", "load mapped")


# ---- one library: answers lines "case|action|path" with seconds


def answer_requests(name: str) -> None:
    """The life of a worker."""
    library = importlib.import_module(name)
    held: dict[str, Any] = {}
    for line in sys.stdin:
        case, action, path = line.strip().split("|")
        if case not in held:
            held.clear()
            held[case] = checkpoint(library, *SHAPES[case])
        print(timed(library, held[case], action, path), flush=True)


def checkpoint(library: Any, count: int, shape: tuple[int, int]) -> dict[str, Any]:
    """A state_dict of float32 tensors."""
    return {f"layers.{i}.weight": library.ones(*shape) for i in range(count)}


def timed(library: Any, value: Any, action: str, path: str) -> float:
    """Seconds that one action takes."""
    steps: dict[str, Callable[[], Any]] = {
        "save": lambda: library.save(value, path),
        "save without fsync": lambda: library.save(value, path),
        "load": lambda: library.load(path),
        "load mapped": lambda: library.load(path, mmap=True),
    }
    fsync = os.fsync
    if action == "save without fsync":
        os.fsync = lambda file: None
    start = time.perf_counter()
    try:
        steps[action]()
        return time.perf_counter() - start
    finally:
        os.fsync = fsync


# ---- both libraries, in turns


class Worker:
    """A process with one library in it."""

    def __init__(self, library: str, folder: str) -> None:
        command = [sys.executable, __file__, "--worker", library]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.path = str(Path(folder) / f"{library}.pt")

    def ask(self, case: str, action: str) -> float:
        """Seconds for one action."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(f"{case}|{action}|{self.path}", file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def end(self) -> None:
        """Let the process go."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def actions(case: str, place: str) -> Iterator[str]:
    """What is timed of a case; saving comes first, it makes the file."""
    if "mapped" in case:
        yield from ("save", "load mapped")
        return
    yield "save"
    if place == "disk":
        yield "save without fsync"
    yield "load"


def compare(case: str, place: str, folder: str) -> None:
    """Print the rows of one case in one place."""
    workers = [Worker(library, folder) for library in ("torch", "flambeau")]
    for action in actions(case, place):
        rounds = 1 if "mapped" in case and action == "save" else ROUNDS
        times = [[worker.ask(case, action) for worker in workers] for _ in range(rounds)]
        theirs, ours = (min(column) for column in zip(*times, strict=True))
        print_row(case, place, action, theirs, ours)
    for worker in workers:
        worker.end()


def print_row(case: str, place: str, action: str, theirs: float, ours: float) -> None:
    """One row of the table; `save` on the disk has no aim, as torch does not wait for the disk."""
    mapped = action == "load mapped"
    has_aim = not (place == "disk" and action == "save")
    reached = ours <= MAPPING_AIM if mapped else ours / theirs <= AIM
    limit = f"≤ {MAPPING_AIM * 1e3:.0f} ms" if mapped else f"≤ {AIM}"
    aim = ("" if reached else "**missed** ") + limit if has_aim else ""
    cells = (case, place, action, f"{theirs * 1e3:.1f} ms", f"{ours * 1e3:.1f} ms")
    print(f"| {' | '.join(cells)} | {ours / theirs:.2f} | {aim} |", flush=True)


def main(words: list[str]) -> None:
    """Print the table."""
    print(
        "| case | place | action | torch | flambeau | ratio | aim |\n|---|---|---|---|---|---|---|"
    )
    for place, root in (("memory", "/dev/shm"), ("disk", None)):  # noqa: S108 - a file system in memory
        for case in SHAPES:
            if words and not any(word in f"{case} {place}" for word in words):
                continue
            with tempfile.TemporaryDirectory(dir=root) as folder:
                compare(case, place, folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        answer_requests(sys.argv[2])
    else:
        main(sys.argv[1:])
