"""How long calls take: `python stopwatch.py torch 20 < calls.json` writes seconds as JSON.

It is the same program for flambeau and for PyTorch, each in a process of its own. Calls are
{"softmax": ["x", -1], ...}: "x" and "y" stand for tensors. Each is timed at several sizes: many
calls in a row, the best of three rows. The second argument is how many seconds it may take in all:
each call has its share of them, and what one leaves goes to those after it. Where a machine is too
busy for that, rows and then sizes are left out.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

SIZES: dict[str, tuple[int, ...]] = {"small": (3,), "matrix": (100, 100), "large": (1000, 1000)}
ROW_SECONDS = 1e-3
ROWS = 3
LONG = 1e-4
"""Of calls that take so long at one size, larger ones are left out: the site shall be built soon."""


def seconds(call: Callable[[], Any], until: float) -> float:
    """The time of one call: of several rows the best, of which the first is measured in any case."""
    call()
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    count = max(1, min(2000, int(ROW_SECONDS / max(once, 1e-7))))
    best = float("inf")
    for row in range(ROWS):
        start = time.perf_counter()
        if row and start > until:
            break
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def function_of(torch: Any, dotted: str) -> Any:
    found = torch
    for part in dotted.split("."):
        found = getattr(found, part)
    return found


def measured(torch: Any, dotted: str, given: list[Any], until: float) -> dict[str, float]:
    """Seconds at each size at which the call goes through, up to the first that takes long.

    After `until` no further size is begun.
    """
    found: dict[str, float] = {}
    function = function_of(torch, dotted)
    for size, shape in SIZES.items():
        if found and (max(found.values()) > LONG or time.perf_counter() > until):
            break
        tensors = {"x": torch.rand(shape) + 0.5, "y": torch.rand(shape) + 0.5}
        args = [tensors[value] if isinstance(value, str) else value for value in given]
        try:
            found[size] = seconds(lambda args=args: function(*args), until)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            continue
    return found


def main(library: str, budget: float) -> None:
    torch = importlib.import_module(library)
    warnings.simplefilter("ignore")
    times = {}
    calls = json.load(sys.stdin)
    begin = time.perf_counter()
    for place, (dotted, given) in enumerate(calls.items(), start=1):
        try:
            times[dotted] = measured(torch, dotted, given, begin + budget * place / len(calls))
        except AttributeError:
            continue
    json.dump({"version": str(torch.__version__), "times": times}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
