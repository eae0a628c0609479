"""How long calls take: `python stopwatch.py torch < calls.json` writes seconds as JSON.

It is the same program for flambeau and for PyTorch, each in a process of its own. Calls are
{"softmax": ["x", -1], ...}: "x" and "y" stand for tensors. Each is timed at several sizes: many
calls in a row, the best of three rows.
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
LONG = 3e-4
"""Of calls that take so long at one size, larger ones are left out: the site shall be built soon."""


def seconds(call: Callable[[], Any]) -> float:
    """The time of one call."""
    call()
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    count = max(1, min(2000, int(ROW_SECONDS / max(once, 1e-7))))
    best = float("inf")
    for _ in range(ROWS):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def function_of(torch: Any, dotted: str) -> Any:
    found = torch
    for part in dotted.split("."):
        found = getattr(found, part)
    return found


def measured(torch: Any, dotted: str, given: list[Any]) -> dict[str, float]:
    """Seconds at each size at which the call goes through, up to the first that takes long."""
    found: dict[str, float] = {}
    function = function_of(torch, dotted)
    for size, shape in SIZES.items():
        if found and max(found.values()) > LONG:
            break
        tensors = {"x": torch.rand(shape) + 0.5, "y": torch.rand(shape) + 0.5}
        args = [tensors[value] if isinstance(value, str) else value for value in given]
        try:
            found[size] = seconds(lambda args=args: function(*args))
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            continue
    return found


def main(library: str) -> None:
    torch = importlib.import_module(library)
    warnings.simplefilter("ignore")
    times = {}
    for dotted, given in json.load(sys.stdin).items():
        try:
            times[dotted] = measured(torch, dotted, given)
        except AttributeError:
            continue
    json.dump({"version": str(torch.__version__), "times": times}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
