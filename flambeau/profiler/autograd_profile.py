"""`torch.autograd.profiler`: recordings without a schedule, and labels in them."""

from __future__ import annotations

import copy
import functools
import uuid
import warnings
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, Literal

from flambeau._core import modes
from flambeau.profiler import trace
from flambeau.profiler.build import event_list
from flambeau.profiler.event_list import EventList
from flambeau.profiler.function_event import FunctionEventAvg
from flambeau.profiler.kinds import ExperimentalConfig, ProfilerActivity
from flambeau.profiler.recorder import Options, Recorder

DEVICES = ("cuda", "xpu", "mtia", "hpu")
ONLY_TRACE = (
    "events() is not available when trace_only=True in ExperimentalConfig. "
    "Use export_chrome_trace() instead."
)


def without_contradiction(config: ExperimentalConfig, with_stack: bool) -> ExperimentalConfig:
    """`trace_only` cannot be had with stacks; then a copy without it, and a warning."""
    if not (config.trace_only and with_stack):
        return config
    warnings.warn(
        "trace_only=True is incompatible with with_stack=True (stack traces require event "
        "post-processing). Disabling trace_only.",
        stacklevel=4,
    )
    config = copy.copy(config)
    config.trace_only = False
    return config


def emulates_cuda() -> bool:
    """Whether devices of CUDA are emulated: what runs on them is recorded as what runs here."""
    from flambeau import cuda

    return cuda.is_available()


def device_to_use(device: str | None, level: int) -> str | None:
    """None: all that is computed is computed on the CPU. With a warning, unless the device is
    there, emulated."""
    if device is None or (device == "cuda" and emulates_cuda()):
        return None
    if device in DEVICES:
        text = f"{device.upper()} is not available, disabling {device.upper()} profiling"
    else:
        text = f"The {device} is not a valid device option."
    warnings.warn(text, stacklevel=level + 1)
    return None


class profile:
    """Record what runs within the `with` statement.

        with torch.autograd.profiler.profile() as prof:
            loss = model(x)
            loss.backward()
        print(prof.key_averages().table(sort_by="self_cpu_time_total"))

    enabled: False makes it do nothing.
    record_shapes: note the shapes of arguments.
    with_flops: count floating-point operations (see `flambeau/profiler/flops.py`).
    profile_memory: note what memory tensors take and give back.
    with_stack: note the lines of the program, and the calls of modules.
    with_modules: note the calls of modules.
    acc_events: keep the events of one recording when the next begins.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: ExperimentalConfig | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[ProfilerActivity, set[str]] | None = None,
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use "
                "``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        if not use_cpu and not use_kineto:
            raise AssertionError(
                "Device-only events supported only with Kineto (use_kineto=True)")  # fmt: skip
        self.use_device = device_to_use(use_device, 2)
        if not use_cpu and not (use_device == "cuda" and emulates_cuda()):
            raise AssertionError("No activities specified for the profiler")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.acc_events = acc_events
        self.experimental_config = without_contradiction(
            experimental_config or ExperimentalConfig(), with_stack)  # fmt: skip
        self.custom_trace_id_callback = custom_trace_id_callback
        self.activity_filters = activity_filters or {}
        self.trace_id = ""
        self.entered = False
        self.recorder: Recorder | None = None
        self._events: EventList | None = None
        self._kept: list[Any] = []

    # ---- recording

    def __enter__(self) -> profile | None:
        if self.enabled and self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if self.enabled:
            self._prepare_trace()
            self._start_trace()
        return self if self.enabled else None

    def __exit__(self, *exc: object) -> Literal[False]:
        if not self.enabled:
            return False
        assert self.recorder is not None
        self.recorder.stop()
        if self.acc_events and not self.experimental_config.trace_only:
            self._kept = [*self.function_events]
        return False

    def _prepare_trace(self) -> None:
        """Settle what a recording is called."""
        self.entered = True
        make = self.custom_trace_id_callback or (lambda: f"{uuid.uuid4().int:032X}")
        self.trace_id = make()

    def _start_trace(self) -> None:
        """Begin."""
        self.entered = True
        options = Options(
            shapes=self.record_shapes,
            memory=self.profile_memory,
            stack=self.with_stack,
            modules=self.with_stack or self.with_modules,
        )
        self._events = None
        self.recorder = Recorder(options)
        self.recorder.start()

    # ---- results

    @property
    def function_events(self) -> EventList:
        """All events.

        Raises:
            RuntimeError: `trace_only` was asked for.
            AssertionError: nothing was recorded.
        """
        if self.experimental_config.trace_only:
            raise RuntimeError(ONLY_TRACE)
        if self._events is None:
            if self.recorder is None:
                raise AssertionError("Expected profiling results")
            self._events = event_list(self.recorder, self)
            self._events += self._kept
        return self._events

    def __repr__(self) -> str:
        if self.recorder is None or not self.recorder.ended:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if self.recorder is None or not self.recorder.ended:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    @functools.wraps(EventList.table)
    def table(self, *args: Any, **kwargs: Any) -> str:
        return self.function_events.table(*args, **kwargs)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """See `EventList.key_averages`."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """See `EventList.total_average`."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events together."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str, metadata: dict[str, str] | None = None,
                            use_python_export: bool = False) -> None:  # fmt: skip
        """Write the last recording for ui.perfetto.dev or chrome://tracing."""
        if self.recorder is None:
            raise AssertionError("Expected profiling results")
        trace.write(self.recorder, path, metadata or {}, self.trace_id)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """See `EventList.export_stacks`; needs `with_stack=True`."""
        events = self.function_events
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)


