"""`torch.mtia`: Meta's accelerators: there are none; what needs one is not here."""

from __future__ import annotations

from flambeau._core.missing import lazily


def is_available() -> bool:
    """Whether there is such a device: no."""
    return False


def device_count() -> int:
    """The number of such devices: 0."""
    return 0


def is_initialized() -> bool:
    """Whether such a device is in use: no."""
    return False


__getattr__ = lazily(__name__)
