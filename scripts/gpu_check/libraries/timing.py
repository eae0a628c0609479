"""Times of work on the device and of the host, in microseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._runtime.cuda.memory import running


def timed(work: Callable[[], object], seconds: float = 0.04) -> float:
    """Microseconds of a piece of work on the device: the median of five rounds between events."""
    gpu = running()
    start, end = gpu.new_event(timing=True), gpu.new_event(timing=True)

    def once(count: int) -> float:
        gpu.record(start, 0)
        for _ in range(count):
            work()
        gpu.record(end, 0)
        gpu.synchronize_event(end)
        return gpu.elapsed(start, end) * 1e3 / count

    once(2)
    count = max(3, min(2000, int(seconds / 5 * 1e6 / max(once(3), 1))))
    return float(np.median([once(count) for _ in range(5)]))


def torch_timed(torch: Any, work: Callable[[], object], seconds: float = 0.04) -> float:
    """The same of work through PyTorch."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once(count: int) -> float:
        start.record()
        for _ in range(count):
            work()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3 / count

    once(2)
    count = max(3, min(2000, int(seconds / 5 * 1e6 / max(once(3), 1))))
    return float(np.median([once(count) for _ in range(5)]))


def host_us(work: Callable[[], object], count: int = 2000) -> float:
    """Microseconds of host time of a call."""
    gpu = running()
    best = float("inf")
    for _ in range(3):
        gpu.synchronize()
        start = time.perf_counter()
        for _ in range(count // 10):
            work()
        best = min(best, (time.perf_counter() - start) / (count // 10) * 1e6)
    gpu.synchronize()
    return round(best, 2)
