"""NVIDIA's driver through ctypes: libcuda comes with the GPU's driver, nothing else is needed."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

from flambeau._runtime.cuda.driver import CudaError, Driver


def found() -> LibCuda | None:
    """The driver, if it is installed and has a device."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if library.cuInit(0):
        return None
    driver = LibCuda(library)
    return driver if driver.device_count() else None


class LibCuda(Driver):
    """The driver's functions, with their errors raised."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.contexts: dict[int, c_void_p] = {}

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver. Raises CudaError where it reports an error."""
        code = getattr(self.library, name)(*arguments)
        if code:
            raise self.error(code)

    def error(self, code: int) -> CudaError:
        """The error of a number that the driver returned."""
        name, text = c_char_p(), c_char_p()
        self.library.cuGetErrorName(code, byref(name))
        self.library.cuGetErrorString(code, byref(text))
        return CudaError(code, (name.value or b"").decode(), (text.value or b"unknown").decode())

    def device_count(self) -> int:
        """How many devices there are."""
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        return count.value

    def use(self, index: int) -> None:
        """Make a device current in this thread."""
        context = self.contexts.get(index)
        if context is None:
            context = c_void_p()
            self.call("cuDevicePrimaryCtxRetain", byref(context), self._device(index))
            self.contexts[index] = context
        self.call("cuCtxSetCurrent", context)

    def _device(self, index: int) -> c_int:
        device = c_int()
        self.call("cuDeviceGet", byref(device), index)
        return device

    def attribute(self, index: int, number: int) -> int:
        """An attribute of a device."""
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), number, self._device(index))
        return value.value

    def device_name(self, index: int) -> str:
        """The device's name."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self._device(index))
        return text.value.decode()

    def total_memory(self, index: int) -> int:
        """Bytes of memory that a device has."""
        total = c_size_t()
        self.call("cuDeviceTotalMem_v2", byref(total), self._device(index))
        return total.value

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of the current device."""
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def allocate(self, nbytes: int) -> int:
        """The address of new memory."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(nbytes))
        return address.value

    def free(self, address: int) -> None:
        """Give memory back."""
        self.call("cuMemFree_v2", c_uint64(address))

    def to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy host memory to a device."""
        self.call("cuMemcpyHtoDAsync_v2", c_uint64(target), c_void_p(source), c_size_t(nbytes),
                  c_void_p(stream))  # fmt: skip

    def to_host(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy device memory to the host."""
        self.call("cuMemcpyDtoHAsync_v2", c_void_p(target), c_uint64(source), c_size_t(nbytes),
                  c_void_p(stream))  # fmt: skip
        self.call("cuStreamSynchronize", c_void_p(stream))

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within device memory."""
        self.call("cuMemcpyDtoDAsync_v2", c_uint64(target), c_uint64(source), c_size_t(nbytes),
                  c_void_p(stream))  # fmt: skip

    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        """Write a number of 1, 2 or 4 bytes `count` times."""
        kind = {1: ctypes.c_ubyte, 2: ctypes.c_ushort, 4: ctypes.c_uint}[width]
        self.call(f"cuMemsetD{width * 8}Async", c_uint64(target), kind(value), c_size_t(count),
                  c_void_p(stream))  # fmt: skip

    def synchronize(self) -> None:
        """Wait for all streams of the current device."""
        self.call("cuCtxSynchronize")
