"""Automatic differentiation: `backward`, `grad`, grad modes, custom functions, hooks."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

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

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]


class Variable:
    """The old name of Tensor: `Variable(tensor, requires_grad=False)` returns the tensor."""

    _execution_engine = ExecutionEngine()

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: Any = None) -> Any:
        result = data.detach()
        return result.requires_grad_(requires_grad)


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
