"""A driver without a GPU: device memory is a reserved range of addresses that nobody may touch.

The bytes lie elsewhere, at a fixed distance (`FakeDriver.host`): only the driver and the emulated
kernels get at them. Host code that follows a device address ends with a segmentation fault, as it
would on a machine whose GPU is real.

FLAMBEAU_EMULATE_CUDA says how many devices there are (1 is the usual answer); with
FLAMBEAU_CUDA_SEED=<number> streams run in an order of their own, and what a program does is
checked (`fake_queues`, `fake_checks`).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from flambeau._runtime.cuda import errors
from flambeau._runtime.cuda.driver import Driver
from flambeau._runtime.cuda.fake_checks import Checks
from flambeau._runtime.cuda.fake_queues import Access, Event, Node, Queue, Queues, Run

Kernel = Callable[[tuple[int, ...], int, int, bytes], None]

SPAN = 1 << 37
"""Addresses of a device; memory is taken when it is written to."""
TOTAL = 85_017_493_504
"""What a device of this kind says that it has."""
CONTEXT = 545_259_520
"""What of it a process has taken when it has done nothing yet, as a real one."""
GRAIN = 512
NO_RESERVE = 0x4000
"""Linux: memory is found when it is written to."""
LARGE = 2 << 20
POISON = 0xFF

ATTRIBUTES = {
    1: 1024, 8: 49152, 10: 32, 13: 1_980_000, 16: 132, 18: 0, 33: 0, 34: 0, 36: 2_619_000,
    37: 5120, 38: 52_428_800, 39: 2048, 50: 0, 75: 9, 76: 0, 81: 233_472, 82: 65536, 84: 0,
    97: 232_448,
}  # fmt: skip
"""What an H100 answers."""


def _reserve(nbytes: int, prot: int) -> Any:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    return mmap.mmap(-1, nbytes, flags=flags, prot=prot)


class OfThread(threading.local):
    """The current device of a thread."""

    device = 0


class FakeDriver(Driver):
    """Devices whose memory is the host's, behind addresses of its own.

    Args:
        seed: what draws the order of streams; None: work is done when it is asked for.
        devices: how many.
    """

    fake = True

    def __init__(self, seed: int | None = None, devices: int | None = None) -> None:
        self.devices = devices or _number("FLAMBEAU_EMULATE_CUDA") or 1
        seed = _number("FLAMBEAU_CUDA_SEED") if seed is None else seed
        self._guard = _reserve(SPAN * self.devices, 0)
        self._bytes = _reserve(SPAN * self.devices, mmap.PROT_READ | mmap.PROT_WRITE)
        self.base = _address_of(self._guard)
        self.distance = _address_of(self._bytes) - self.base
        self.next = [self.base + SPAN * index for index in range(self.devices)]
        self.sizes: dict[int, int] = {}
        self.starts: list[int] = []
        self.freed: dict[tuple[int, int], list[int]] = {}
        self.pinned: dict[int, Any] = {}
        self.kernels: dict[int, tuple[Kernel, Any]] = {}
        self.graphs: dict[int, list[Node]] = {}
        self.thread = OfThread()
        self.checks = Checks(self.owner, self.poison) if seed is not None else None
        self.watcher = self.checks
        self.queues = Queues(seed, self.checks, self.devices)

    # ---- memory that is the host's

    def host(self, address: int) -> int:
        """Where the bytes of a device address lie."""
        return address + self.distance

    def owner(self, address: int) -> int | None:
        """The start of the allocation that an address lies in."""
        place = bisect_right(self.starts, address) - 1
        if place < 0 or address >= self.starts[place] + self.sizes[self.starts[place]]:
            return None
        return self.starts[place]

    def device_of(self, address: int) -> int:
        """The device that an address belongs to."""
        return (address - self.base) // SPAN

    def put(self, stream: int, run: Run, accesses: Iterable[Access] = ()) -> None:
        """Put work of the emulation's own into a stream: what stands in for a library does so.

        Args:
            run: does it.
            accesses: what it reads and writes, for the checks.
        """
        self.queues.put(self._at(stream), run, accesses)

    def _at(self, stream: int) -> int:
        """The queue of a stream: each device has a default one, under its index."""
        return stream or self.thread.device

    def poison(self, block: Any) -> None:
        """Fill memory that was given back with ones, when its stream comes that far; nobody can
        take it from a stream that is no more."""
        stream = block.arena.stream
        if not block.address or (stream and stream not in self.queues.streams):
            return
        before, self.thread.device = self.thread.device, self.device_of(block.address)
        self.fill(block.address, POISON, 1, block.nbytes, stream)
        self.thread.device = before

    def leaks(self) -> dict[str, int]:
        """What was made and not given back: counts by kind."""
        found = {
            "allocations": len(self.sizes), "events": len(self.queues.events),
            "streams": len(self.queues.streams) - self.devices, "graphs": len(self.graphs),
            "pinned blocks": len(self.pinned),
        }  # fmt: skip
        return {kind: count for kind, count in found.items() if count}

    # ---- devices

    def device_count(self) -> int:
        """As many as were asked for."""
        return self.devices

    def version(self) -> int:
        """CUDA 13.0."""
        return 13000

    def use(self, index: int) -> None:
        """Make a device current in this thread."""
        self.thread.device = index

    def attribute(self, index: int, number: int) -> int:
        """An attribute, as an H100 has it."""
        return ATTRIBUTES[number]

    def device_name(self, index: int) -> str:
        """The device's name."""
        return "flambeau emulated GPU"

    def uuid(self, index: int) -> bytes:
        """A number of its own."""
        return b"flambeau" + index.to_bytes(8, "big")

    def total_memory(self, index: int) -> int:
        """Bytes that the device says it has."""
        return TOTAL

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        used = sum(size for address, size in self.sizes.items()
                   if self.device_of(address) == self.thread.device)  # fmt: skip
        return TOTAL - CONTEXT - used, TOTAL

    def can_access_peer(self, index: int, peer: int) -> bool:
        """All devices reach one another."""
        return index != peer

    def synchronize(self) -> None:
        """Wait for all streams of the current device."""
        self.queues.wait_for_all(self.thread.device)

    # ---- memory

    def allocate(self, nbytes: int) -> int:
        """The address of new memory; addresses are given again when none are left."""
        wanted = -(-max(nbytes, 1) // GRAIN) * GRAIN
        device = self.thread.device
        if wanted > self.memory_info()[0]:
            raise errors.error(errors.OUT_OF_MEMORY)
        is_large = wanted % LARGE == 0  # these follow one another, as a real driver lays them
        address = -(-self.next[device] // LARGE) * LARGE if is_large else self.next[device]
        if address + wanted > self.base + SPAN * (device + 1):
            before = self.freed.get((device, wanted))
            if not before:
                raise errors.error(errors.OUT_OF_MEMORY)
            address = before.pop(0)
        else:
            self.next[device] = address + wanted + (0 if is_large else GRAIN)
        self.sizes[address] = wanted
        insort(self.starts, address)
        return address

    def free(self, address: int) -> None:
        """Give memory back, when all streams have done with it."""
        if address not in self.sizes:
            raise errors.error(errors.INVALID_VALUE)
        for stream, queue in list(self.queues.streams.items()):
            if queue.capture is None:
                self.queues.wait_for_stream(stream)
        size = self.sizes.pop(address)
        del self.starts[bisect_right(self.starts, address) - 1]
        self.freed.setdefault((self.device_of(address), size), []).append(address)

    def to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy host memory to the device; only pinned memory is read later."""
        access = Access(target, nbytes, True)
        if self.is_pinned(source):
            self.put(stream, lambda: ctypes.memmove(self.host(target), source, nbytes), [access])
            return
        if self.queues.queue(self._at(stream)).capture is not None:
            raise errors.unpinned()
        data = ctypes.string_at(source, nbytes) if self.queues.random else source
        self.put(stream, lambda: ctypes.memmove(self.host(target), data, nbytes), [access])

    def to_host(
        self, target: int, source: int, nbytes: int, stream: int, wait: bool = True
    ) -> None:
        """Copy device memory to the host."""
        waits = wait or not self.is_pinned(target)
        if waits:
            self.queues.refuse_capture(self.queues.queue(self._at(stream)).capture)
        access = Access(source, nbytes, False)
        self.put(stream, lambda: ctypes.memmove(target, self.host(source), nbytes), [access])
        if waits:
            self.queues.wait_for_stream(self._at(stream))

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within device memory."""
        accesses = [Access(source, nbytes, False), Access(target, nbytes, True)]
        self.put(stream, lambda: ctypes.memmove(self.host(target), self.host(source), nbytes),
                 accesses)  # fmt: skip

    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        """Write a number of 1, 2 or 4 bytes `count` times."""

        def run() -> None:
            data = value.to_bytes(width, "little") * count if width > 1 else b""
            if width == 1:
                ctypes.memset(self.host(target), value, count)
            else:
                ctypes.memmove(self.host(target), data, width * count)

        self.put(stream, run, [Access(target, width * count, True)])

    # ---- pinned memory

    def is_pinned(self, address: int) -> bool:
        """Whether an address lies in memory that `allocate_host` gave."""
        return any(start <= address < start + size for start, (size, _) in self.pinned.items())

    def allocate_host(self, nbytes: int) -> int:
        """Memory of the host; to pin it needs a device."""
        buffer = (ctypes.c_char * max(nbytes, 1))()
        address = ctypes.addressof(buffer)
        self.pinned[address] = nbytes, buffer
        return address

    def free_host(self, address: int) -> None:
        """Give such memory back."""
        if self.pinned.pop(address, None) is None:
            raise errors.error(errors.INVALID_VALUE)

    # ---- streams and events

    def new_stream(self, priority: int = 0) -> int:
        """A new queue."""
        stream = next(self.queues.numbers)
        self.queues.streams[stream] = Queue(self.thread.device, priority)
        return stream

    def free_stream(self, stream: int) -> None:
        """Destroy a queue, when its work is done."""
        self.queues.finish(self.queues.queue(self._at(stream)).last)
        del self.queues.streams[stream]

    def stream_done(self, stream: int) -> bool:
        """Whether all work of a stream is done."""
        return self.queues.is_idle(self._at(stream))

    def synchronize_stream(self, stream: int) -> None:
        """Wait for all work of a stream."""
        self.queues.wait_for_stream(self._at(stream))

    def wait_event(self, stream: int, event: int) -> None:
        """Let later work of a stream wait for an event."""
        self.queues.wait(self._at(stream), event)

    def event_handle(self, event: int) -> bytes:
        """The event's number, which this process alone understands."""
        self.queues.event(event)
        return event.to_bytes(64, "little")

    def open_event(self, handle: bytes) -> int:
        """The event of a handle of this process. Raises CudaError for any other."""
        event = int.from_bytes(handle, "little")
        self.queues.event(event)
        return event

    def new_event(
        self, timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> int:
        """A new mark."""
        event = next(self.queues.numbers)
        self.queues.events[event] = Event(timing)
        return event

    def free_event(self, event: int) -> None:
        """Destroy a mark."""
        self.queues.event(event)
        del self.queues.events[event]

    def record(self, event: int, stream: int, external: bool = False) -> None:
        """Put an event into a stream."""
        self.queues.record(event, self._at(stream))

    def event_done(self, event: int) -> bool:
        """Whether all work before the event is done."""
        return self.queues.has_happened(event)

    def synchronize_event(self, event: int) -> None:
        """Wait for all work before the event."""
        self.queues.wait_for_event(event)

    def elapsed(self, start: int, end: int) -> float:
        """Milliseconds between two events."""
        first, second = self.queues.event(start), self.queues.event(end)
        if not (first.timing and second.timing) or first.mark is None or second.mark is None:
            raise errors.error(errors.INVALID_HANDLE)
        if not (first.mark.done and second.mark.done):
            raise errors.error(errors.NOT_READY)
        return (second.mark.time - first.mark.time) * 1e3

    # ---- kernels

    def register(self, kernel: Kernel, writes: Iterable[int] = (),
                 pointers: Iterable[int] | None = None) -> int:  # fmt: skip
        """The number of a kernel that is a function of Python: kernel(grid, threads, shared,
        packed), with the arguments of `launch`; it finds memory by `host`.

        Args:
            kernel: the function.
            writes: which of its arguments, by number, are addresses that it writes to.
            pointers: which are addresses at all; by default every argument that is one.
        """
        number = len(self.kernels) + 1
        given = None if pointers is None else frozenset(pointers)
        self.kernels[number] = kernel, (frozenset(writes), given)
        return number

    def launch(
        self, function: int, grid: tuple[int, ...], threads: int, shared: int, stream: int,
        packed: bytes,
    ) -> None:  # fmt: skip
        """Put a call of a registered kernel into a stream."""
        if function not in self.kernels:
            raise errors.error(errors.INVALID_HANDLE)
        kernel, (writes, pointers) = self.kernels[function]
        accesses = self._accesses(packed, writes, pointers) if self.checks is not None else ()
        self.put(stream, lambda: kernel(grid, threads, shared, packed), accesses)

    def _accesses(self, packed: bytes, writes: frozenset[int], pointers: Any) -> list[Access]:
        """What a launch touches: each of its addresses, to the end of the block there."""
        assert self.checks is not None
        found = []
        for place in range(len(packed) // 8):
            word = int.from_bytes(packed[8 * place : 8 * place + 8], "little")
            is_inside = self.base <= word < self.base + SPAN * self.devices
            if is_inside and (pointers is None or place in pointers):
                room = self.checks.room(word)
                found.append(Access(word, room, place in writes))
        return found

    # ---- graphs

    def begin_capture(self, stream: int, mode: int = 0) -> None:
        """Note what is put into a stream."""
        self.queues.begin_capture(self._at(stream), mode)

    def end_capture(self, stream: int) -> int:
        """The graph of what was noted."""
        return self._graph(self.queues.end_capture(self._at(stream)))

    def _graph(self, nodes: list[Node]) -> int:
        number = next(self.queues.numbers)
        self.graphs[number] = nodes
        return number

    def capture_status(self, stream: int) -> int:
        """What the capture of a stream is at."""
        return self.queues.status(self._at(stream))

    def instantiate(self, graph: int) -> int:
        """The same nodes under another number."""
        return self._graph(self.graphs[graph])

    def launch_graph(self, executable: int, stream: int) -> None:
        """Put the nodes into a stream as one piece of work."""
        nodes = self.graphs[executable]
        accesses = [access for node in nodes for access in node.accesses]
        run = lambda: self.queues.run_graph(nodes)  # noqa: E731
        self.queues.put(self._at(stream), run, accesses, nodes=nodes)

    def print_graph(self, graph: int, path: str) -> None:
        """Write the nodes and their edges to a file."""
        nodes = self.graphs[graph]
        lines = [f'  n{k} [label="{len(node.accesses)} accesses"];' for k, node in enumerate(nodes)]
        lines += [f"  n{nodes.index(other)} -> n{k};" for k, node in enumerate(nodes)
                  for other in node.before]  # fmt: skip
        Path(path).write_text("\n".join(["digraph {", *lines, "}", ""]), encoding="utf-8")

    def free_graph(self, graph: int) -> None:
        """Destroy a graph."""
        del self.graphs[graph]

    def free_executable(self, executable: int) -> None:
        """Destroy what was instantiated."""
        del self.graphs[executable]

    # ---- tools

    def profiler_start(self) -> None:
        """No profiler looks."""

    def profiler_stop(self) -> None:
        """No profiler looks."""


def _number(name: str) -> int | None:
    """A number in the environment."""
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


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
