"""`torch._guards`: whether fake tensors stand in for others. There are none."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing


def active_fake_mode() -> None:
    """The mode in which new tensors are fake: none is ever on."""


def detect_fake_mode(inputs: Any = None) -> None:
    """The mode that fake tensors among some inputs belong to: there are no such tensors."""


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
