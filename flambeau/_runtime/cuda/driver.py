"""What is asked of a driver, and which one this process has.

Addresses of device memory, streams, events, modules and functions are plain integers. Everything
but allocation works on the current context, that of the device last handed to `use`.
"""

from __future__ import annotations

import os
from functools import cache as cache_once


class CudaError(RuntimeError):
    """What a driver reports: its number, its name, and torch's text for it."""

    def __init__(self, code: int, name: str, text: str) -> None:
        super().__init__(f"CUDA error: {text}")
        self.code, self.name = code, name


OUT_OF_MEMORY = 2
NOT_READY = 600


class Driver:
    """An interface of NVIDIA's driver, as far as flambeau needs it."""

    fake = False

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

    def total_memory(self, index: int) -> int:
        """Bytes of memory that a device has."""
        raise NotImplementedError

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of the current device."""
        raise NotImplementedError

    def allocate(self, nbytes: int) -> int:
        """The address of new memory. Raises CudaError."""
        raise NotImplementedError

    def free(self, address: int) -> None:
        """Give memory back; waits until the device has done with it."""
        raise NotImplementedError

    def to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy host memory to a device; pageable memory has been read when this returns."""
        raise NotImplementedError

    def to_host(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy device memory to the host; pageable memory has been written when this returns."""
        raise NotImplementedError

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within device memory."""
        raise NotImplementedError

    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        """Write a number of 1, 2 or 4 bytes `count` times."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for all streams of the current device."""
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
