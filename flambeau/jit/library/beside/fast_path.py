"""`torch.backends.mha`."""

from __future__ import annotations


def get_fastpath_enabled() -> bool:
    return True  # the switch is Python's; programs do not see it
