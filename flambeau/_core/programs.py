"""What one text says to both its readers: Python, which runs it, and TorchScript's compiler."""

from __future__ import annotations

EAGER = True
"""True to Python; to the compiler False, so that programs leave out what it guards."""


def product(sizes: list[int]) -> int:
    """`math.prod` in programs, which have no such function."""
    found = 1
    for size in sizes:
        found *= size
    return found
