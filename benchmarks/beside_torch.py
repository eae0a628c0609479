"""Products while PyTorch's threads look for work: who waits for whom.

    python benchmarks/beside_torch.py [--threads 16] [--types float32,bfloat16] [--json FILE]

The quickest, the median and the longest of flambeau's products of 1024, in microseconds:

- `alone`: PyTorch is not there;
- `another process`: PyTorch multiplies in another process, in turns, some products each;
- `same process`: the same in this one, and `same process, passive` with OMP_WAIT_POLICY=passive.

OpenMP's threads keep their cores for some milliseconds after each product. Those of another library
in the process get a core back when the system takes it away, once in some milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROUNDS, CALLS, SIZE = 12, 4, 1024


def products(package: str, threads: int, name: str) -> Any:
    """A product of SIZE under a library, and the library."""
    import importlib

    torch = importlib.import_module(package)
    torch.set_num_threads(threads)
    a = torch.randn(SIZE, SIZE).to(getattr(torch, name))
    return lambda: a @ a


def timed(step: Any) -> list[float]:
    """Microseconds of each of some calls."""
    found = []
    for _ in range(CALLS):
        start = time.perf_counter()
        step()
        found.append((time.perf_counter() - start) * 1e6)
    return found


def serve(threads: int, name: str) -> None:
    """PyTorch's side in another process: some products for each line of the input."""
    step = products("torch", threads, name)
    print("ready", flush=True)
    for _ in sys.stdin:
        timed(step)
        print("done", flush=True)


def figures(threads: int, name: str, where: str) -> list[float]:
    """What flambeau's products take, in turns with PyTorch's."""
    ours = products("flambeau", threads, name)
    theirs, other = None, None
    if where == "same":
        theirs = products("torch", threads, name)
    elif where == "another":
        other = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, "--threads", str(threads)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert other.stdout is not None
        other.stdout.readline()
    found: list[float] = []
    timed(ours)
    for _ in range(ROUNDS):
        if theirs is not None:
            timed(theirs)
        if other is not None:
            assert other.stdin is not None
            assert other.stdout is not None
            print(file=other.stdin, flush=True)
            other.stdout.readline()
        found += timed(ours)
    if other is not None:
        other.communicate()
    return [round(value) for value in (min(found), statistics.median(found), max(found))]


def main() -> None:
    """A process for each type and place."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--types", default="float32,bfloat16")
    parser.add_argument("--json", default="")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.threads, options.serve)
        return
    if options.one:
        print(json.dumps(figures(options.threads, *options.one)))
        return
    found: dict[str, Any] = {}
    for name in options.types.split(","):
        for title, where, policy in (
            ("alone", "alone", ""),
            ("another process", "another", ""),
            ("same process", "same", ""),
            ("same process, passive", "same", "passive"),
        ):
            environment = {**os.environ, "OMP_WAIT_POLICY": policy} if policy else None
            command = [sys.executable, __file__, "--threads", str(options.threads)]
            result = subprocess.run([*command, "--one", name, where], check=True, env=environment,
                                    stdout=subprocess.PIPE, text=True)  # fmt: skip
            found[f"{name} {title}"] = json.loads(result.stdout)
            print(name, title, *found[f"{name} {title}"], flush=True)
            if options.json:
                Path(options.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
