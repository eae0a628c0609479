"""`torch.jit._trace`."""

from __future__ import annotations


def is_tracing() -> bool:
    return False  # a program that runs is not being traced
