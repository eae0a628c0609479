"""What takes the time and the memory: recordings of operators, backward and labels.

    with torch.profiler.profile() as prof:
        train_one_batch()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

Nothing is paid while no recording is on. Where to look:

* `recorder.py` notes what runs; `composites.py`, `launches.py`, `modules.py` and `memory.py` tell
  it of what observers (`_core/modes.py`) do not see; `frames.py` finds the lines of the program;
* `build.py` makes events (`function_event.py`, `event_list.py`) of it, by PyTorch's names and
  formulas (`names.py`, `flops.py`); `table.py`, `trace.py` and `timeline.py` write them;
* `autograd_profile.py` is `torch.autograd.profiler`, `profiler.py` with `schedules.py` is
  `torch.profiler`.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily
from flambeau.profiler.autograd_profile import KinetoStepTracker, record_function
from flambeau.profiler.kinds import (
    DeviceType,
    ProfilerAction,
    ProfilerActivity,
    RecordScope,
    kineto_available,
    supported_activities,
)
from flambeau.profiler.kinds import ExperimentalConfig as _ExperimentalConfig
from flambeau.profiler.profiler import _KinetoProfile, profile, tensorboard_trace_handler
from flambeau.profiler.schedules import schedule

__all__ = [
    "DeviceType", "KinetoStepTracker", "ProfilerAction", "ProfilerActivity", "RecordScope",
    "_ExperimentalConfig", "_KinetoProfile", "kineto_available", "profile", "record_function",
    "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


__getattr__ = lazily(__name__)
