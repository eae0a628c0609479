"""What is asked of a driver, and which one this process has.

Addresses of device memory, streams, events, modules, functions and graphs are plain integers; the
stream 0 is the default one. All but questions about a device works on the current context, that of
the device last handed to `use`.
"""

from __future__ import annotations

import os
from functools import cache as cache_once
from typing import Any

from flambeau._runtime.cuda.errors import CudaError

__all__ = ["CAPTURE_BROKEN", "CAPTURING", "NOT_CAPTURING", "CudaError", "Driver", "driver"]

NOT_CAPTURING, CAPTURING, CAPTURE_BROKEN = 0, 1, 2
"""What a capture is at: `Driver.capture_status`."""


class Driver:
    """An interface of NVIDIA's driver, as far as flambeau needs it."""

    fake = False
    watcher: Any = None
    """What is told of every block that an allocator gives and takes (`memory.watch`)."""

    # ---- devices

    def device_count(self) -> int:
        """How many devices there are."""
        raise NotImplementedError

    def use(self, index: int) -> None:
        """Make a device current in this thread; its context is made when it is first used."""
        raise NotImplementedError

    def attribute(self, index: int, number: int) -> int:
        """An attribute of a device by CUDA's number: 16 is the count of multiprocessors."""
        raise NotImplementedError

    def device_name(self, index: int) -> str:
        """The device's name."""
        raise NotImplementedError

    def uuid(self, index: int) -> bytes:
        """The 16 bytes that tell this device from all others."""
        raise NotImplementedError

    def total_memory(self, index: int) -> int:
        """Bytes of memory that a device has."""
        raise NotImplementedError

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of the current device."""
        raise NotImplementedError

    def version(self) -> int:
        """The CUDA version of the driver: 13000 for 13.0."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for all streams of the current device."""
        raise NotImplementedError

    def can_access_peer(self, index: int, peer: int) -> bool:
        """Whether kernels of a device may read another one's memory."""
        raise NotImplementedError

    # ---- memory

    def allocate(self, nbytes: int) -> int:
        """The address of new memory. Raises CudaError."""
        raise NotImplementedError

    def free(self, address: int) -> None:
        """Give memory back; waits until the device has done with it."""
        raise NotImplementedError

    def to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy host memory to a device; pageable memory has been read when this returns."""
        raise NotImplementedError

    def to_host(
        self, target: int, source: int, nbytes: int, stream: int, wait: bool = True
    ) -> None:
        """Copy device memory to the host; it has been written when this returns, unless the memory
        is pinned and `wait` is False."""
        raise NotImplementedError

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within device memory, from one device to another too."""
        raise NotImplementedError

    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        """Write a number of 1, 2 or 4 bytes `count` times."""
        raise NotImplementedError

    def allocate_host(self, nbytes: int) -> int:
        """The address of new pinned memory of the host, which every device reaches."""
        raise NotImplementedError

    def free_host(self, address: int) -> None:
        """Give pinned memory back."""
        raise NotImplementedError

    # ---- streams

    def new_stream(self, priority: int = 0) -> int:
        """A queue of work that does not wait for the default stream."""
        raise NotImplementedError

    def free_stream(self, stream: int) -> None:
        """Destroy a stream; what is in it is still done."""
        raise NotImplementedError

    def stream_done(self, stream: int) -> bool:
        """Whether all work of a stream is done."""
        raise NotImplementedError

    def synchronize_stream(self, stream: int) -> None:
        """Wait for all work of a stream."""
        raise NotImplementedError

    def wait_event(self, stream: int, event: int) -> None:
        """Let later work of a stream wait for an event."""
        raise NotImplementedError

    # ---- events

    def new_event(
        self, timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> int:
        """A mark to put into streams; `blocking` lets waiting threads sleep, `interprocess` ones
        may be opened by other processes."""
        raise NotImplementedError

    def event_handle(self, event: int) -> bytes:
        """64 bytes by which other processes open an event."""
        raise NotImplementedError

    def open_event(self, handle: bytes) -> int:
        """An event of another process."""
        raise NotImplementedError

    def free_event(self, event: int) -> None:
        """Destroy an event."""
        raise NotImplementedError

    def record(self, event: int, stream: int, external: bool = False) -> None:
        """Put an event into a stream; `external` ones stay events when a graph is captured."""
        raise NotImplementedError

    def event_done(self, event: int) -> bool:
        """Whether all work before the event is done."""
        raise NotImplementedError

    def synchronize_event(self, event: int) -> None:
        """Wait for all work before the event."""
        raise NotImplementedError

    def elapsed(self, start: int, end: int) -> float:
        """Milliseconds between two events that have happened."""
        raise NotImplementedError

    # ---- kernels

    def load_module(self, image: bytes) -> int:
        """Load a cubin, or PTX, into the current device."""
        raise NotImplementedError

    def function(self, module: int, name: str) -> int:
        """The kernel of that name in a module."""
        raise NotImplementedError

    def launch(
        self, function: int, grid: tuple[int, ...], threads: int, shared: int, stream: int,
        packed: bytes,
    ) -> None:  # fmt: skip
        """Put a kernel into a stream.

        Args:
            grid: blocks in up to three dimensions.
            threads: of a block.
            shared: bytes of dynamic shared memory; more than 48 KiB are asked for when needed.
            packed: the arguments, 8 bytes each, of which a kernel may read the first 4, 2 or 1.
        """
        raise NotImplementedError

    # ---- graphs

    def begin_capture(self, stream: int, mode: int = 0) -> None:
        """Note what is put into a stream instead of doing it.

        `mode` says what is refused meanwhile: 0 calls of any thread that a graph cannot hold, 1
        those of this thread, 2 none.
        """
        raise NotImplementedError

    def end_capture(self, stream: int) -> int:
        """The graph of what was noted. Raises CudaError where the capture was broken."""
        raise NotImplementedError

    def capture_status(self, stream: int) -> int:
        """NOT_CAPTURING, CAPTURING or CAPTURE_BROKEN."""
        raise NotImplementedError

    def instantiate(self, graph: int) -> int:
        """A form of a graph that can be launched."""
        raise NotImplementedError

    def launch_graph(self, executable: int, stream: int) -> None:
        """Put all work of a graph into a stream."""
        raise NotImplementedError

    def print_graph(self, graph: int, path: str) -> None:
        """Write a graph to a file, in the language of Graphviz."""
        raise NotImplementedError

    def free_graph(self, graph: int) -> None:
        """Destroy a graph; what was instantiated from it stays."""
        raise NotImplementedError

    def free_executable(self, executable: int) -> None:
        """Destroy what `instantiate` made."""
        raise NotImplementedError

    # ---- tools

    def profiler_start(self) -> None:
        """Tell a profiler outside that it is to look now."""
        raise NotImplementedError

    def profiler_stop(self) -> None:
        """Tell a profiler outside that it has seen enough."""
        raise NotImplementedError


class Played:
    """Whether CUDA is emulated, whatever is there."""

    on = os.environ.get("FLAMBEAU_EMULATE_CUDA", "") not in ("", "0")


def play() -> None:
    """Emulate CUDA in this process.

    Raises:
        RuntimeError: a GPU is in use.
    """
    if not Played.on and driver() is not None:
        raise RuntimeError("CUDA cannot be emulated: a GPU is in use")
    Played.on = True
    driver.cache_clear()


@cache_once
def driver() -> Driver | None:
    """The driver of this process: the fake one where CUDA is emulated, NVIDIA's where there is a
    GPU, else None."""
    if Played.on:
        from flambeau._runtime.cuda.fake import FakeDriver

        return FakeDriver()
    from flambeau._runtime.cuda import libcuda

    return libcuda.found()
