"""`torch.utils.hooks`: the handles of hooks, and hooks that nobody misses in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.autograd.handles import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook as one that files are not expected to hold."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f
