"""Automatic differentiation: `backward`, `grad`, grad modes, custom functions, hooks."""

from __future__ import annotations

import importlib
import importlib.util
import operator
import warnings
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd import hooks as _hooks  # noqa: F401  (attaches Tensor's gradient methods)
from flambeau.autograd.backward import backward, grad
from flambeau.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from flambeau.autograd.gradcheck import gradcheck, gradgradcheck  # replaces the module's name
from flambeau.autograd.nesting import ExecutionEngine

_LAZY = {
    "Function": "function", "FunctionCtx": "function", "SavedTensor": "saved_fields",
    "detect_anomaly": "saved", "set_detect_anomaly": "saved",
    "set_multithreading_enabled": "grad_mode", "is_multithreading_enabled": "grad_mode",
    "_unsafe_preserve_version_counter": "grad_mode",
    "DeviceType": "profiler", "ProfilerActivity": "profiler", "kineto_available": "profiler",
}  # fmt: skip
_MODULES = ("forward_ad", "function", "functional", "grad_mode", "graph", "gradcheck", "profiler",
            "profiler_util")  # fmt: skip

__all__ = [  # noqa: PLE0604
    "Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "grad_mode",
    "gradcheck", "gradgradcheck", "inference_mode", "no_grad", "set_detect_anomaly",
    "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip


class Variable:
    """The old name of Tensor: `Variable(tensor, requires_grad=False)` returns the tensor.

    >>> import flambeau as torch
    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = ExecutionEngine()

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: Any = False) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if operator.index(volatile):
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                UserWarning,
                stacklevel=2,
            )
        return data.detach().requires_grad_(bool(operator.index(requires_grad)))  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        found = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = found
        return found
    if name == "torch":
        return importlib.import_module(__name__.partition(".")[0])
    if name in _MODULES and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    from flambeau._core.missing import missing

    return missing(__name__, name)
