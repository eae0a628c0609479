"""One event of a recording, and the sum of those of one kind."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from flambeau.profiler.kinds import DeviceType

Kernel = namedtuple("Kernel", ["name", "device", "duration"])
MICROSECONDS = (("s", 1e6), ("ms", 1e3), ("us", 1.0))


def format_time(microseconds: float) -> str:
    """
    >>> format_time(12.5), format_time(1500), format_time(2.5e6)
    ('12.500us', '1.500ms', '2.500s')
    """
    unit, size = next((pair for pair in MICROSECONDS if microseconds >= pair[1]), MICROSECONDS[-1])
    return f"{microseconds / size:.3f}{unit}"


def time_text(name: str) -> property:
    """The attribute `name`, as text."""
    return property(lambda self: format_time(getattr(self, name)))


def old_name(name: str, new: str) -> property:
    """`cuda_time` was the name of `device_time`."""

    def read(self: Any) -> Any:
        warnings.warn(f"`{name}` is deprecated. Use `{new}` instead.", FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read)


class Interval:
    """From `start` to `end`, in microseconds since the recording began."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start


class FormattedTimesMixin:
    """Averages, and times as text, from `count` and the `*_time_total`."""

    count: int
    cpu_time_total: Any
    device_time_total: Any
    cpu_time_str = time_text("cpu_time")
    device_time_str = time_text("device_time")
    cpu_time_total_str = time_text("cpu_time_total")
    device_time_total_str = time_text("device_time_total")
    self_cpu_time_total_str = time_text("self_cpu_time_total")
    self_device_time_total_str = time_text("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds per call on a device other than the CPU."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = old_name("cuda_time", "device_time")


class FunctionEvent(FormattedTimesMixin):
    """A call of an operator, a node of backward, or a labelled stretch of the program.

    Times are in microseconds, memory in bytes. `time_range` begins with the recording; `cpu_parent`
    and `cpu_children` are the events around and directly within it; `input_shapes` needs
    `record_shapes=True`, `stack` (lines of the program, the innermost first) `with_stack=True`,
    `flops` `with_flops=True`. `kernels` are compiled kernels that it launched itself.
    """

    # What an event may be given beside name, thread and times, and what it is otherwise.
    trace_name: str | None = None
    overload_name: str | None = None
    fwd_thread: int | None = None
    sequence_nr = -1
    scope = 0
    input_shapes: Any = None
    structured_input_shapes: Any = None
    structured_input_strides: Any = None
    input_dtypes: Any = None
    concrete_inputs: Any = None
    kwinputs: Any = None
    stack: Any = None
    flops: int | None = None
    cpu_memory_usage = 0
    device_memory_usage = 0
    use_device: str | None = None
    device_type: DeviceType = DeviceType.CPU
    device_index = 0
    device_resource_id: int = 0
    node_id = -1
    is_async = False
    is_remote = False
    is_legacy = False
    is_user_annotation = False
    is_python_function = False
    activity_type: str | None = None
    metadata_json: str | None = None
    flow_id: int | None = None
    flow_type: int | None = None
    flow_start: bool | None = None
    external_id = 0
    linked_correlation_id = 0
    python_id = -1
    python_parent_id = -1
    python_module_id = -1

    count = 1
    cpu_parent: FunctionEvent | None = None
    self_cpu_percent: Any = -1
    total_cpu_percent: Any = -1
    total_device_percent: Any = -1

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float, **fields: Any
    ) -> None:
        if not GIVEN.issuperset(fields):
            unknown = sorted(fields.keys() - GIVEN)[0]
            raise TypeError(
                f"FunctionEvent.__init__() got an unexpected keyword argument {unknown!r}"
            )
        self.id = id
        self.name = name
        self.thread = self.device_resource_id = thread
        self.time_range = Interval(start_us, end_us)
        self.__dict__.update(fields)
        self.kernels: list[Any] = []
        self.cpu_children: list[FunctionEvent] = []

    @property
    def key(self) -> str:
        """What events are summed up by."""
        return self.name

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """A kernel that this event launched."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """An event directly within this one."""
        if not isinstance(child, FunctionEvent):
            raise AssertionError("Expected child to be a FunctionEvent")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """The event directly around this one."""
        if not isinstance(parent, FunctionEvent):
            raise AssertionError("Expected parent to be a FunctionEvent")
        self.cpu_parent = parent

    def _without_children(self, name: str) -> Any:
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return getattr(self, name) - sum(getattr(child, name) for child in self.cpu_children)

    @property
    def cpu_time_total(self) -> float:
        """How long it took."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        """How long it took without the events within it."""
        return self._without_children("cpu_time_total")  # type: ignore[no-any-return]

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that it took, without the events within it."""
        return self._without_children("cpu_memory_usage")  # type: ignore[no-any-return]

    @property
    def self_device_memory_usage(self) -> int:
        """The same on another device."""
        return self._without_children("device_memory_usage")  # type: ignore[no-any-return]

    @property
    def device_time_total(self) -> float:
        """How long it took on another device: nothing runs there."""
        return 0

    @property
    def self_device_time_total(self) -> float:
        """The same without the events within it."""
        return 0

    cuda_time_total = old_name("cuda_time_total", "device_time_total")
    self_cuda_time_total = old_name("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = old_name("self_cuda_memory_usage", "self_device_memory_usage")

    def __repr__(self) -> str:
        device = self.use_device
        children = [child.id for child in self.cpu_children]
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={children} {device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} "
            f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


GIVEN = frozenset(FunctionEvent.__annotations__) | {
    "sequence_nr", "scope", "cpu_memory_usage", "device_memory_usage", "device_index", "node_id",
    "is_async", "is_remote", "is_legacy", "is_user_annotation", "is_python_function",
    "external_id", "linked_correlation_id", "python_id", "python_parent_id", "python_module_id",
}  # fmt: skip
"""The fields that `FunctionEvent` takes by name."""

SUMS = (
    "cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total",
    "cpu_memory_usage", "device_memory_usage", "self_cpu_memory_usage",
    "self_device_memory_usage", "count",
)  # fmt: skip
TAKEN = (
    "key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name",
    "input_shapes", "stack", "scope", "device_type", "is_legacy", "use_device",
    "is_user_annotation",
)  # fmt: skip
"""What a sum has from the first of its events."""


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of events with one key; `cpu_time` is the average."""

    key: Any = None
    node_id = 0
    is_async = False
    is_remote = False
    use_device: str | None = None
    cpu_time_total: Any = 0
    device_time_total: Any = 0
    self_cpu_time_total: Any = 0
    self_device_time_total: Any = 0
    input_shapes: Any = None
    overload_name: str | None = None
    stack: Any = None
    scope: int | None = None
    cpu_memory_usage = 0
    device_memory_usage = 0
    self_cpu_memory_usage = 0
    self_device_memory_usage = 0
    cpu_children: Any = None
    cpu_parent: Any = None
    device_type: DeviceType = DeviceType.CPU
    is_legacy = False
    is_user_annotation = False
    flops: Any = 0
    count = 0

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event or a sum with the same key."""
        if self.key is None:
            for name in TAKEN:
                setattr(self, name, getattr(other, name))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    __iadd__: Callable[..., FunctionEventAvg] = add

    cuda_time_total = old_name("cuda_time_total", "device_time_total")
    self_cuda_time_total = old_name("self_cuda_time_total", "self_device_time_total")

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage}>"
        )
