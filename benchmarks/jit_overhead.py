"""What a scripted function costs beside the same calls made by Python, and beside torch.jit.

    python benchmarks/jit_overhead.py

Three operators on 3 elements, and a view of some rows: what is measured is calling, not computing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

import flambeau

REPEATS, CALLS = 15, 2000


def best(function: Callable[..., Any], *args: Any) -> float:
    """Microseconds per call, the smallest of several rounds."""
    found = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(CALLS):
            function(*args)
        found.append((time.perf_counter() - start) / CALLS * 1e6)
    return min(found)


def flambeau_three(x, y):  # type: ignore[no-untyped-def]
    """Three operators."""
    return flambeau.relu(x + y) * y


def torch_three(x, y):  # type: ignore[no-untyped-def]
    """Three operators."""
    return torch.relu(x + y) * y


def column(x, y):  # type: ignore[no-untyped-def]
    """One view, by two operators."""
    return x[:, 2]


CASES = {
    "three operators": (flambeau_three, torch_three, (3,)),
    "x[:, 2]": (column, column, (4, 4)),
}


def main() -> None:
    """Print the times."""
    warnings.simplefilter("ignore")
    for title, (ours, theirs, shape) in CASES.items():
        print(title)
        for library, function in ((flambeau, ours), (torch, theirs)):
            show(library, function, shape)


def show(library: Any, function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    """A line for one of the libraries."""
    x, y = library.ones(*shape), library.ones(*shape)
    scripted = library.jit.script(function)
    with library.jit.optimized_execution(False):
        for _ in range(3):
            scripted(x, y)
        plain = best(scripted, x, y)
    for _ in range(5):
        scripted(x, y)
    eager, optimised = best(function, x, y), best(scripted, x, y)
    name = library.__name__
    print(f"{name:9} us: eager {eager:.2f}, scripted {optimised:.2f}, not optimised {plain:.2f}")


if __name__ == "__main__":
    main()
