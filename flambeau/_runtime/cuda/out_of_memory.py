"""The error of an allocator that has no more memory, in PyTorch's words and with its numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flambeau._core.device import OutOfMemoryError

if TYPE_CHECKING:
    from flambeau._runtime.cuda.allocator import Allocator

WAY_OUT = (
    "If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation "
    "for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


def readable(nbytes: int) -> str:
    """Bytes for people: 512 bytes, 1.50 KiB, 2.00 GiB."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes > 1 << power:
            return f"{nbytes / (1 << power):.2f} {unit}"
    return f"{nbytes} bytes"


def report(allocator: Allocator, nbytes: int, wanted: int) -> OutOfMemoryError:
    """What `torch.OutOfMemoryError` says: how much was asked for, and who has the rest."""
    allocator.settle()
    free, total = allocator.driver.memory_info()
    counts = allocator.statistics
    allocated, reserved = counts.now("allocated_bytes"), counts.now("reserved_bytes")
    inside = sum(s.size for s in allocator.segments.values() if s.arena.pool is not None)
    private = f", with {readable(inside)} allocated in private pools (e.g., CUDA Graphs)"
    allowed = f"{readable(allocator.limit)} allowed; " if allocator.limit < allocator.total else ""
    used = readable(total - free)
    return OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {readable(wanted)}. GPU {allocator.index} has a "
        f"total capacity of {readable(total)} of which {readable(free)} is free. "
        f"Process {os.getpid()} has {used} memory in use. Including non-PyTorch memory, this "
        f"process has {used} memory in use. {allowed}Of the allocated memory "
        f"{readable(allocated)} is allocated by PyTorch{private if inside else ''}, and "
        f"{readable(reserved - allocated)} is reserved by PyTorch but unallocated. {WAY_OUT}"
    )
