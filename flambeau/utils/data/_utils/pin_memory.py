"""`torch.utils.data._utils.pin_memory`: batches in pinned memory."""

from __future__ import annotations

from typing import Any

from flambeau.utils.data.pinning import pinned

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """A batch with its tensors pinned; `device` is deprecated in PyTorch and not looked at."""
    return pinned(data)
