"""Timers and measurements."""

from __future__ import annotations

import flambeau as torch
from flambeau.utils import benchmark


def test_timers_count_runs() -> None:
    """A clock that tells how often it was asked."""
    seen = []
    timer = benchmark.Timer("seen.append(torch)", globals={"seen": seen})
    measured = timer.timeit(10)
    assert seen.count(torch) == 12  # two before, to warm up
    assert measured.number_per_run == 10
    assert len(timer.blocked_autorange(min_run_time=0.005).times) >= 1


def test_threads_come_back() -> None:
    """The number of threads is as before."""
    before = torch.get_num_threads()
    measured = benchmark.Timer("n.append(torch.get_num_threads())", "n = []", num_threads=1)
    measured.timeit(1)
    assert torch.get_num_threads() == before


def test_medians() -> None:
    """Of the times of single runs."""
    spec = benchmark.TaskSpec("f()", "pass")
    measured = benchmark.Measurement(10, [1.0, 3.0, 20.0], spec)
    assert (measured.median, round(measured.mean, 9)) == (0.3, 0.8)
    (merged,) = benchmark.Measurement.merge([measured, measured])
    assert len(merged.times) == 6
