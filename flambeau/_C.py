"""`torch._C`: the few names that programs take from PyTorch's extension module."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing
from flambeau._tensor.overriding import disabled as _disabled_torch_function_impl
from flambeau._tensor.overriding import off as DisableTorchFunctionSubclass
from flambeau._tensor.overriding import off_with_modes as DisableTorchFunction
from flambeau._tensor.tensor import Tensor

has_lapack = True
"""Factorizations never ask for LAPACK: NumPy brings its own."""
has_mkl = False
has_spectral = True

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "_disabled_torch_function_impl"]


_TensorMeta = type(Tensor)
"""The class of the class Tensor."""


def _log_api_usage_once(event: str) -> None:
    """Tell whoever counts how PyTorch is used: nobody does."""


def __getattr__(name: str) -> Any:
    if name == "_is_multithreading_enabled":
        from flambeau.autograd.grad_mode import is_multithreading_enabled

        return is_multithreading_enabled
    return missing(__name__, name)
