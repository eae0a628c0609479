"""NVIDIA's driver through ctypes: libcuda comes with the GPU's driver, nothing else is needed."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from flambeau._runtime.cuda import errors
from flambeau._runtime.cuda.driver import Driver

PLAIN_SHARED = 48 << 10
"""Bytes of shared memory that a kernel gets without asking."""
MORE_SHARED = 8
"""CUDA's number for the attribute of a kernel that says how much it may get."""
NON_BLOCKING_STREAM, BLOCKING_EVENT, NO_TIMING, INTERPROCESS, EXTERNAL_RECORD = 1, 1, 2, 4, 1
FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
    "use the 'spawn' start method"
)
VERBOSE = 1
"""CUDA's flag for all that is known of the nodes of a graph."""
RELAXED = 2
"""CUDA's number for captures that refuse nothing."""


class EventHandle(ctypes.Structure):
    """CUDA's handle of an event for other processes, which is handed over by value."""

    _fields_ = [("reserved", ctypes.c_ubyte * 64)]  # noqa: RUF012


OUT = c_void_p
"""A place that a function writes its result to."""
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (OUT,),
    "cuDeviceGetCount": (OUT,),
    "cuDeviceGet": (OUT, c_int),
    "cuDeviceGetAttribute": (OUT, c_int, c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetUuid": (OUT, c_int),
    "cuDeviceTotalMem_v2": (OUT, c_int),
    "cuDeviceCanAccessPeer": (OUT, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (OUT, c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuMemGetInfo_v2": (OUT, OUT),
    "cuMemAlloc_v2": (OUT, c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemHostAlloc": (OUT, c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyAsync": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuMemsetD16Async": (c_uint64, ctypes.c_ushort, c_size_t, c_void_p),
    "cuMemsetD32Async": (c_uint64, c_uint, c_size_t, c_void_p),
    "cuStreamCreateWithPriority": (OUT, c_uint, c_int),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamQuery": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, OUT),
    "cuThreadExchangeStreamCaptureMode": (OUT,),
    "cuStreamIsCapturing": (c_void_p, OUT),
    "cuEventCreate": (OUT, c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventQuery": (c_void_p,),
    "cuEventRecordWithFlags": (c_void_p, c_void_p, c_uint),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (OUT, c_void_p, c_void_p),
    "cuIpcGetEventHandle": (OUT, c_void_p),
    "cuIpcOpenEventHandle": (OUT, EventHandle),
    "cuModuleLoadData": (OUT, c_char_p),
    "cuModuleGetFunction": (OUT, c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (
        c_void_p, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_void_p, c_void_p,
        c_void_p,
    ),
    "cuGraphInstantiateWithFlags": (OUT, c_void_p, c_uint64),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphDebugDotPrint": (c_void_p, c_char_p, c_uint),
    "cuGraphDestroy": (c_void_p,),
    "cuGraphExecDestroy": (c_void_p,),
    "cuProfilerStart": (),
    "cuProfilerStop": (),
    "cuGetErrorString": (c_int, OUT),
}  # fmt: skip
"""The functions of libcuda that are called, and the types of what they are given."""


def found() -> LibCuda | None:
    """The driver, if it is installed and has a device."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    for name, types in SIGNATURES.items():
        if hasattr(library, name):  # older drivers lack some
            getattr(library, name).argtypes = types
    if library.cuInit(0):
        return None
    driver = LibCuda(library)
    return driver if driver.device_count() else None


class OfThread(threading.local):
    """Per thread: the device whose context is current, and slots for the arguments of a launch."""

    device = -1

    def __init__(self) -> None:
        self.slots: dict[int, tuple[Any, Any]] = {}


class LibCuda(Driver):
    """The driver's functions, with their errors raised."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.contexts: dict[int, int] = {}
        self.shared_of: dict[int, int] = {}  # function -> bytes of shared memory it may get
        self.pinned: dict[int, int] = {}
        self.captures = 0
        self.is_forked = False
        self.thread = OfThread()
        self._launch = library.cuLaunchKernel

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver. Raises CudaError where it reports an error."""
        code = getattr(self.library, name)(*arguments)
        if code:
            raise self.error(code)

    def error(self, code: int) -> errors.CudaError:
        """The error of a number that the driver returned."""
        text = c_char_p()
        self.library.cuGetErrorString(code, byref(text))
        return errors.error(code, (text.value or b"unknown error").decode())

    def number(self, name: str, *arguments: Any) -> int:
        """What a function writes to its first argument, an int."""
        value = c_int()
        self.call(name, byref(value), *arguments)
        return value.value

    def handle(self, name: str, *arguments: Any) -> int:
        """What a function writes to its first argument, a handle or an address."""
        value = c_uint64()
        self.call(name, byref(value), *arguments)
        return value.value

    def is_done(self, name: str, handle: int) -> bool:
        """What a function that asks whether work is done answers."""
        code = getattr(self.library, name)(handle)
        if code not in (0, errors.NOT_READY):
            raise self.error(code)
        return not code

    # ---- devices

    def device_count(self) -> int:
        """How many devices there are."""
        return self.number("cuDeviceGetCount")

    def use(self, index: int) -> None:
        """Make a device current in this thread."""
        if self.thread.device == index:
            return
        if self.is_forked:
            raise RuntimeError(FORKED)
        context = self.contexts.get(index)
        if context is None:
            if not self.contexts:
                os.register_at_fork(after_in_child=self._forked)
            context = self.handle("cuDevicePrimaryCtxRetain", self._device(index))
            self.contexts[index] = context
        self.call("cuCtxSetCurrent", context)
        self.thread.device = index

    def _forked(self) -> None:
        """In a child process that has no contexts, though its parent has."""
        self.is_forked, self.thread = True, OfThread()

    def _device(self, index: int) -> int:
        return self.number("cuDeviceGet", index)

    def attribute(self, index: int, number: int) -> int:
        """An attribute of a device."""
        return self.number("cuDeviceGetAttribute", number, self._device(index))

    def device_name(self, index: int) -> str:
        """The device's name."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self._device(index))
        return text.value.decode()

    def uuid(self, index: int) -> bytes:
        """The 16 bytes that tell this device from all others."""
        place = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetUuid", byref(place), self._device(index))
        return bytes(place)

    def total_memory(self, index: int) -> int:
        """Bytes of memory that a device has."""
        return self.handle("cuDeviceTotalMem_v2", self._device(index))

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of the current device."""
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def version(self) -> int:
        """The CUDA version of the driver."""
        return self.number("cuDriverGetVersion")

    def synchronize(self) -> None:
        """Wait for all streams of the current device."""
        self.call("cuCtxSynchronize")

    def can_access_peer(self, index: int, peer: int) -> bool:
        """Whether kernels of a device may read another one's memory."""
        return bool(self.number("cuDeviceCanAccessPeer", self._device(index), self._device(peer)))

    # ---- memory

    def allocate(self, nbytes: int) -> int:
        """The address of new memory."""
        with self.relaxed():
            return self.handle("cuMemAlloc_v2", nbytes)

    def free(self, address: int) -> None:
        """Give memory back."""
        self.call("cuMemFree_v2", address)

    def to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy host memory to a device."""
        if self.captures and self.capture_status(stream) and not self.is_pinned(source):
            raise errors.unpinned()
        self.call("cuMemcpyHtoDAsync_v2", target, source, nbytes, stream)

    def to_host(
        self, target: int, source: int, nbytes: int, stream: int, wait: bool = True
    ) -> None:
        """Copy device memory to the host."""
        self.call("cuMemcpyDtoHAsync_v2", target, source, nbytes, stream)
        if wait:
            self.call("cuStreamSynchronize", stream)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within device memory; addresses say which device they belong to."""
        self.call("cuMemcpyAsync", target, source, nbytes, stream)

    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        """Write a number of 1, 2 or 4 bytes `count` times."""
        self.call(f"cuMemsetD{width * 8}Async", target, value, count, stream)

    def allocate_host(self, nbytes: int) -> int:
        """The address of new pinned memory of the host, portable among devices."""
        with self.relaxed():
            address = self.handle("cuMemHostAlloc", nbytes, 1)
        self.pinned[address] = nbytes
        return address

    def free_host(self, address: int) -> None:
        """Give pinned memory back."""
        self.call("cuMemFreeHost", address)
        del self.pinned[address]

    def is_pinned(self, address: int) -> bool:
        """Whether an address lies in pinned memory."""
        return any(start <= address < start + size for start, size in self.pinned.items())

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Meanwhile this thread may do what a capture would refuse, such as taking memory."""
        if not self.captures:
            yield
            return
        mode = c_int(RELAXED)
        self.call("cuThreadExchangeStreamCaptureMode", byref(mode))
        try:
            yield
        finally:
            self.call("cuThreadExchangeStreamCaptureMode", byref(mode))

    # ---- streams

    def new_stream(self, priority: int = 0) -> int:
        """A stream that does not wait for the default one."""
        return self.handle("cuStreamCreateWithPriority", NON_BLOCKING_STREAM, priority)

    def free_stream(self, stream: int) -> None:
        """Destroy a stream."""
        self.call("cuStreamDestroy_v2", stream)

    def stream_done(self, stream: int) -> bool:
        """Whether all work of a stream is done."""
        return self.is_done("cuStreamQuery", stream)

    def synchronize_stream(self, stream: int) -> None:
        """Wait for all work of a stream."""
        self.call("cuStreamSynchronize", stream)

    def wait_event(self, stream: int, event: int) -> None:
        """Let later work of a stream wait for an event."""
        self.call("cuStreamWaitEvent", stream, event, 0)

    # ---- events

    def new_event(
        self, timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> int:
        """A mark to put into streams."""
        flags = (BLOCKING_EVENT if blocking else 0) | (0 if timing else NO_TIMING)
        return self.handle("cuEventCreate", flags | (INTERPROCESS if interprocess else 0))

    def event_handle(self, event: int) -> bytes:
        """64 bytes by which other processes open an event."""
        place = EventHandle()
        self.call("cuIpcGetEventHandle", byref(place), event)
        return bytes(place)

    def open_event(self, handle: bytes) -> int:
        """An event of another process."""
        return self.handle("cuIpcOpenEventHandle", EventHandle.from_buffer_copy(handle))

    def free_event(self, event: int) -> None:
        """Destroy an event."""
        self.call("cuEventDestroy_v2", event)

    def record(self, event: int, stream: int, external: bool = False) -> None:
        """Put an event into a stream."""
        self.call("cuEventRecordWithFlags", event, stream, EXTERNAL_RECORD if external else 0)

    def event_done(self, event: int) -> bool:
        """Whether all work before the event is done."""
        return self.is_done("cuEventQuery", event)

    def synchronize_event(self, event: int) -> None:
        """Wait for all work before the event."""
        self.call("cuEventSynchronize", event)

    def elapsed(self, start: int, end: int) -> float:
        """Milliseconds between two events that have happened."""
        found = c_float()
        self.call("cuEventElapsedTime", byref(found), start, end)
        return found.value

    # ---- kernels

    def load_module(self, image: bytes) -> int:
        """Load a cubin, or PTX, into the current device."""
        with self.relaxed():
            return self.handle("cuModuleLoadData", image)

    def function(self, module: int, name: str) -> int:
        """The kernel of that name in a module."""
        return self.handle("cuModuleGetFunction", module, name.encode())

    def launch(
        self, function: int, grid: tuple[int, ...], threads: int, shared: int, stream: int,
        packed: bytes,
    ) -> None:  # fmt: skip
        """Put a kernel into a stream."""
        if shared > PLAIN_SHARED and self.shared_of.get(function, PLAIN_SHARED) < shared:
            self.call("cuFuncSetAttribute", function, MORE_SHARED, shared)
            self.shared_of[function] = shared
        x, y, z = (*grid, 1, 1)[:3]
        places = self.arguments(packed)
        code = self._launch(function, x, y, z, threads, 1, 1, shared, stream, places, None)
        if code:
            raise self.error(code)

    def arguments(self, packed: bytes) -> Any:
        """The places of arguments, as cuLaunchKernel reads them before it returns."""
        count = len(packed) // 8
        found = self.thread.slots.get(count)
        if found is None:
            slots = (c_uint64 * count)()
            start = ctypes.addressof(slots)
            places = (c_void_p * count)(*range(start, start + 8 * count, 8))
            found = self.thread.slots[count] = slots, places
        ctypes.memmove(found[0], packed, 8 * count)
        return found[1]

    # ---- graphs

    def begin_capture(self, stream: int, mode: int = 0) -> None:
        """Note what is put into a stream instead of doing it."""
        self.call("cuStreamBeginCapture_v2", stream, mode)
        self.captures += 1

    def end_capture(self, stream: int) -> int:
        """The graph of what was noted."""
        self.captures -= 1
        found = c_uint64()
        self.call("cuStreamEndCapture", stream, byref(found))
        return found.value

    def capture_status(self, stream: int) -> int:
        """NOT_CAPTURING, CAPTURING or CAPTURE_BROKEN."""
        found = c_int()
        self.call("cuStreamIsCapturing", stream, byref(found))
        return found.value

    def instantiate(self, graph: int) -> int:
        """A form of a graph that can be launched."""
        return self.handle("cuGraphInstantiateWithFlags", graph, 0)

    def launch_graph(self, executable: int, stream: int) -> None:
        """Put all work of a graph into a stream."""
        self.call("cuGraphLaunch", executable, stream)

    def print_graph(self, graph: int, path: str) -> None:
        """Write a graph to a file, in the language of Graphviz."""
        self.call("cuGraphDebugDotPrint", graph, path.encode(), VERBOSE)

    def free_graph(self, graph: int) -> None:
        """Destroy a graph."""
        self.call("cuGraphDestroy", graph)

    def free_executable(self, executable: int) -> None:
        """Destroy what `instantiate` made."""
        self.call("cuGraphExecDestroy", executable)

    # ---- tools

    def profiler_start(self) -> None:
        """Tell a profiler outside that it is to look now."""
        self.call("cuProfilerStart")

    def profiler_stop(self) -> None:
        """Tell a profiler outside that it has seen enough."""
        self.call("cuProfilerStop")
