"""`torch.cuda.memory`: what is said of a GPU's memory, under PyTorch's name of the file."""

from __future__ import annotations

from typing import Any

from flambeau.cuda import (
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
)

__all__ = [
    "empty_cache", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
    "memory_allocated", "memory_cached", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_memory_stats",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from flambeau._core.missing import missing

    return missing(__name__, name)
