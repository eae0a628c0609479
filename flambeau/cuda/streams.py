"""`torch.cuda.streams`: queues of a GPU's work, and marks in them."""

from __future__ import annotations

import itertools
from typing import Any

from flambeau._core import streams
from flambeau._core.device import Cuda
from flambeau._core.device import device as Device
from flambeau._runtime.cuda import sync_mode
from flambeau._runtime.cuda.driver import NOT_CAPTURING, Driver, driver
from flambeau._runtime.cuda.memory import Current, running
from flambeau.cuda.devices import choose, index_of
from flambeau.cuda.started import init

LOWEST, HIGHEST = 0, -3
"""Priorities of streams: more are treated as the highest, as in PyTorch."""
KEPT = 32
"""Streams of a device and a priority; further ones are the same again, by turns."""
CUDA_TYPE = 1
"""DLPack's and PyTorch's number for CUDA."""


class _Streams:
    """The streams that were made; they stay, because memory may belong to them."""

    made: dict[tuple[int, int], list[int]] = {}  # noqa: RUF012  (one table for the process)
    turns: dict[tuple[int, int], Any] = {}  # noqa: RUF012
    priorities: dict[int, int] = {}  # noqa: RUF012

    @classmethod
    def next(cls, device: int, priority: int) -> int:
        """The next stream of a device, of a priority."""
        key = (device, priority)
        handles = cls.made.setdefault(key, [])
        place = next(cls.turns.setdefault(key, itertools.cycle(range(KEPT))))
        if place == len(handles):
            handles.append(running(device).new_stream(priority))
            cls.priorities[handles[-1]] = priority
            running()
        return handles[place]


def _driver() -> Driver:
    found = driver()
    assert found is not None
    return found


class Stream(streams.Stream):
    """A queue of work of a device, whose work is done in order.

    Args:
        device: whose stream, by default the current device's.
        priority: 0, or lower for work that is to go first.

    Raises:
        RuntimeError: there is no GPU.
    """

    __module__ = "torch.cuda.streams"
    device_type = CUDA_TYPE

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        if not Cuda.devices():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        init()
        index = kwargs.get("device_index", index_of(device))
        self.device = Device("cuda", index)
        self.device_index = index
        handle = kwargs.get("stream_ptr", kwargs.get("stream_id"))
        if handle is None:
            handle = _Streams.next(index, max(HIGHEST, min(LOWEST, priority)))
        self.cuda_stream: int = handle

    @property
    def stream_id(self) -> int:  # type: ignore[override]
        """The number of the stream; 0 for the default one."""
        return self.cuda_stream

    @property
    def native_handle(self) -> int:
        """The driver's handle."""
        return self.cuda_stream

    @property
    def priority(self) -> int:
        """0, or lower where its work goes first."""
        return _Streams.priorities.get(self.cuda_stream, 0)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority."""
        return LOWEST, HIGHEST

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for the work that is now in another stream."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one unless it is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all work is done."""
        return running(self.device_index).stream_done(self.cuda_stream)

    def synchronize(self) -> None:
        """Wait until all work is done."""
        running(self.device_index).synchronize_stream(self.cuda_stream)

    def is_capturing(self) -> bool:
        """Whether a graph is made of what is put into it."""
        return running(self.device_index).capture_status(self.cuda_stream) != NOT_CAPTURING

    def __enter__(self) -> Stream:
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._context.__exit__(*exc)

    @property
    def _as_parameter_(self) -> Any:
        import ctypes

        return ctypes.c_void_p(self.cuda_stream)

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

    __module__ = "torch.cuda.streams"

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device, stream_ptr=stream_ptr, **kwargs)


