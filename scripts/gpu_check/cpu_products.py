"""Products on a server's processor: checked against NumPy, then timed beside PyTorch, as shares of
the measured peak, with 1, 4 and 16 threads.

    python scripts/gpu_check/cpu_products.py --out FILE.json [--seconds 48] [--threads 1,4,16]

Checks come first. Timings alternate between the libraries; each figure is the quickest run. What
the time does not allow is left out and said so. The JSON is written after every item.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests" / "_ops" / "products")]

import numpy as np
import peak
import random_products

import flambeau
from flambeau._core import settings
from flambeau._ops.products import gemm, tiles

try:
    import torch
except ImportError:
    torch = None

SLICE = 0.07
"""Seconds that a product may take of the time, for each library."""
SQUARES = (128, 512, 1024, 2048, 4096)
FEW_ROWS = (1, 4, 8, 32)
LONG = 0.25
"""Seconds that one run may take at most, as the peak says; longer ones are left out."""


class Report:
    """What was found so far: a line for people, an item of the JSON for each."""

    def __init__(self, path: str, seconds: float) -> None:
        self.path, self.end = path, time.monotonic() + seconds
        self.items: list[dict[str, Any]] = []

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.end

    def add(self, **item: Any) -> None:
        """Print and write an item."""
        self.items.append(item)
        print("  ".join(f"{name} {value}" for name, value in item.items()), flush=True)
        if self.path:
            Path(self.path).write_text(json.dumps(self.items, indent=1), encoding="utf-8")

    def attempt(self, name: str, work: Callable[[], Any]) -> Any:
        """The result of some work; where it fails, the traceback's last line is an item."""
        if self.is_over:
            self.add(item=name, left_out="no time")
            return None
        try:
            return work()
        except Exception:
            self.add(item=name, error=traceback.format_exc().strip().splitlines()[-1])
            return None


def quickest(runs: list[Callable[[], Any]], seconds: float = SLICE) -> list[float]:
    """The shortest time of each, in turns."""
    found = [1e9] * len(runs)
    for run in runs:
        run()
    end = time.perf_counter() + seconds * len(runs)
    rounds = 0
    while rounds < 2 or time.perf_counter() < end:  # noqa: PLR2004
        for place, run in enumerate(runs):
            for _ in range(3 if found[place] < SLICE / 30 else 1):
                start = time.perf_counter()
                run()
                found[place] = min(found[place], time.perf_counter() - start)
        rounds += 1
    return found


def set_threads(count: int) -> None:
    """For both libraries."""
    settings.set_num_threads(count)
    if torch is not None:
        torch.set_num_threads(count)


def check(report: Report) -> None:
    """Random products of all types with 1 to 8 threads, and large ones with all."""
    seed = random.SystemRandom().getrandbits(32)
    wrong = report.attempt(
        "random products", lambda: random_products.check(15, random.Random(seed))
    )
    if wrong is not None:
        report.add(item="15 random products", seed=seed, wrong=len(wrong), first=wrong[:2])
    for dtype in (tiles.BFLOAT16, tiles.INT8, np.dtype(np.float32)):
        report.attempt(f"large {dtype}", lambda dtype=dtype: check_large(report, dtype))


def check_large(report: Report, dtype: np.dtype) -> None:
    """A product of several blocks, with one thread and with all."""
    draw = random.Random(1)
    left = random_products.numbers(draw, (530, 2300), dtype)
    right = random_products.numbers(draw, (2300, 610), dtype)
    result = np.dtype(np.int32 if dtype == tiles.INT8 else np.float32)
    product = random_products.Product(left, right, gemm.Finish(), result)
    one, many = product.computed(1), product.computed(os.cpu_count() or 1)
    wanted, size = random_products.expected(product)
    off = abs(one - wanted) - random_products.bound(product, size, wanted)
    report.add(
        item=f"530x2300x610 {dtype}",
        right=bool(off.max() <= 0),
        same_bits=one.tobytes() == many.tobytes(),
    )


def operands(name: str, rows: int, depth: int, columns: int, library: Any) -> tuple[Any, Any]:
    """Two matrices of a type, the second one transposed in memory where rows are few (a layer's
    weight)."""
    rng = np.random.default_rng(0)
    shapes = [(rows, depth), (depth, columns) if rows > max(FEW_ROWS) else (columns, depth)]
    if name == "int8":
        found = [library.from_numpy(rng.integers(-100, 100, shape, np.int8)) for shape in shapes]
    else:
        dtype = getattr(library, name)
        numbers = [rng.standard_normal(shape, np.float32) for shape in shapes]
        found = [library.from_numpy(array).to(dtype) for array in numbers]
    return found[0], found[1] if rows > max(FEW_ROWS) else found[1].T


