"""Streams and events of emulated GPUs: work is done when a call returns, events note the time."""

from __future__ import annotations

import itertools
import time
from typing import Any

from flambeau._core.device import Cuda
from flambeau._core.device import device as Device
from flambeau.cuda.emulation.devices import index_of

_handles = itertools.count(1)


class Stream:
    """A queue of work of a device; what is queued is done at once, in the order of the program."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device = Device("cuda", index_of(device))
        self.priority = max(-5, min(0, priority))
        self.cuda_stream = kwargs.get("stream_ptr", next(_handles))

    @property
    def stream_id(self) -> int:
        """The number of the stream; 0 for the default one."""
        return int(self.cuda_stream)

    @property
    def device_index(self) -> int:
        """The index of the stream's device."""
        return self.device.index or 0

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for another stream's work."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one unless it is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all work is done: it is."""
        return True

    def synchronize(self) -> None:
        """Wait until all work is done: it is."""

    def __enter__(self) -> Stream:
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._context.__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return False
        return (self.cuda_stream, self.device) == (other.cuda_stream, other.device)

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its handle."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device, stream_ptr=stream_ptr)


class Event:
    """A mark in a stream; with `enable_timing`, the time between two of them is known."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False, external: bool = False) -> None:  # fmt: skip
        self.enable_timing = enable_timing
        self.time: float | None = None  # seconds, once it is recorded

    def record(self, stream: Stream | None = None) -> None:
        """Note the time: all work before is done."""
        self.time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream's later work wait for the event: nothing is left to wait for."""

    def query(self) -> bool:
        """Whether all work before the event is done: it is."""
        return True

    def synchronize(self) -> None:
        """Wait for the event: it has happened."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another one.

        Raises:
            ValueError: one of them does not measure time, or was not recorded.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.time is None or end_event.time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event.time - self.time) * 1e3

    def __repr__(self) -> str:
        state = "uninitialized" if self.time is None else f"{id(self):#x}"
        return f"<torch.cuda.Event {state}>"


class Current:
    """The current stream of every device that has another one than the default stream."""

    streams: dict[int, Stream] = {}  # noqa: RUF012  (one table for the process)


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to unless another one is chosen."""
    return Stream(index_of(device), stream_ptr=0)


def current_stream(device: Any = None) -> Stream:
    """The stream that work goes to now."""
    index = index_of(device)
    return Current.streams.get(index) or default_stream(index)


def set_stream(stream: Stream | None) -> None:
    """Let work go to a stream; None changes nothing."""
    if stream is not None:
        Current.streams[stream.device_index] = stream


class StreamContext:
    """`with torch.cuda.stream(s):` work goes to `s`; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self.index, self.before = Cuda.current, current_stream(self.stream.device)
        set_stream(self.stream)
        Cuda.current = self.stream.device_index

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            set_stream(self.before)
            Cuda.current = self.index


def stream(stream: Stream | None) -> StreamContext:
    """A context in which work goes to a stream."""
    return StreamContext(stream)
