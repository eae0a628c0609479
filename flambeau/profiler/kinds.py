"""The words of profiling: what is recorded, where it ran, and what a step of a schedule does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

DeviceType = Enum(
    "DeviceType",
    "CPU CUDA MKLDNN OPENGL OPENCL IDEEP HIP FPGA MAIA XLA Vulkan Metal XPU MPS Meta HPU VE Lazy "
    "IPU MTIA PrivateUse1",
    start=0,
    module="torch.autograd",
)
DeviceType.__doc__ = """Where an event ran; with the numbers of PyTorch.

>>> import flambeau as torch
>>> torch.autograd.DeviceType.CPU.value, torch.autograd.DeviceType.CUDA.value
(0, 1)
"""

RecordScope = Enum(
    "RecordScope",
    "FUNCTION BACKWARD_FUNCTION TORCHSCRIPT_FUNCTION KERNEL_FUNCTION_DTYPE CUSTOM_CLASS "
    "BUILD_FEATURE LITE_INTERPRETER USER_SCOPE STATIC_RUNTIME_OP STATIC_RUNTIME_MODEL",
    start=0,
    module="torch.profiler",
)
"""What kind of call an event is: `FunctionEvent.scope` holds its number."""


class ProfilerActivity(Enum):
    """What to record. flambeau computes on the CPU; the others warn, as in PyTorch's CPU build.

    >>> import flambeau as torch
    >>> torch.autograd.ProfilerActivity.CPU.name
    'CPU'
    """

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4
    """Set by profilers of devices; no schedule may return it."""


class ExperimentalConfig:
    """Options that PyTorch calls experimental. `trace_only` keeps `events()` from being made;
    what concerns graphics cards is taken and has no effect."""

    def __init__(
        self,
        profiler_metrics: Iterable[str] = (),
        profiler_measure_per_kernel: bool = False,
        verbose: bool = False,
        performance_events: Iterable[str] = (),
        enable_cuda_sync_events: bool = False,
        adjust_profiler_step: bool = False,
        disable_external_correlation: bool = False,
        profile_all_threads: bool = False,
        capture_overload_names: bool = False,
        record_python_gc_info: bool = False,
        expose_kineto_event_metadata: bool = False,
        custom_profiler_config: str = "",
        trace_only: bool = False,
    ) -> None:
        self.profiler_metrics = list(profiler_metrics)
        self.profiler_measure_per_kernel = profiler_measure_per_kernel
        self.verbose = verbose
        self.performance_events = list(performance_events)
        self.enable_cuda_sync_events = enable_cuda_sync_events
        self.adjust_profiler_step = adjust_profiler_step
        self.disable_external_correlation = disable_external_correlation
        self.profile_all_threads = profile_all_threads
        self.capture_overload_names = capture_overload_names
        self.record_python_gc_info = record_python_gc_info
        self.expose_kineto_event_metadata = expose_kineto_event_metadata
        self.custom_profiler_config = custom_profiler_config
        self.trace_only = trace_only


def kineto_available() -> bool:
    """Whether `torch.profiler` works.

    >>> import flambeau as torch
    >>> torch.autograd.kineto_available()
    True
    """
    return True


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded: CUDA where it is emulated."""
    from flambeau import cuda

    found = {ProfilerActivity.CPU}
    return found | {ProfilerActivity.CUDA} if cuda.is_available() else found


Activities = Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]]


def parse_activities(
    activities: Activities,
) -> tuple[set[ProfilerActivity], dict[ProfilerActivity, set[str]]]:
    """The activities, and for those given as `{activity: names}` what to record of them.

    Raises:
        ValueError: one is given twice.
        TypeError: something else is among them.
    """
    found: list[ProfilerActivity] = []
    filters: dict[ProfilerActivity, set[str]] = {}
    for item in activities:
        if isinstance(item, dict):
            filters.update({activity: set(names) for activity, names in item.items()})
            found += item
        elif isinstance(item, ProfilerActivity):
            found.append(item)
        else:
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
    for activity in found:
        if found.count(activity) > 1:
            raise ValueError(f"Activity {activity} specified more than once")
    return set(found), filters


Schedule = Callable[[int], ProfilerAction]
Handler = Callable[[Any], Any]
next_id: Callable[[], int] = itertools.count(1).__next__
"""Numbers for events, through all recordings of the process."""
