"""A driver without a GPU: device memory is a reserved range of addresses that nobody may touch.

The bytes lie elsewhere, at a fixed distance (`FakeDriver.host`): only the driver and the emulated
kernels get at them. Host code that follows a device address ends with a segmentation fault, as it
would on a machine whose GPU is real.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

from flambeau._runtime.cuda import errors
from flambeau._runtime.cuda.driver import Driver

Kernel = Callable[[tuple[int, ...], int, int, bytes], None]

SPAN = 1 << 36
"""Addresses of a device; memory is taken when it is written to."""
TOTAL = 85_017_493_504
"""What a device of this kind says that it has."""
GRAIN = 512
NO_RESERVE = 0x4000
"""Linux: memory is found when it is written to."""


def _reserve(nbytes: int, prot: int) -> Any:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    return mmap.mmap(-1, nbytes, flags=flags, prot=prot)


class FakeDriver(Driver):
    """One device whose memory is the host's, behind addresses of its own."""

    fake = True

    def __init__(self) -> None:
        self._guard = _reserve(SPAN, 0)
        self._bytes = _reserve(SPAN, mmap.PROT_READ | mmap.PROT_WRITE)
        self.base = _address_of(self._guard)
        self.distance = _address_of(self._bytes) - self.base
        self.next = self.base
        self.sizes: dict[int, int] = {}
        self.kernels: dict[int, Kernel] = {}

    def host(self, address: int) -> int:
        """Where the bytes of a device address lie."""
        return address + self.distance

    def device_count(self) -> int:
        """One."""
        return 1

    def version(self) -> int:
        """CUDA 13.0."""
        return 13000

    def use(self, index: int) -> None:
        """There is one device."""

    def attribute(self, index: int, number: int) -> int:
        """An attribute, as an H100 has it."""
        return {16: 132, 75: 9, 76: 0}[number]

    def device_name(self, index: int) -> str:
        """The device's name."""
        return "flambeau emulated GPU"

    def total_memory(self, index: int) -> int:
        """Bytes that the device says it has."""
        return TOTAL

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        return TOTAL - sum(self.sizes.values()), TOTAL

    def allocate(self, nbytes: int) -> int:
        """The address of new memory; no address is given twice."""
        wanted = -(-max(nbytes, 1) // GRAIN) * GRAIN
        if self.next + wanted > self.base + SPAN:
            raise errors.error(errors.OUT_OF_MEMORY)
        address, self.next = self.next, self.next + wanted + GRAIN
        self.sizes[address] = wanted
        return address

    def free(self, address: int) -> None:
        """Give memory back."""
        del self.sizes[address]

    def to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy host memory to the device."""
        ctypes.memmove(self.host(target), source, nbytes)

    def to_host(
        self, target: int, source: int, nbytes: int, stream: int, wait: bool = True
    ) -> None:
        """Copy device memory to the host."""
        ctypes.memmove(target, self.host(source), nbytes)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within device memory."""
        ctypes.memmove(self.host(target), self.host(source), nbytes)

    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        """Write a number of 1, 2 or 4 bytes `count` times."""
        kind = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32}[width]
        if width == 1:
            ctypes.memset(self.host(target), value, count)
        else:
            cells = (kind * count).from_address(self.host(target))
            cells[:] = [value] * count

    def register(self, kernel: Kernel) -> int:
        """The number of a kernel that is a function of Python: kernel(grid, threads, shared,
        packed), with the arguments of `launch`; it finds memory by `host`."""
        number = len(self.kernels) + 1
        self.kernels[number] = kernel
        return number

    def launch(
        self, function: int, grid: tuple[int, ...], threads: int, shared: int, stream: int,
        packed: bytes,
    ) -> None:  # fmt: skip
        """Call a registered kernel."""
        self.kernels[function](grid, threads, shared, packed)

    def synchronize(self) -> None:
        """Work is done when it is asked for."""


def _address_of(region: Any) -> int:
    """The address of a mapping, which Python tells nobody whose pages may not be read."""
    holder = ctypes.py_object(region)
    view = Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(holder, ctypes.byref(view), 0)
    address = view.address
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    return int(address)


class Buffer(ctypes.Structure):
    """Python's `Py_buffer`, of which the first field is the address."""

    _fields_ = [("address", ctypes.c_void_p), ("rest", ctypes.c_byte * 128)]  # noqa: RUF012
