"""`torch._dynamo.utils`: whether functions can be compiled: they cannot."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing


def is_compile_supported(device_type: Any) -> bool:
    """Whether functions on a kind of device can be compiled: they cannot."""
    return False


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
