"""`torch.xpu`: Intel's GPUs: there are none; what needs one is not here."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

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


def manual_seed(seed: int) -> None:
    """Seed the current device: there is none."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed all devices: there are none."""
    int(seed)


def empty_cache() -> None:
    """Give cached memory back: there is none."""


NOT_COMPILED = "Torch not compiled with XPU enabled"


def set_device(device: Any) -> None:
    """Make a device the current one: AssertionError, since there is none."""
    raise AssertionError(NOT_COMPILED)


def current_device() -> int:
    """The current device: AssertionError, since there is none."""
    raise AssertionError(NOT_COMPILED)


def synchronize(device: Any = None) -> None:
    """Wait for a device: AssertionError, since there is none."""
    raise AssertionError(NOT_COMPILED)


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Statistics of memory: none, since nothing was started."""
    return OrderedDict()


__getattr__ = lazily(__name__)
