"""Loading data: an epoch, the first batch, and the memory of workers.

    python benchmarks/data_loading.py [words of case names]

Each library runs in a process of its own, and the two take turns; an epoch's figure is the fastest
of its rounds, a first batch's the median (it is started anew each time). The ratio is torch's time
over flambeau's: above 1, flambeau is faster. Threads, which torch has not, stand beside its
processes.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROUNDS = 5
METHODS = ("fork", "spawn", "forkserver")


class Pairs:
    """Samples of a tensor and a label, fetched one by one."""

    def __init__(self, torch: Any, count: int, *shape: int) -> None:
        torch.manual_seed(0)
        self.x = torch.rand(count, *shape)
        self.y = [k % 10 for k in range(count)]

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> Any:
        return self.x[index], self.y[index]


def two_workers(torch: Any, kind: str) -> dict[str, Any]:
    """Options for two workers; torch has no threads."""
    if kind == "threads" and torch.__name__ == "flambeau":
        return {"num_workers": 2, "worker_type": "thread"}
    return {"num_workers": 2, "multiprocessing_context": "fork"}


def small(torch: Any, **given: Any) -> Any:
    return torch.utils.data.DataLoader(Pairs(torch, 20_000, 3, 8, 8), 64, **given)


def large(torch: Any, **given: Any) -> Any:
    return torch.utils.data.DataLoader(Pairs(torch, 512, 3, 128, 128), 64, **given)


def whole(torch: Any, **given: Any) -> Any:
    source = torch.utils.data.TensorDataset(torch.rand(50_000, 64), torch.arange(50_000))
    return torch.utils.data.DataLoader(source, 128, shuffle=True, **given)


EPOCHS: dict[str, Any] = {
    "20,000 small samples, in process": small,
    "20,000 small samples, 2 processes": lambda t: small(t, **two_workers(t, "processes")),
    "20,000 small samples, 2 threads": lambda t: small(t, **two_workers(t, "threads")),
    "512 samples of 200 kB, in process": large,
    "512 samples of 200 kB, 2 processes": lambda t: large(
        t, persistent_workers=True, **two_workers(t, "processes")
    ),
    "512 samples of 200 kB, 2 threads": lambda t: large(t, **two_workers(t, "threads")),
    "TensorDataset of 50,000, shuffled": whole,
}


def epoch(loader: Any) -> float:
    """Seconds for all batches."""
    start = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - start


def first_batch(torch: Any, method: str) -> float:
    """Seconds until two new workers have given a batch; their end is not counted."""
    source = torch.utils.data.TensorDataset(torch.rand(100, 10))
    loader = torch.utils.data.DataLoader(source, 8, num_workers=2, multiprocessing_context=method)
    start = time.perf_counter()
    batches = iter(loader)
    next(batches)
    return time.perf_counter() - start


def memory(torch: Any) -> list[float]:
    """MB that two workers have, shared ones included, after each of ten epochs."""
    loader = large(torch, persistent_workers=True, **two_workers(torch, "processes"))
    seen = []
    for _ in range(10):
        epoch(loader)
        pages = [Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in children()]
        seen.append(sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE") / 2**20)
    return seen


def children() -> list[int]:
    """The processes that this one has started."""
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in text.split()]


def serve(name: str) -> None:
    """Answer questions, one per line, with one line each."""
    torch = importlib.import_module(name)
    torch.set_num_threads(1)
    loaders: dict[str, Any] = {}
    for line in sys.stdin:
        kind, what = json.loads(line)
        if kind == "epoch":
            if what not in loaders:
                loaders[what] = EPOCHS[what](torch)
                epoch(loaders[what])
            print(epoch(loaders[what]), flush=True)
        elif kind == "first":
            print(first_batch(torch, what), flush=True)
        else:
            print(json.dumps(memory(torch)), flush=True)


class Side:
    """A library in a process of its own."""

    def __init__(self, name: str, script: str = __file__) -> None:
        command = [sys.executable, script, "--serve", name]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, kind: str, what: str = "") -> Any:
        """The answer to one question."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([kind, what]), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def row(name: str, times: list[float], aim: str) -> None:
    ratio = times[0] / times[1]
    cells = [name, *[f"{1e3 * t:.1f}" for t in times], f"{ratio:.2f}", aim]
    print(f"| {' | '.join(cells)} |", flush=True)


def main(words: list[str]) -> None:
    """Print the tables."""
    sides = [Side("torch"), Side("flambeau")]
    print("| case | torch, ms | flambeau, ms | ratio | aim |\n|---|---|---|---|---|")
    for name in EPOCHS:
        if words and not any(word in name for word in words):
            continue
        rounds = [[side.ask("epoch", name) for side in sides] for _ in range(ROUNDS)]
        row(name, [min(column) for column in zip(*rounds, strict=True)], "≥ 1.5")
    for method in METHODS:
        name = f"first batch of 2 workers, {method}"
        if words and not any(word in name for word in words):
            continue
        rounds = [[side.ask("first", method) for side in sides] for _ in range(3)]
        times = [statistics.median(column) for column in zip(*rounds, strict=True)]
        row(name, times, "≤ 300 ms" if method == "spawn" else "")
    if not words or any("memory".startswith(word) for word in words):
        for name, side in zip(("torch", "flambeau"), sides, strict=True):
            seen = side.ask("memory")
            text = ", ".join(f"{megabytes:.0f}" for megabytes in seen)
            print(f"memory of 2 workers over 10 epochs, {name}: {text} MB")
    for side in sides:
        side.process.communicate()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main(sys.argv[1:])
