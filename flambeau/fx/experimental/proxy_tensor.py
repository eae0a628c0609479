"""`torch.fx.experimental.proxy_tensor`: traces of tensors, of which none is ever recorded."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing


def get_proxy_mode() -> None:
    """The trace that is being recorded: none."""


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
