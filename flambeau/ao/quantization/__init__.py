"""`torch.ao.quantization`: places where numbers become integers, once a model is quantized."""

from __future__ import annotations

from typing import Any

from flambeau._core.absent import absent_class, absent_function
from flambeau._core.missing import missing
from flambeau._tensor.tensor import Tensor
from flambeau.nn import Module

__all__ = ["DeQuantStub", "QuantStub"]

FUNCTIONS = (
    "convert disable_observer enable_observer fuse_modules get_default_qat_qconfig "
    "get_default_qconfig get_default_qconfig_mapping prepare prepare_qat quantize "
    "quantize_dynamic quantize_qat"
).split()
CLASSES = "FakeQuantize MinMaxObserver QConfig QConfigMapping QuantWrapper".split()


class _Stub(Module):
    """A place in a model: before that is quantized, nothing happens here.

    qconfig: how it will be quantized.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The numbers as they are."""
        return x


class QuantStub(_Stub):
    """Where numbers become integers."""


class DeQuantStub(_Stub):
    """Where integers become numbers again."""


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return absent_function(f"torch.ao.quantization.{name}")
    if name in CLASSES:
        return absent_class(f"torch.ao.quantization.{name}")
    return missing(__name__, name)
