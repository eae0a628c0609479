"""`torch.Stream` and `torch.Event`: queues of work of any device, and marks in them.

Those of the CPU do nothing, because its work is done when a call returns. Those of a GPU are
`torch.cuda.Stream` and `torch.cuda.Event`, which are made when a GPU is asked for.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from flambeau._core.device import CPU, Cuda, device

NO_EVENTS = "cpu backend doesn't support events."
TYPES = {0: "cpu", 1: "cuda"}
"""Kinds of devices by PyTorch's numbers."""


def _kind(which: Any, kwargs: dict[str, Any]) -> str:
    """The kind of device that a stream or an event is asked for.

    Raises:
        RuntimeError: there is none of that kind.
    """
    if "device_type" in kwargs:
        return TYPES[kwargs["device_type"]]
    if which is None:
        return "cuda" if Cuda.devices() else "cpu"
    kind = device(which).type
    if kind == "cpu" or (kind == "cuda" and Cuda.devices()):
        return kind
    raise RuntimeError(f"PyTorch is not linked with support for {kind} devices")


class Stream:
    """A queue of work of a device.

    Args:
        device: whose, by default the accelerator's, if there is one.
        priority: of the stream of a GPU.

    >>> import flambeau as torch
    >>> torch.Stream("cpu").device
    device(type='cpu')
    """

    __module__ = "torch"
    of_kind: ClassVar[dict[str, Any]] = {}
    """Kind of device -> the class of its streams."""
    device: Any = CPU
    device_type = 0
    device_index: int = -1
    stream_id: Any = 0

    def __new__(cls, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        if cls is Stream and _kind(device, kwargs) in Stream.of_kind:
            return super().__new__(Stream.of_kind[_kind(device, kwargs)])
        return super().__new__(cls)

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device_index = kwargs.get("device_index", -1)

    @property
    def native_handle(self) -> Any:
        """The driver's handle. Raises RuntimeError: the CPU has none."""
        raise RuntimeError("Backend doesn't support getting stream native handle.")

    def query(self) -> bool:
        """Whether all work is done: on the CPU it is."""
        return True

    def synchronize(self) -> None:
        """Wait until all work is done."""

    def is_capturing(self) -> bool:
        """Whether a graph is made of what is put into it."""
        return False

    def record_event(self, event: Any = None) -> Any:
        """Record an event. Raises RuntimeError: the CPU has none."""
        raise RuntimeError(NO_EVENTS)

    def wait_event(self, event: Any) -> None:
        """Let later work wait for an event."""

    def wait_stream(self, stream: Any) -> None:
        """Let later work wait for another stream's. Raises RuntimeError: the CPU has no events."""
        raise RuntimeError(NO_EVENTS)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        return

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.device_index == other.device_index  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.device_index)

    def __repr__(self) -> str:
        return (f"torch.Stream device_type={TYPES[self.device_type]}, "
                f"device_index={self.device_index}, stream_id={self.stream_id}")  # fmt: skip


class Event:
    """A mark in a queue of work.

    Args:
        device: of which kind of device, by default the accelerator, if there is one.
        enable_timing: measure time.

    >>> import flambeau as torch
    >>> event = torch.Event("cpu")
    >>> event.query()
    True
    """

    __module__ = "torch"
    of_kind: ClassVar[dict[str, Any]] = {}
    device: Any = CPU
    event_id: int = 0

    def __new__(cls, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        if cls is Event and _kind(device, {}) in Event.of_kind:
            return Event.of_kind[_kind(device, {})](*args, **kwargs)
        return super().__new__(cls)

    def __init__(self, device: Any = None, *, enable_timing: bool = False,
                 blocking: bool = False, interprocess: bool = False) -> None:  # fmt: skip
        self.enable_timing = enable_timing

    def record(self, stream: Any = None) -> None:
        """Record it. Raises RuntimeError: the CPU has no events."""
        raise RuntimeError(NO_EVENTS)

    def query(self) -> bool:
        """Whether all work before it is done: on the CPU it is."""
        return True

    def synchronize(self) -> None:
        """Wait for all work before it."""

    def wait(self, stream: Any = None) -> None:
        """Let a stream's later work wait for it."""

    def elapsed_time(self, end_event: Any) -> NoReturn:
        """Milliseconds to another event. Raises ValueError: none can be recorded."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self) -> str:
        return ("torch.Event device_type=cpu, device_index=-1, "
                f"event_flag={int(self.enable_timing)}, event_id={self.event_id}")  # fmt: skip
