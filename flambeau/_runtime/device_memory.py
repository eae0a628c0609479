"""Memory that counts as that of another device: heaps of their own, told apart by their addresses.

As with CUDA's unified addresses, where a tensor is follows from where its memory lies. An emulated
device is one more heap of the memory pool (`allocator.Pool`) that serves every request, small ones
too; while an operator works there (`On`), NumPy takes all memory from it. So results, views, saved
tensors and gradients are on the device without a field that says so, and the pool's counters are
the device's memory statistics.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._runtime import allocator
from flambeau._runtime import memory_kernels as layout
from flambeau._runtime.cpu import address


class Heap:
    """The memory of one place: `cuda:0`, or `pinned` for pinned memory of the host."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pool = allocator.Pool()
        words = self.pool.words
        words[layout.SMALL] = 1  # whatever its size, it lies between the heap's addresses
        self.base, self.limit = words[layout.BASE], words[layout.LIMIT]

    def __contains__(self, place: int) -> bool:
        return self.base <= place < self.limit

    def statistics(self) -> dict[str, int]:
        """Counts by the names of `torch.cuda.memory_stats`."""
        return {name: self.pool.words[place] for name, place in allocator.COUNTERS.items()}

    def reset_peaks(self) -> None:
        """Let the peaks begin again at what is in use now."""
        words = self.pool.words
        for peak, now in allocator.PEAKS.items():
            words[peak] = words[now]

    def reset_sums(self) -> None:
        """Let the sums of all that was ever taken and freed begin again at 0."""
        for place in (layout.TAKEN, layout.FREED, layout.TAKES, layout.FREES):
            self.pool.words[place] = 0

    def trim(self) -> None:
        """Give the memory that is kept free back to the system."""
        self.pool.trim(self.pool.state, 0)


HEAPS: dict[str, Heap] = {}
"""Place -> its heap; empty while nothing is emulated."""


def add(name: str) -> Heap:
    """The heap of a place, made when it is first asked for.

    Raises:
        OSError: this system has no memory pool (it needs Linux and llvmlite).
    """
    if name not in HEAPS:
        HEAPS[name] = Heap(name)
    return HEAPS[name]


def place_of(data: np.ndarray) -> str:
    """The name of the place where an array lies; "cpu" where no heap has it."""
    start = address(data)
    for heap in HEAPS.values():
        if start in heap:
            return heap.name
    return "cpu"


class On:
    """`with On(name):` new arrays of this thread lie in that place."""

    __slots__ = ("before", "name")

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        allocator.ready()  # else the first launch would put the CPU's pool in place
        heap = HEAPS.get(self.name)
        pool = allocator.Shared.pool if heap is None else heap.pool
        capsule: Any = SYSTEM if pool is None else pool.capsule
        self.before = allocator.set_handler(capsule)

    def __exit__(self, *exc: object) -> None:
        allocator.set_handler(self.before)


SYSTEM = allocator.get_handler()
"""NumPy's own allocator, where this process has no pool."""
