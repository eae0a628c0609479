"""`torch._prims_common`: what libraries ask about the layout of tensors."""

from __future__ import annotations

from typing import Any, TypeAlias

from flambeau._core import layout
from flambeau._core.device import device
from flambeau._core.missing import lazily

DeviceLikeType: TypeAlias = str | device | int
"""What functions take as a device."""


def is_contiguous_or_false(
    a: Any, memory_format: layout.memory_format = layout.contiguous_format
) -> bool:
    """Whether a tensor's elements follow each other in memory."""
    return a.is_contiguous(memory_format=memory_format)  # type: ignore[no-any-return]


__getattr__ = lazily(__name__)
