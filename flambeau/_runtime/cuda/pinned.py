"""Pinned memory of the host: the GPU copies from and to it while the program goes on.

Pinning is slow, so blocks are kept for reuse, by sizes that are powers of two. A block that the
device may still read (`used_by`) is only taken again after the events that were recorded then.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right, insort

from flambeau._runtime.cuda.memory import Current, recorded, running

KINDS = ("current", "peak", "allocated", "freed")
NAMES = ("allocation", "allocated_bytes", "active", "active_bytes", "segment", "reserved_bytes")
COUNTS = {f"{name}.{kind}": 0 for name in NAMES for kind in KINDS}
COUNTS |= {f"num_host_{name}": 0 for name in ("alloc", "free")}
NANOSECONDS: dict[str, list[int]] = {"alloc": [], "free": []}
"""How long the driver took, each time."""

sizes: dict[int, int] = {}
"""Address -> bytes of every block that the driver pinned."""
starts: list[int] = []
"""The addresses, sorted."""
free: dict[int, list[int]] = {}
"""Size -> addresses that wait for a request."""
events: dict[int, list[tuple[int, int]]] = {}
"""Address -> the events after the copies that use it, each with its device."""
lock = threading.RLock()


def _count(name: str, delta: int) -> None:
    now = COUNTS[f"{name}.current"] = COUNTS[f"{name}.current"] + delta
    COUNTS[f"{name}.peak"] = max(COUNTS[f"{name}.peak"], now)
    COUNTS[f"{name}.allocated" if delta > 0 else f"{name}.freed"] += abs(delta)


class HostBlock:
    """Pinned memory, `address` to `address + nbytes`; it goes back to the pool when it dies."""

    __slots__ = ("__weakref__", "address", "nbytes", "size")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.size = 1 << max(nbytes - 1, 511).bit_length()
        with lock:
            self.address = _taken(self.size)
            _count("active", 1)
            _count("active_bytes", self.size)

    def __del__(self) -> None:
        with lock:
            free.setdefault(self.size, []).append(self.address)
            _count("active", -1)
            _count("active_bytes", -self.size)


def _taken(size: int) -> int:
    waiting = free.get(size, [])
    for address in waiting:
        if _is_done(address):
            waiting.remove(address)
            return address
    start = time.perf_counter_ns()
    address = running().allocate_host(size)
    NANOSECONDS["alloc"].append(time.perf_counter_ns() - start)
    sizes[address] = size
    insort(starts, address)
    COUNTS["num_host_alloc"] += 1
    for name, amount in zip(NAMES, (1, size, 0, 0, 1, size), strict=True):
        if amount:
            _count(name, amount)
    return address


def _is_done(address: int) -> bool:
    """Whether no copy uses a block any more."""
    for event, device in list(events.get(address, ())):
        if not running().event_done(event):
            return False
        events[address].remove((event, device))
        running().free_event(event)
    return True


def block_of(address: int) -> int | None:
    """The start of the pinned block that an address lies in, None where there is none."""
    place = bisect_right(starts, address) - 1
    if place < 0 or address >= starts[place] + sizes[starts[place]]:
        return None
    return starts[place]


def is_pinned(address: int) -> bool:
    """Whether an address lies in pinned memory."""
    return block_of(address) is not None


def used_by(address: int, device: int, stream: int) -> None:
    """A copy in a stream uses pinned memory: it is not handed out again before that is done."""
    start = block_of(address)
    if start is not None:
        with lock:
            event = recorded(running(device), stream)
            events.setdefault(start, []).append((event, device))
            running(Current.device)


def empty_cache() -> None:
    """Give the blocks that are kept for reuse back to the system."""
    with lock:
        for size, addresses in free.items():
            for address in [found for found in addresses if _is_done(found)]:
                addresses.remove(address)
                del sizes[address], starts[bisect_right(starts, address) - 1]
                start = time.perf_counter_ns()
                running().free_host(address)
                NANOSECONDS["free"].append(time.perf_counter_ns() - start)
                COUNTS["num_host_free"] += 1
                for name, amount in zip(NAMES, (1, size, 0, 0, 1, size), strict=True):
                    if amount:
                        _count(name, -amount)


def statistics() -> dict[str, int]:
    """The counters by PyTorch's names; times in microseconds."""
    found = dict(COUNTS)
    for name, times in NANOSECONDS.items():
        micros = [spent // 1000 for spent in times] or [0]
        total = sum(micros)
        numbers = {"total": total, "max": max(micros), "min": min(micros), "count": len(times),
                   "avg": total // len(micros)}  # fmt: skip
        found |= {f"host_{name}_time.{kind}": number for kind, number in numbers.items()}
    return found


def reset_peaks() -> None:
    """Let the peaks begin again at what is in use now."""
    for name in NAMES:
        COUNTS[f"{name}.peak"] = COUNTS[f"{name}.current"]


def reset_sums() -> None:
    """Let the sums begin again at 0."""
    for name in NAMES:
        COUNTS[f"{name}.allocated"] = COUNTS[f"{name}.freed"] = 0
    COUNTS["num_host_alloc"] = COUNTS["num_host_free"] = 0
    for times in NANOSECONDS.values():
        times.clear()
