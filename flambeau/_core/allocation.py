"""What PyTorch says where no memory is to be had: NumPy says it in other words."""

from __future__ import annotations

import re
from collections.abc import Sequence

TOO_LARGE = ("array is too big", "Maximum allowed size exceeded", "Maximum allowed dimension")
"""How NumPy's ValueErrors begin where the bytes of an array are beyond what 64 bits count."""
UNITS = {"bytes": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50, "EiB": 60}


class CannotAllocate(RuntimeError, MemoryError):
    """The system has no memory for a tensor: a RuntimeError, as in PyTorch, and what Python calls
    it."""


def in_torch_words(error: Exception) -> Exception | None:
    """The error for a tensor that NumPy made no memory for; None if it failed otherwise."""
    words = str(error)
    if isinstance(error, MemoryError):
        return cannot_allocate(words)
    if isinstance(error, ValueError) and words.startswith(TOO_LARGE):
        return RuntimeError(f"Storage size calculation overflowed ({words})")
    return None


def cannot_allocate(words: str) -> Exception:
    """The error for what a MemoryError of NumPy's says: "Unable to allocate 128. TiB for ..."."""
    found = re.search(r"allocate ([\d.]+) (\w+)", words)
    size = f"about {float(found[1]) * 2 ** UNITS.get(found[2], 0):.0f}" if found else "too many"
    return CannotAllocate(
        f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {size} bytes. "
        f"Error code 12 (Cannot allocate memory)\n{words}"
    )


def overflowed(sizes: Sequence[int]) -> RuntimeError:
    """More bytes than 64 bits count."""
    return RuntimeError(f"Storage size calculation overflowed with sizes={list(sizes)}")
