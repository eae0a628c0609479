"""`torch.utils.dlpack`: memory shared with other libraries by the DLPack protocol."""

from __future__ import annotations

from flambeau._tensor.dlpack_types import DLDeviceType
from flambeau._tensor.interop import from_dlpack, to_dlpack  # noqa: F401

__all__ = ["DLDeviceType", "from_dlpack"]
