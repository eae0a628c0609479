"""`all_reduce` of processes on one machine, beside PyTorch's gloo.

    python benchmarks/distributed.py                      2 and 4 processes, 1 kB to 100 MB
    python benchmarks/distributed.py --processes 2 --kilobytes 1000
    python benchmarks/distributed.py --training ...       DistributedDataParallel, and its options:
                                                          see distributed_training.py

Processes of the two libraries take turns, several times; the times are the shortest of a process's
calls, of the slowest rank. The ratio is PyTorch's time over ours.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import distributed_training

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("flambeau", "torch")
KILOBYTES = (1, 10, 100, 1_000, 10_000, 25_000, 100_000)
SECONDS = 0.5
"""How long a size is repeated in each process."""
FEWEST = 5


def rank_of(library: str, rank: int, size: int, meeting: str, kilobytes: list[int]) -> None:
    """One process: prints the shortest time of each size as JSON."""
    torch: Any = importlib.import_module(library)
    dist: Any = importlib.import_module(f"{library}.distributed")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    found = []
    for thousand in kilobytes:
        numbers = torch.ones(thousand * 250)
        rounds = torch.ones(1, dtype=torch.int64)
        shortest = float("inf")
        begun = time.perf_counter()
        while True:
            numbers.fill_(1)
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(numbers)
            shortest = min(shortest, time.perf_counter() - start)
            rounds += 1
            over = torch.tensor([float(time.perf_counter() - begun > SECONDS)])
            dist.all_reduce(over)  # all stop in the same round
            if over.item() and rounds.item() > FEWEST:
                break
        assert numbers[0].item() == size
        found.append(shortest)
    dist.destroy_process_group()
    sys.stdout.write(json.dumps(found))


def measured(library: str, size: int, kilobytes: list[int]) -> list[float]:
    """The times of a group of processes, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        given = [str(size), f"{folder}/meeting", ",".join(map(str, kilobytes))]
        command = [sys.executable, __file__, "--rank", library]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        children = [
            subprocess.Popen([*command, str(rank), *given], stdout=subprocess.PIPE, text=True,
                             env=environment)
            for rank in range(size)
        ]  # fmt: skip
        texts = [child.communicate()[0] for child in children]
    return [max(times) for times in zip(*map(json.loads, texts), strict=True)]


def main() -> None:
    """Measure and print a table."""
    if sys.argv[1:2] == ["--rank"]:
        library, rank, size, meeting, listed = sys.argv[2:]
        rank_of(library, int(rank), int(size), meeting, list(map(int, listed.split(","))))
        return
    if sys.argv[1:2] == ["--training"]:
        distributed_training.main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--kilobytes", type=int, nargs="+", default=list(KILOBYTES))
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} cores\n")
    print("| processes | kB | flambeau, µs | torch, µs | ratio |\n|---|---|---|---|---|")
    for size in chosen.processes:
        best: dict[str, list[float]] = {}
        for _ in range(chosen.rounds):
            for library in LIBRARIES:
                times = measured(library, size, chosen.kilobytes)
                best[library] = list(map(min, best.get(library, times), times))
        for thousand, ours, theirs in zip(chosen.kilobytes, *best.values(), strict=True):
            print(f"| {size} | {thousand} | {ours * 1e6:.0f} | {theirs * 1e6:.0f} "
                  f"| {theirs / ours:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
