"""Measurements, what was measured, and units of time."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flambeau._core.settings import get_num_threads, set_num_threads

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads",
           "trim_sigfig", "unit_to_english"]  # fmt: skip

SHORTEST_INTERVAL = 25e-9
"""Seconds: no median is known better than that."""
WARN, WARN_GROSSLY = 0.1, 0.25
"""Interquartile ranges, as shares of the median, from which on a measurement is doubtful."""
ENOUGH = 3
"""Interquartile ranges of this many measurements and fewer say nothing."""
MOST_FIGURES = 4
UNITS = {-3: "ns", -2: "us", -1: "ms"}
ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is measured, and how tables call it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, with what is below it."""
        if self.label is None and self.sub_label is None and "\n" in self.stmt:
            return "stmt:\n" + textwrap.indent(self.stmt, "  ")
        name = self.label or self.stmt
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def setup_str(self) -> str:
        """What ran before."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}\n"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup in lines."""
        parts = [self.title, self.description or "", self.setup_str()]
        between = "\n\n" if self.title.startswith("stmt:") else "\n"
        return between.join([part for part in parts if part])


FORWARDED = tuple(field.name for field in dataclasses.fields(TaskSpec))


class Measurement:
    """Times of a statement: `raw_times` are seconds of `number_per_run` runs each."""

    def __init__(self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec,
                 metadata: dict[Any, Any] | None = None) -> None:  # fmt: skip
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.task_spec = task_spec
        self.metadata = metadata

    def __getattr__(self, name: str) -> Any:
        if name in FORWARDED and "task_spec" in self.__dict__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Seconds of a single run."""
        return [time / self.number_per_run for time in self.raw_times]

    def _times(self) -> np.ndarray:
        if not self.raw_times:
            raise ValueError("there are no measurements")
        return np.sort(np.array(self.times))

    @property
    def median(self) -> float:
        """The middle of the times."""
        return float(np.median(self._times()))

    @property
    def mean(self) -> float:
        """Their average."""
        return float(np.mean(self._times()))

    @property
    def iqr(self) -> float:
        """Their interquartile range."""
        low, high = np.quantile(self._times(), (0.25, 0.75))
        return float(high - low)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, by its interval of 90 % confidence, which
        the inner half of the times gives."""
        times = self._times()
        inner = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = 1.645 * float(np.std(inner)) / math.sqrt(len(inner))
        digits = math.floor(math.log10(self.median / max(interval, SHORTEST_INTERVAL)))
        return min(max(1, digits), MOST_FIGURES)

    def meets_confidence(self, threshold: float = WARN) -> bool:
        """Whether the interquartile range is below a share of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times are spread too far."""
        return not self.meets_confidence()

    @property
    def title(self) -> str:
        """What was measured."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """The name of the environment."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """How a table calls its row."""
        return str(self.sub_label or self.stmt or "[Unknown]")

    def __repr__(self) -> str:
        """The times in lines, with a warning where they are doubtful."""
        unit, scale = select_unit(self.median)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        if len(self.raw_times) == 1:
            lines.append(f"  {self.median / scale:.2f} {unit}")
        else:
            lines.append(f"  Median: {self.median / scale:.2f} {unit}")
        count = len(self.raw_times)
        if count > ENOUGH:
            low, high = np.quantile(self._times(), (0.25, 0.75)) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        several = f"{count} measurements, {self.number_per_run} runs per measurement"
        runs = several if count > 1 else f"1 measurement, {self.number_per_run} runs "
        threads = "1 thread" if self.num_threads == 1 else f"{self.num_threads} threads"
        lines.append(f"  {runs}, {threads}")
        return "\n".join([*lines, *self._warning()])

    def _warning(self) -> list[str]:
        share = self.iqr / self.median
        if share < WARN:
            return []
        gross = "This suggests significant environmental influence."
        about = gross if share >= WARN_GROSSLY else "This could indicate system fluctuation."
        return [f"  WARNING: Interquartile range is {share:.1%} of the median measurement.",
                f"           {about}"]  # fmt: skip

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same thing, put together."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).append(measurement)
        return [_merged(group) for group in groups.values()]


def _merged(group: list[Measurement]) -> Measurement:
    times = [time for measurement in group for time in measurement.times]
    return Measurement(1, times, group[0].task_spec)


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which seconds have one to three digits before the point, and its seconds."""
    magnitude = float(np.float32(math.log10(np.float32(t))))  # of single precision: 1e-3 is -3
    unit = UNITS.get(int(magnitude // 3), "s")
    return unit, SECONDS[unit]


def unit_to_english(u: str) -> str:
    """A unit's name."""
    return ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number with so many digits that are not zero."""
    if n != int(n):
        raise AssertionError("the number of digits must be a whole number")
    magnitude = math.ceil(float(np.float32(math.log10(abs(np.float32(x))))))
    scale = 10.0 ** (magnitude - n)
    return float(np.round(np.float32(np.float32(x) / np.float32(scale))) * np.float32(scale))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Elements without repetitions, in their order."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Run a region with so many threads."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)