def runs_of(name: str, rows: int, depth: int, columns: int) -> list[Callable[[], Any]]:
    """The product under flambeau, and under PyTorch where it is there."""
    found = []
    for library in (flambeau, torch) if torch is not None else (flambeau,):
        a, b = operands(name, rows, depth, columns, library)
        if name != "int8":
            found.append(lambda a=a, b=b: a @ b)
        elif library is flambeau and not hasattr(flambeau, "_int_mm"):
            left, right = a.numpy(), b.numpy()
            found.append(lambda x=left, y=right: gemm.gemm(x, y, result=np.dtype(np.int32)))
        else:
            found.append(lambda library=library, a=a, b=b: library._int_mm(a, b))
    return found


def tile_of(name: str) -> tiles.Tile:
    """The tile that multiplies a type."""
    dtypes = {"bfloat16": tiles.BFLOAT16, "int8": tiles.INT8}
    return tiles.tile_for(dtypes[name] if name in dtypes else np.dtype(name))


def time_product(report: Report, peaks: dict[str, float], threads: int, name: str, rows: int,
                 depth: int, columns: int) -> None:  # fmt: skip
    """One row of the table."""
    tile = tile_of(name)
    most = peaks[f"{tile.number} {tile.name}"]
    work = 2 * rows * depth * columns / 1e9
    if work / most > LONG:
        return
    seconds = quickest(runs_of(name, rows, depth, columns))
    rate = work / seconds[0]
    item = {"type": name, "size": f"{rows}x{depth}x{columns}", "threads": threads,
            "us": round(seconds[0] * 1e6, 1), "GFLOP/s": round(rate),
            "of peak": round(rate / most, 2)}  # fmt: skip
    if len(seconds) > 1:
        item["torch / ours"] = round(seconds[1] / seconds[0], 2)
    report.add(**item)


def products() -> Iterator[tuple[str, int, int, int]]:
    """What is timed, what matters most first."""
    for n in SQUARES[:-1]:
        for name in ("bfloat16", "float32", "int8"):
            yield name, n, n, n
    for rows in FEW_ROWS:
        for name in ("bfloat16", "float32"):
            yield name, rows, 4096, 4096
    yield "float16", 1024, 1024, 1024
    for name in ("bfloat16", "int8", "float32"):
        yield name, *[SQUARES[-1]] * 3


def mlp_step(library: Any, half: bool) -> Callable[[], Any]:
    """A training step of three layers, batches of 512, in float32 or under bfloat16 autocast."""
    library.manual_seed(0)
    nn = library.nn
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(),
                          nn.Linear(2048, 256))  # fmt: skip
    optimizer = library.optim.SGD(model.parameters(), lr=0.01)
    x, y = library.randn(512, 1024), library.randint(0, 256, (512,))

    def step() -> Any:
        optimizer.zero_grad()
        with library.autocast("cpu", dtype=library.bfloat16, enabled=half):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def time_training(report: Report, threads: int) -> None:
    """float32 and autocast of both libraries."""
    libraries = (flambeau, torch) if torch is not None else (flambeau,)
    kinds = [(library, half) for library in libraries for half in (False, True)]
    seconds = quickest([mlp_step(*kind) for kind in kinds], 0.3)
    item = {"item": "MLP step", "threads": threads, "float32 ms": round(seconds[0] * 1e3, 1),
            "autocast ms": round(seconds[1] * 1e3, 1),
            "gain": round(seconds[0] / seconds[1], 2)}  # fmt: skip
    if len(seconds) > 2:  # noqa: PLR2004
        item["torch float32 / ours"] = round(seconds[2] / seconds[0], 2)
        item["torch autocast / ours"] = round(seconds[3] / seconds[1], 2)
    report.add(**item)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", default="")
    parser.add_argument("--seconds", type=float, default=46.0)
    parser.add_argument("--threads", default="1,4,16")
    given = parser.parse_args()
    report = Report(given.out, given.seconds)
    wanted = [n for n in map(int, given.threads.split(",")) if n <= len(os.sched_getaffinity(0))]
    report.add(item="machine", text=peak.machine(), torch=getattr(torch, "__version__", None))
    check(report)
    peaks = {}
    for threads in wanted:
        peaks[threads] = report.attempt(f"peaks {threads}", lambda n=threads: peak.peaks(n)) or {}
        report.add(
            item="peaks",
            threads=threads,
            **{name: round(value) for name, value in peaks[threads].items()},
        )
    for threads in reversed(wanted):
        set_threads(threads)
        report.attempt(f"MLP T{threads}", lambda t=threads: time_training(report, t))
    for name, rows, depth, columns in products():
        for threads in reversed(wanted):
            set_threads(threads)
            what = f"{name} {rows}x{depth}x{columns} T{threads}"
            report.attempt(
                what,
                lambda *a, p=peaks[threads], t=threads, s=(name, rows, depth, columns): (
                    time_product(report, p, t, *s)
                ),
            )
    report.add(item="done", seconds_left=round(report.end - time.monotonic(), 1))


if __name__ == "__main__":
    main()
