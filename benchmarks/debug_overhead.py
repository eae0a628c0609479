"""What the tools of `flambeau.debug` cost while they are on, and that they cost nothing when off.

    python benchmarks/debug_overhead.py

Milliseconds of a training step of two small networks: never switched on, on, and off again.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau.debug import advise, nan_guard, profile

REPEATS = 40
TOOLS: dict[str, Callable[[], Any]] = {
    "nan_guard": nan_guard,
    "advise": lambda: advise(quiet=True),
    "torch.profiler": torch.profiler.profile,
    "profile": lambda: profile(None, file=io.StringIO()),
}


def perceptron(width: int) -> Callable[[], None]:
    """A training step of three layers on 64 samples."""
    net = torch.nn.Sequential(
        torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width),
        torch.nn.ReLU(), torch.nn.Linear(width, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(64, 64), torch.arange(64) % 10

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


def best(step: Callable[[], None]) -> float:
    """The shortest of many runs, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main() -> None:
    """Print the table."""
    print(f"| network | off | {' | '.join(TOOLS)} | off again |")
    print(f"|---|---|{'---|' * len(TOOLS)}---|")
    for width in (16, 256, 1024):
        step = perceptron(width)
        before = best(step)
        cells = [f"width {width}", f"{before:.3f} ms"]
        for tool in TOOLS.values():
            with tool():
                during = best(step)
            cells.append(f"{during:.3f} ms ({during / before:.2f}x)")
        cells.append(f"{best(step):.3f} ms")
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
