"""`torch.profiler.profile`: recordings with steps and schedules, and the files made of them."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flambeau._core.settings import warn_once
from flambeau.profiler import autograd_profile, schedules, timeline
from flambeau.profiler.autograd_profile import (
    ONLY_TRACE,
    KinetoStepTracker,
    record_function,
    without_contradiction,
)
from flambeau.profiler.event_list import EventList
from flambeau.profiler.kinds import (
    Activities,
    ExperimentalConfig,
    Handler,
    ProfilerAction,
    ProfilerActivity,
    Schedule,
    parse_activities,
    supported_activities,
)
from flambeau.profiler.schedules import schedule

__all__ = ["ProfilerAction", "profile", "schedule", "supported_activities",
           "tensorboard_trace_handler"]  # fmt: skip

STEP_NAME = "ProfilerStep"
OPTIONS = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")
CLEARED = (
    "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle "
    "will be reported. To keep events across cycles, set acc_events=True."
)
ACTIVITY = (ProfilerActivity, dict)


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
                              use_python_export: bool = False) -> Handler:  # fmt: skip
    """A function for `on_trace_ready` that writes each trace into a folder, under its own name.

    worker_name: the beginning of the names; None: "[host]_[process]".
    """

    def handler(prof: Any) -> None:
        try:
            Path(dir_name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(str(Path(dir_name) / name), use_python_export=use_python_export)

    return handler


class _KinetoProfile:
    """A profiler that is told when to prepare, start and stop; `profile` is one with a schedule."""

    def __init__(
        self,
        *,
        activities: Activities | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: ExperimentalConfig | None = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        listed = supported_activities() if activities is None else activities
        self.activities, self.activity_filters = parse_activities(listed)
        self.record_shapes, self.with_flops = record_shapes, with_flops
        self.profile_memory = profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        if experimental_config is not None:
            experimental_config = without_contradiction(experimental_config, with_stack)
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: autograd_profile.profile | None = None
        self.use_device = self._device()
        self.preset_metadata: dict[str, str] = {}
        self._trace_metadata: dict[str, str] = {}

    def _device(self) -> str | None:
        for activity in ("CUDA", "XPU", "MTIA", "HPU", "PrivateUse1"):
            if ProfilerActivity[activity] in self.activities:
                return activity.lower()
        return None

    # ---- recording

    def start(self) -> None:
        """Begin."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """End."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Get ready, so that `start_trace` takes no time."""
        if self.profiler is not None and not self.acc_events:
            warn_once(CLEARED)
        if self.profiler is None or not self.acc_events:
            self.profiler = autograd_profile.profile(
                use_cpu=ProfilerActivity.CPU in self.activities,
                use_device=self.use_device,
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                use_kineto=True,
                experimental_config=self.experimental_config,
                acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
                post_processing_timeout_s=self.post_processing_timeout_s,
                activity_filters=self.activity_filters,
            )
        self.profiler._prepare_trace()

    def start_trace(self) -> None:
        """Begin, after `prepare_trace`."""
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        self._profiler("starting trace")._start_trace()
        for name in OPTIONS:
            if getattr(self, name):
                self.add_metadata_json(name, "1")
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self) -> None:
        """End."""
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        self._profiler("stopping trace").__exit__(None, None, None)

    def _profiler(self, purpose: str) -> autograd_profile.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    # ---- results

    def events(self) -> EventList:
        """All events of the last recording."""
        profiler = self._profiler("accessing events")
        if self.experimental_config is not None and self.experimental_config.trace_only:
            raise RuntimeError(ONLY_TRACE)
        return profiler.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """The sums over events of one name: see `EventList.key_averages`."""
        return self._profiler("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the last recording for ui.perfetto.dev; compressed, if the name ends in ".gz"."""
        profiler = self._profiler("exporting chrome trace")
        profiler.export_chrome_trace(path, self._trace_metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks and their microseconds: see `EventList.export_stacks`."""
        self._profiler("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write how much memory tensors took over time: as a page ("….html"), as points
        ("….json", "….json.gz"), or each change ("….raw.json.gz").

        Raises:
            ValueError: `record_shapes`, `profile_memory` or `with_stack` is missing.
        """
        warnings.warn(
            "`export_memory_timeline` is deprecated and will be removed in a future version. "
            "Please use `torch.cuda.memory._record_memory_history` and "
            "`torch.cuda.memory._export_memory_snapshot` instead.",
            FutureWarning,
            stacklevel=2,
        )
        needed = ("record_shapes", "profile_memory", "with_stack")
        missing = [f"{name}=True" for name in needed if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        if self.profiler is None or self.profiler.recorder is None:
            raise AssertionError(
                "Profiler and kineto_results must be initialized for memory profiling"
            )
        timeline.write(self.profiler.recorder, path, device or "cpu")

    # ---- what is written beside the events

    def add_metadata(self, key: str, value: str) -> None:
        """Write a text into the trace."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Write JSON, given as text, into the trace."""
        self._trace_metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """The same before the profiler starts."""
        self.preset_metadata[key] = value


class profile(_KinetoProfile):
    """Record operators, backward, labels and memory.

        with torch.profiler.profile(record_shapes=True) as prof:
            train_one_batch()
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))

    With a schedule, call `step()` after each step of the program:

        schedule = torch.profiler.schedule(wait=1, warmup=1, active=3)
        with torch.profiler.profile(schedule=schedule, on_trace_ready=save) as prof:
            for batch in loader:
                train(batch)
                prof.step()

    activities: what to record; None: what can be.
    on_trace_ready: called with the profiler at the end of each cycle.
    record_shapes: note the shapes of arguments.
    profile_memory: note what memory tensors take and give back.
    with_stack: note the lines of the program, and the calls of modules.
    with_flops: count floating-point operations.
    with_modules: note the calls of modules.
    execution_trace_observer: an object whose `start`, `stop` and `cleanup` are called along.
    acc_events: keep the events of all cycles.
    """

    def __init__(
        self,
        *,
        activities: Activities | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Handler | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: ExperimentalConfig | None = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead",
                          FutureWarning, stacklevel=2)  # fmt: skip
        activities = None if activities is None else list(activities)
        known = activities is None or any(isinstance(item, ACTIVITY) for item in activities)
        if not known and not use_cuda:
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self.record_steps = schedule is not None
        self.schedule = schedule or schedules.always
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: record_function | None = None
        self.current_action = schedules.checked(self.schedule(0))
        self._do = {"prepare": self.prepare_trace, "start": self.start_trace,
                    "stop": self.stop_trace, "ready": self._trace_ready}  # fmt: skip
        KinetoStepTracker.init_step_count(STEP_NAME)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        KinetoStepTracker.erase_step_count(STEP_NAME)
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Begin with the first step of the schedule."""
        schedules.between(ProfilerAction.NONE, self.current_action, self._do)
        self._begin_step()

    def stop(self) -> None:
        """End; a recording that is on is handed to `on_trace_ready`."""
        self._end_step()
        schedules.between(self.current_action, None, self._do)

    def step(self) -> None:
        """The next step of the program begins."""
        self._end_step()
        action = schedules.checked(self.schedule(self.step_num + 1))
        self.step_num += 1
        before, self.current_action = self.current_action, action
        schedules.between(before, action, self._do)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"{STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """What makes the names of the recordings from now on."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The name of the last recording."""
        return None if self.profiler is None else self.profiler.trace_id
