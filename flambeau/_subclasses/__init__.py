"""`torch._subclasses`: tensors that have a shape, strides, a type and a device, and no numbers."""

from __future__ import annotations

from flambeau._core.absent import absent_class
from flambeau._subclasses.errors import (
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
)
from flambeau._subclasses.fake_tensor import FakeTensor, FakeTensorMode

CrossRefFakeMode = absent_class("torch._subclasses.CrossRefFakeMode")

__all__ = ["CrossRefFakeMode", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode",
           "UnsupportedFakeTensorException"]  # fmt: skip
