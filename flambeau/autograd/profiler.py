"""`torch.autograd.profiler`, an older name of what is in `flambeau.profiler`."""

from __future__ import annotations

from flambeau._core.missing import lazily
from flambeau.profiler.autograd_profile import (
    EnforceUnique,
    KinetoStepTracker,
    emit_itt,
    emit_nvtx,
    profile,
    record_function,
)
from flambeau.profiler.event_list import EventList
from flambeau.profiler.function_event import FunctionEvent
from flambeau.profiler.kinds import DeviceType, ProfilerActivity, kineto_available

__all__ = [
    "DeviceType", "EnforceUnique", "EventList", "FunctionEvent", "KinetoStepTracker",
    "ProfilerActivity", "emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function",
]  # fmt: skip


__getattr__ = lazily(__name__)