class record_function(ContextDecorator):
    """Label what runs within the `with` statement, or a decorated function.

        with torch.profiler.record_function("the head"):
            y = head(x)

    The label is an event of the recordings that are on. args: kept, and not shown.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._labels: list[modes.labelled] = []

    def __enter__(self) -> record_function:
        label = modes.labelled(self.name)
        label.__enter__()
        self._labels.append(label)
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._labels:
            raise AssertionError("Expected record to be set")
        self._labels.pop().__exit__(*exc)


class emit_itt:
    """PyTorch's labels for Intel's VTune; they need a library that flambeau has not."""

    title = "ITT"

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Any:
        if self.enabled and self.entered:
            raise RuntimeError(f"{self.title} annotation context manager is not reentrant")
        self.entered = self.enabled
        return self._begin() if self.enabled else None

    def _begin(self) -> Any:
        from flambeau._core.missing import NotImplementedInFlambeau, not_implemented_text

        raise NotImplementedInFlambeau(not_implemented_text("torch.autograd.profiler.emit_itt"))

    def __exit__(self, *exc: object) -> Literal[False]:
        return False


class emit_nvtx(emit_itt):
    """PyTorch's labels for NVIDIA's profilers; they need a graphics card."""

    title = "NVTX"

    def _begin(self) -> Any:
        if not emulates_cuda():
            raise AssertionError("Torch not compiled with CUDA enabled")
        return self


class KinetoStepTracker:
    """Counts steps for several requesters: the count of the process is the largest of theirs."""

    _current_step = 0
    _step_dict: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """A requester begins with the count of the process."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a requester; whether there was one."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """A requester's next step; returns the count of the process."""
        counts = cls._step_dict
        if requester not in counts:
            cls.init_step_count(requester)
        counts[requester] += 1
        before, cls._current_step = cls._current_step, max(cls._current_step, *counts.values())
        if cls._current_step > before + 1:
            warnings.warn(
                "Profiler step count has increased more than 1 - current_step = "
                f"{before} step dict =  {counts}",
                stacklevel=2,
            )
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The count of the process."""
        return cls._current_step


class EnforceUnique:
    """Raises when a key is seen a second time."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Note a key.

        Raises:
            RuntimeError: it was seen before.
        """
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)
