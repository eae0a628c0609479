"""Memory statistics of emulated GPUs: the counters of their heaps, in bytes.

Temporary arrays of operators count as on a GPU, though they are not the same ones.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from flambeau._core.device import Cuda
from flambeau._runtime import device_memory
from flambeau._runtime.device_memory import Heap
from flambeau.cuda.emulation.devices import index_of

POOLS = ("all", "large_pool", "small_pool")
KINDS = ("current", "peak", "allocated", "freed")
SAME = {"active": "allocation", "active_bytes": "allocated_bytes",
        "requested_bytes": "allocated_bytes"}  # fmt: skip
"""Statistics of PyTorch's allocator that one heap has no other numbers for."""
COUNTED = ("allocation", "allocated_bytes", "reserved_bytes", "segment", "inactive_split",
           "inactive_split_bytes")  # fmt: skip
EVENTS = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
          "num_device_free", "max_split_size")  # fmt: skip


def _heap(device: Any) -> Heap:
    index = index_of(device)
    if not 0 <= index < Cuda.devices():
        raise ValueError("Invalid device argument")
    return device_memory.HEAPS[f"cuda:{index}"]


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """The counters by PyTorch's names: `allocated_bytes.all.peak`; one heap has one pool."""
    counts = _heap(device).statistics()
    found: dict[str, int] = {name: counts.get(name, 0) for name in EVENTS}
    for name in (*COUNTED, *SAME):
        for pool in POOLS:
            for kind in KINDS:
                source = f"{SAME.get(name, name)}.{'all' if pool == 'large_pool' else pool}.{kind}"
                found[f"{name}.{pool}.{kind}"] = counts.get(source, 0)
    return OrderedDict(sorted(found.items()))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The same, a dict for every part of the names."""
    nested: dict[str, Any] = {}
    for name, count in memory_stats(device).items():
        *path, last = name.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = count
    return nested


def _statistic(name: str, text: str) -> Any:
    def function(device: Any = None) -> int:
        return _heap(device).statistics()[name]

    function.__doc__ = text
    return function


memory_allocated = _statistic("allocated_bytes.all.current", "Bytes that tensors use.")
max_memory_allocated = _statistic("allocated_bytes.all.peak", "The most bytes that were in use.")
memory_reserved = _statistic("reserved_bytes.all.current", "Bytes in use or kept for reuse.")
max_memory_reserved = _statistic("reserved_bytes.all.peak", "The most bytes that were reserved.")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin again at what is in use now."""
    _heap(device).reset_peaks()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the sums of what was ever allocated and freed begin again at 0."""
    _heap(device).reset_sums()


def empty_cache() -> None:
    """Give the memory that is kept for reuse back to the system."""
    for heap in device_memory.HEAPS.values():
        heap.trim()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a device."""
    heap = _heap(device)
    total = heap.limit - heap.base
    return total - heap.statistics()["reserved_bytes.all.current"], total


def memory_usage(device: Any = None) -> int:
    """The share of a device's memory that is reserved, in percent."""
    free, total = mem_get_info(device)
    return (total - free) * 100 // total


ROWS = {
    "allocated_bytes": "Allocated memory", "reserved_bytes": "GPU reserved memory",
    "inactive_split_bytes": "Non-releasable memory", "allocation": "Allocations",
}  # fmt: skip


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The counters as a table for people; bytes in KiB."""
    stats = memory_stats(device)
    titles = ("Metric", "Cur Usage", "Peak Usage", "Tot Alloc", "Tot Freed")
    rule = "|" + "=" * 75 + "|"
    lines = [rule, f"|{f'CUDA memory summary, device ID {index_of(device)} (emulated)':^75}|", rule]
    lines.append(f"| {titles[0]:<21} | " + " | ".join(f"{t:^10}" for t in titles[1:]) + " |")
    for name, title in ROWS.items():
        numbers = [stats[f"{name}.all.{kind}"] for kind in KINDS]
        is_size = name.endswith("bytes")
        cells = [f"{n / 1024:6.0f} KiB" if is_size else f"{n:10d}" for n in numbers]
        lines.append(f"| {title:<21} | " + " | ".join(f"{cell:>10}" for cell in cells) + " |")
    return "\n".join([*lines, rule]) + "\n"
