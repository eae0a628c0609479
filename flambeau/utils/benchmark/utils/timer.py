"""Timers of statements."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.utils.benchmark.utils import common

__all__ = ["Language", "Timer", "timer"]

LONGEST_RUN = 10.0
"""Seconds that a block of runs may take."""

timer = timeit.default_timer


class Language(enum.Enum):
    """Languages of statements; those of C++ are refused."""

    PYTHON = 0
    CPP = 1


PYTHON_NAMES = (Language.PYTHON, "py", "python")
CPP_NAMES = (Language.CPP, "cpp", "c++")


class Timer:
    """Measures a statement, which sees `torch` and the names of `globals`.

    `num_threads` is set while it runs. `label`, `sub_label`, `description` and `env` are for
    tables.
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
                 label: str | None = None, sub_label: str | None = None,
                 description: str | None = None, env: str | None = None, num_threads: int = 1,
                 language: Language | str = Language.PYTHON) -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in CPP_NAMES:
            raise NotImplementedInFlambeau("torch.utils.benchmark.Timer of C++")
        if language not in PYTHON_NAMES:
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply "
                "be moved to `setup`."
            )
        stmt, setup = (textwrap.dedent(text).strip() for text in (stmt, setup))
        import flambeau

        names = {"torch": flambeau, **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task_spec = common.TaskSpec(stmt, setup, global_setup, label, sub_label, description,
                                          env, num_threads)  # fmt: skip

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> common.Measurement:
        """One measurement of so many runs, after some that warm up."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return common.Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Refused: `blocked_autorange` repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> NoReturn:
        """Refused: `blocked_autorange` finds the number of runs."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time: float) -> int:
        """Runs that take long enough for the clock's own time to be less than 0.1 %."""
        with common.set_torch_threads(self._task_spec.num_threads):
            overhead = sorted(timeit.Timer().timeit(1) for _ in range(5))[2]
            number = 1
            while True:
                taken = self._timeit(number)
                if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                    return number
                if taken > min_run_time:
                    return number
                number *= 10

    def _blocks(self, number: int, stop: Callable[[list[float]], bool], least: float, most: float,
                callback: Callable[[int, float], Any] | None) -> list[float]:  # fmt: skip
        """Times of blocks until they took `least` seconds and `stop` says so, or `most`."""
        times: list[float] = []
        total = 0.0
        can_stop = False
        with common.set_torch_threads(self._task_spec.num_threads):
            while (total < least) or (not can_stop):
                taken = self._timeit(number)
                if callback is not None:
                    callback(number, taken)
                times.append(taken)
                total += taken
                can_stop = stop(times)
                if total > most:
                    break
        return times

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None,
                          min_run_time: float = 0.2) -> common.Measurement:  # fmt: skip
        """Blocks of equally many runs until they took `min_run_time` seconds together."""
        number = self._estimate_block_size(min_run_time)
        times = self._blocks(number, lambda _: True, min_run_time, float("inf"), callback)
        return common.Measurement(number, times, self._task_spec)

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01,
                           max_run_time: float = LONGEST_RUN,
                           callback: Callable[[int, float], Any] | None = None
                           ) -> common.Measurement:  # fmt: skip
        """Blocks until the interquartile range is below a share of the median, or time is up."""
        number = self._estimate_block_size(0.05)

        def is_known(times: list[float]) -> bool:
            found = common.Measurement(number, times, self._task_spec)
            return len(times) > common.ENOUGH and found.meets_confidence(threshold)

        times = self._blocks(number, is_known, min_run_time, max_run_time, callback)
        return common.Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Instructions are not counted.

        Raises:
            NotImplementedInFlambeau: always.
        """
        raise NotImplementedInFlambeau("torch.utils.benchmark.Timer.collect_callgrind")
