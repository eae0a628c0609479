"""`torch.cpu`: the device that is always there, in the words of `torch.cuda`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from flambeau._core.missing import missing


def is_available() -> bool:
    """Whether there is a CPU: yes."""
    return True


def is_initialized() -> bool:
    """Whether the CPU is ready: yes."""
    return True


def device_count() -> int:
    """The number of CPU devices: 1, whatever the number of processors."""
    return 1


def current_device() -> str:
    """The name of the device: "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Choose the CPU device: there is one."""


def synchronize(device: Any = None) -> None:
    """Wait for what was started: operators return when they are done."""


class Stream:
    """The one queue of the CPU, in which everything runs in the order of the program."""

    def wait_stream(self, stream: Any) -> None:
        """Wait for another queue: there is none."""

    def wait_event(self, event: Any) -> None:
        """Wait for a mark in a queue: it has passed."""

    def record_event(self) -> None:
        """Leave a mark in the queue."""


_STREAM = Stream()


def current_stream(device: Any = None) -> Stream:
    """The one queue."""
    return _STREAM


def stream(stream: Stream) -> AbstractContextManager[None]:
    """`with torch.cpu.stream(s):` changes nothing."""
    return nullcontext()


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
