"""`torch.accelerator`: there is none, and what needs one says so in torch's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from flambeau._core.device import device
from flambeau._core.missing import missing

NO_ACCELERATOR = "Cannot access accelerator device when none is available."


def is_available() -> bool:
    """Whether there is an accelerator: no."""
    return False


def device_count() -> int:
    """The number of accelerators: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of accelerator: None."""
    return None


NEED_A_DEVICE = (
    "current_device_idx current_device_index current_stream empty_cache max_memory_allocated "
    "max_memory_reserved memory_allocated memory_reserved set_device_idx set_device_index "
    "synchronize"
).split()


def _needs_a_device(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(NO_ACCELERATOR)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises RuntimeError: it needs an accelerator."
    return function


globals().update({name: _needs_a_device(name) for name in NEED_A_DEVICE})


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
