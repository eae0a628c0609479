"""`torch.autograd.profiler_util`: events of recordings; they stand in `flambeau.profiler`."""

from __future__ import annotations

from flambeau._core.missing import lazily
from flambeau.profiler.event_list import EventList
from flambeau.profiler.function_event import (
    FormattedTimesMixin,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
)

__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval",
           "Kernel"]  # fmt: skip


__getattr__ = lazily(__name__)
