"""`torch.cuda.FloatTensor`, `torch.cuda.FloatStorage` and their like: kinds of things on a GPU.

On this machine there is none: nothing is an instance, and what is called raises PyTorch's error.
"""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from flambeau._core import dtype as dt
from flambeau._ops.factories.typed import NAMES
from flambeau._tensor.typed_storage import CLASS_NAMES

STORAGES = {name: element for element, name in CLASS_NAMES.items()}


class _OnGPU(type):
    """A kind of which there are no instances here."""

    element: dt.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return False

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"

    @property
    def dtype(cls) -> dt.dtype:
        """The element type."""
        return cls.element


class _TensorOnGPU(_OnGPU):
    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled."
        )


class _StorageOnGPU(_OnGPU):
    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError("Torch not compiled with CUDA enabled")

    def from_buffer(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Not for memory of a GPU."""
        raise RuntimeError("from_buffer: Not available for CUDA storage")


@functools.cache
def older_type(name: str) -> Any:
    """`torch.cuda.<name>`, or None where there is no such type."""
    if name in NAMES:
        return _TensorOnGPU(name, (), {"element": NAMES[name], "__module__": "torch.cuda"})
    if name in STORAGES:
        return _StorageOnGPU(name, (), {"element": STORAGES[name], "__module__": "torch.cuda"})
    return None
