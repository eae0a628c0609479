"""`torch.cpu`: the device that is always there, in the words of `torch.cuda`."""

from __future__ import annotations

import importlib
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


# ---- memory: the pool that large tensors come from, in the words of `torch.cuda`


def memory_stats(device: Any = None) -> dict[str, int]:
    """Counts of the memory pool by the names of `torch.cuda.memory_stats`.

    `allocated_bytes.all.*` are those of tensors and arrays of 64 KiB and more (smaller ones do not
    come from the pool), `reserved_bytes.all.*` those that the pool holds, with what it keeps for
    the next tensor. All are 0 until the first kernel is loaded.

    >>> import flambeau as torch
    >>> stats = torch.cpu.memory_stats()
    >>> stats["reserved_bytes.all.current"] >= stats["allocated_bytes.all.current"]
    True
    """
    from flambeau._runtime import allocator

    return allocator.statistics()


def memory_allocated(device: Any = None) -> int:
    """Bytes of large tensors and arrays that are alive."""
    return memory_stats()["allocated_bytes.all.current"]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were alive at a time since `reset_peak_memory_stats`."""
    return memory_stats()["allocated_bytes.all.peak"]


def memory_reserved(device: Any = None) -> int:
    """Bytes that the pool holds: in use, or kept for the next tensor."""
    return memory_stats()["reserved_bytes.all.current"]


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool held at a time since `reset_peak_memory_stats`."""
    return memory_stats()["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin again at what is in use now."""
    from flambeau._runtime import allocator

    allocator.reset_peaks()


def empty_cache() -> None:
    """Give the memory that the pool keeps for later back to the system."""
    from flambeau._runtime import allocator

    allocator.empty_cache()


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
    if name == "amp":
        return importlib.import_module("flambeau.cpu.amp")
    return missing(__name__, name)
