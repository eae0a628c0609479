"""`torch.cuda.memory`: how much memory of a GPU is in use, and what can be done about it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._core.device import Cuda
from flambeau._core.missing import lazily
from flambeau._runtime.cuda import memory as runtime
from flambeau._runtime.cuda import pinned, pools
from flambeau._runtime.cuda.memory import Block, Current, running
from flambeau._runtime.cuda.pools import PoolId
from flambeau._runtime.cuda.statistics import Statistics
from flambeau.cuda.devices import index_of
from flambeau.cuda.memory_history import (
    _dump_snapshot,
    _record_memory_history,
    _snapshot,
    memory_snapshot,
)
from flambeau.cuda.memory_table import memory_summary
from flambeau.cuda.nvml import list_gpu_processes
from flambeau.cuda.started import init, unbound

__all__ = [
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete",
    "caching_allocator_disabled", "caching_allocator_enable", "change_current_allocator",
    "empty_cache", "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats",
    "host_memory_stats_as_nested_dict", "list_gpu_processes", "max_memory_allocated",
    "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_host_memory_stats", "reset_peak_memory_stats", "set_per_process_memory_fraction",
    "use_mem_pool",
]  # fmt: skip

ROUTES = (_dump_snapshot, _record_memory_history, _snapshot)
"""Private names of PyTorch that its tutorials use."""


def _index(device: Any) -> int:
    index = index_of(device)
    if not 0 <= index < Cuda.devices():
        raise ValueError("Invalid device argument")
    return index


def _statistics(device: Any) -> Statistics:
    return runtime.allocator(_index(device)).statistics


# ---- statistics


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """The counters of a device's allocator by PyTorch's names; none without a GPU."""
    if not Cuda.devices():
        return OrderedDict()
    owner = runtime.allocator(_index(device))
    with runtime.lock:
        owner.settle()
        found = owner.statistics.listed()
    found["max_split_size"] = owner.settings.max_split_size or -1
    return OrderedDict(sorted(found.items()))


def nested(counters: dict[str, Any]) -> dict[str, Any]:
    """Counters whose names have parts, a dict for every part."""
    found: dict[str, Any] = {}
    for name, count in counters.items():
        *path, last = name.split(".")
        place = found
        for part in path:
            place = place.setdefault(part, {})
        place[last] = count
    return found


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The same, a dict for every part of the names."""
    return nested(memory_stats(device))


def _settled(name: str, kind: str, device: Any) -> int:
    if not Cuda.devices():
        return 0
    with runtime.lock:
        return _statistics(device).value(name, kind)


def memory_allocated(device: Any = None) -> int:
    """Bytes of GPU memory that tensors use."""
    return _settled("allocated_bytes", "current", device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes of GPU memory that tensors used."""
    return _settled("allocated_bytes", "peak", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes of GPU memory in use or kept for reuse."""
    return _settled("reserved_bytes", "current", device)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes of GPU memory in use or kept for reuse."""
    return _settled("reserved_bytes", "peak", device)


def _renamed(old: str, new: str) -> None:
    text = f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`"
    warnings.warn(text, FutureWarning, stacklevel=3)


def memory_cached(device: Any = None) -> int:
    """The old name of `memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The old name of `max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin again at what is in use now. Raises AttributeError without a GPU."""
    if not Cuda.devices():
        unbound("resetPeakMemoryStats")
    with runtime.lock:
        _statistics(device).reset_peaks()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the sums of what was ever allocated and freed begin again at 0. Raises AttributeError
    without a GPU."""
    if not Cuda.devices():
        unbound("resetAccumulatedMemoryStats")
    with runtime.lock:
        _statistics(device).reset_sums()


def _resets_all(name: str) -> None:
    warnings.warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ "
        "peak memory stats.",
        FutureWarning, stacklevel=3,
    )  # fmt: skip


