"""`torch._dynamo.utils`: whether functions can be compiled: they cannot."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily


def is_compile_supported(device_type: Any) -> bool:
    """Whether functions on a kind of device can be compiled: they cannot."""
    return False


__getattr__ = lazily(__name__)