class Event(streams.Event):
    """A mark in a stream; with `enable_timing`, the time between two of them is known.

    Args:
        enable_timing: measure time.
        blocking: let threads that wait sleep.
        interprocess: other processes may open it; it measures no time.
        external: keep it an event when a graph is made of the stream.

    Raises:
        RuntimeError: there is no GPU.
    """

    __module__ = "torch.cuda.streams"

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False, external: bool = False) -> None:  # fmt: skip
        if not Cuda.devices():
            raise RuntimeError("Tried to instantiate dummy base class Event")
        self.enable_timing, self.blocking = enable_timing, blocking
        self.interprocess, self.external = interprocess, external
        self.cuda_event = 0
        """The driver's number, 0 as long as it was not recorded."""
        self.device = None

    @property
    def event_id(self) -> int:  # type: ignore[override]
        """The driver's number."""
        return self.cuda_event

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Event:
        """An event of another process, by what its `ipc_handle` says."""
        made = cls(interprocess=True)
        made.device = Device("cuda", index_of(device))
        made.cuda_event = running(made.device.index).open_event(handle)
        running()
        return made

    def ipc_handle(self) -> bytes:
        """64 bytes by which another process opens this event, if it is an `interprocess` one."""
        use = running()
        if not self.cuda_event:
            self._make(use, current_stream().device)
        return use.event_handle(self.cuda_event)

    def _make(self, use: Driver, place: Any) -> None:
        self.cuda_event = use.new_event(self.enable_timing, self.blocking, self.interprocess)
        self.device = place

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark into a stream, by default the current one.

        Raises:
            RuntimeError: it was recorded in a stream of another device.
        """
        stream = current_stream() if stream is None else stream
        use = running(stream.device_index)
        if not self.cuda_event:
            self._make(use, stream.device)
        elif self.device != stream.device:
            raise RuntimeError(f"Event device {self.device.index} does not match recording "
                               f"stream's device {stream.device_index}.")  # fmt: skip
        use.record(self.cuda_event, stream.cuda_stream, self.external)
        running()

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream's later work wait for the event, by default the current one's."""
        stream = current_stream() if stream is None else stream
        if self.cuda_event:
            running(stream.device_index).wait_event(stream.cuda_stream, self.cuda_event)
            running()

    def query(self) -> bool:
        """Whether all work before the event is done."""
        return not self.cuda_event or _driver().event_done(self.cuda_event)

    def synchronize(self) -> None:
        """Wait for all work before the event."""
        if self.cuda_event:
            _driver().synchronize_event(self.cuda_event)

    def elapsed_time(self, end_event: Any) -> float:  # type: ignore[override]
        """Milliseconds from this event to another one.

        Raises:
            ValueError: one of them does not measure time, was not recorded, or has not happened.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.cuda_event and end_event.cuda_event):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise ValueError("Both events must be completed before calculating elapsed time.")
        return _driver().elapsed(self.cuda_event, end_event.cuda_event)

    def __del__(self) -> None:
        if getattr(self, "cuda_event", 0):
            _driver().free_event(self.cuda_event)

    def __repr__(self) -> str:
        state = f"{self.cuda_event:#x}" if self.cuda_event else "uninitialized"
        return f"<torch.cuda.Event {state}>"


KNOWN: dict[tuple[int, int], Stream] = {}
"""Device and handle -> the stream, of those that were current."""
streams.Stream.of_kind["cuda"] = Stream
streams.Event.of_kind["cuda"] = Event


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to unless another one is chosen."""
    init()
    return Stream(index_of(device), stream_ptr=0)


def current_stream(device: Any = None) -> Stream:
    """The stream that work of this thread goes to."""
    init()
    index = Cuda.current if device is None else index_of(device)
    handle = Current.streams.get(index, 0)
    found = KNOWN.get((index, handle))
    if found is None:
        found = KNOWN[index, handle] = Stream(index, stream_ptr=handle)
    return found


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """A stream that another library made, by its handle."""
    init()
    return ExternalStream(data_ptr, device)


def set_stream(stream: Stream | None) -> None:
    """Let this thread's work go to a stream; None changes nothing."""
    if stream is not None:
        choose(stream.device_index)
        Current.set_stream(stream.device_index, stream.cuda_stream)


class StreamContext:
    """`with torch.cuda.stream(s):` work goes to `s`; None changes nothing."""

    __module__ = "torch.cuda"

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        index = self.stream.device_index
        self.index, self.before = Cuda.current, Current.streams.get(index, 0)
        set_stream(self.stream)

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            Current.set_stream(self.stream.device_index, self.before)
            choose(self.index)


def stream(stream: Stream | None) -> StreamContext:
    """A context in which work goes to a stream."""
    return StreamContext(stream)


def get_sync_debug_mode() -> int:
    """What happens where the program waits for the GPU: 0 nothing, 1 a warning, 2 an error."""
    init()
    return sync_mode.Chosen.mode


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Choose what happens where the program waits for the GPU: "default", "warn" or "error".

    Raises:
        RuntimeError: it is none of these.
    """
    init()
    names = ("default", "warn", "error")
    if isinstance(debug_mode, str):
        if debug_mode not in names:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, "
                               "`error`")  # fmt: skip
        debug_mode = names.index(debug_mode)
    if debug_mode not in range(len(names)):
        raise RuntimeError("invalid value of debug_mode, expected 0,1 or 2")
    sync_mode.choose(running(), debug_mode)