def reset_max_memory_allocated(device: Any = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    _resets_all("reset_max_memory_allocated")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    _resets_all("reset_max_memory_cached")
    reset_peak_memory_stats(device)


def host_memory_stats() -> OrderedDict[str, Any]:
    """The counters of pinned memory of the host; none without a GPU."""
    if not Cuda.devices():
        return OrderedDict()
    return OrderedDict(sorted(pinned.statistics().items()))


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """The same, a dict for every part of the names."""
    return nested(host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    """Let the peaks of pinned memory begin again at what is in use now. Raises AttributeError
    without a GPU."""
    if not Cuda.devices():
        unbound("resetPeakHostMemoryStats")
    pinned.reset_peaks()


def reset_accumulated_host_memory_stats() -> None:
    """Let the sums of pinned memory begin again at 0. Raises AttributeError without a GPU."""
    if not Cuda.devices():
        unbound("resetAccumulatedHostMemoryStats")
    pinned.reset_sums()


# ---- limits


def empty_cache() -> None:
    """Give the GPU memory that is kept for reuse back to the driver."""
    runtime.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a device."""
    init()
    found = running(index_of(device)).memory_info()
    running()
    return found


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let this process have only a share of a device's memory.

    Raises:
        TypeError: it is no float.
        ValueError: it is not between 0 and 1.
    """
    init()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    owner = runtime.allocator(_index(device))
    owner.limit, owner.fraction = int(fraction * owner.total), fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The share of a device's memory that this process may have."""
    init()
    return runtime.allocator(_index(device)).fraction


def get_allocator_backend() -> str:
    """Which allocator is in use: the caching one. Raises AttributeError without a GPU."""
    if not Cuda.devices():
        unbound("getAllocatorBackend")
    return "native"


# ---- memory for other libraries


RAW: dict[int, Block] = {}
"""Address -> the block that `caching_allocator_alloc` gave away."""


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of new memory of a device, of its current stream unless one is given."""
    init()
    index = Cuda.current if device is None else index_of(device)
    handle = getattr(stream, "cuda_stream", stream)
    if handle is not None and not isinstance(handle, int):
        raise TypeError("Invalid type for stream argument, must be `torch.cuda.Stream` or `int` "
                        "representing a pointer to a existing stream")  # fmt: skip
    before = Current.streams.get(index, 0)
    if handle is not None:
        Current.set_stream(index, handle)
    try:
        block = Block(size, index)
    finally:
        Current.set_stream(index, before)
    RAW[block.address] = block
    return block.address


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give memory of `caching_allocator_alloc` back. Raises AttributeError without a GPU."""
    if not Cuda.devices():
        unbound("cudaCachingAllocator_raw_delete")
    if mem_ptr not in RAW:
        raise RuntimeError(f"invalid device pointer: {mem_ptr:#x}")
    del RAW[mem_ptr]


def caching_allocator_enable(value: bool = True) -> None:
    """Keep memory for reuse, or give every block back to the driver at once."""
    if Cuda.devices():
        for index in range(Cuda.devices()):
            runtime.keep(index, value)


@contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Meanwhile blocks that are given back go to the driver at once."""
    caching_allocator_enable(False)
    try:
        yield
    finally:
        caching_allocator_enable(True)


class CUDAPluggableAllocator:
    """An allocator of a shared library. Raises NotImplementedError: flambeau has its own."""

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        raise NotImplementedError("flambeau takes GPU memory by its own allocator only")


def change_current_allocator(allocator: Any) -> None:
    """Take GPU memory by another allocator. Raises NotImplementedError."""
    raise NotImplementedError("flambeau takes GPU memory by its own allocator only")


# ---- private pools


class MemPool:
    """A pool of GPU memory of its own; its segments go back to the driver when it dies."""

    def __init__(self, allocator: Any = None, use_on_oom: bool = False,
                 no_split: bool = False) -> None:  # fmt: skip
        if not Cuda.devices():
            raise RuntimeError("Tried to instantiate dummy base class MemPool")
        init()
        if allocator is not None:
            change_current_allocator(allocator)
        if use_on_oom or no_split:
            raise NotImplementedError("flambeau's MemPool has no use_on_oom and no no_split")
        self.device = Cuda.current
        self._id = pools.new_user()
        pools.retain(self.device, self._id)

    @property
    def id(self) -> PoolId:
        """What tells this pool from others."""
        return self._id

    @property
    def allocator(self) -> None:
        """The allocator that was given: none."""
        return

    def use_count(self) -> int:
        """How many graphs and objects use it."""
        return runtime.allocator(self.device).uses.get(self._id, 0)

    def snapshot(self, include_traces: bool = True) -> Any:
        """The segments of this pool, as `memory_snapshot` lists them."""
        return memory_snapshot(self._id)

    def __del__(self) -> None:
        if hasattr(self, "_id"):
            pools.release(self.device, self._id)


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Take the memory of this thread from a pool."""
    init()
    index = Cuda.current if device is None else index_of(device)
    with pools.routed(index, pool.id):
        yield


__getattr__ = lazily(__name__)
