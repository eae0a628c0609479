"""`torch._C`: the few names that programs take from PyTorch's extension module."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau._core import modes
from flambeau._core.device import device, get_default_device
from flambeau._core.missing import missing
from flambeau._tensor.overriding import disabled as _disabled_torch_function_impl
from flambeau._tensor.overriding import off as DisableTorchFunctionSubclass
from flambeau._tensor.overriding import off_with_modes as DisableTorchFunction
from flambeau._tensor.tensor import Tensor

has_lapack = True
"""Factorizations never ask for LAPACK: NumPy brings its own."""
has_mkl = False
has_spectral = True
_has_xpu = False

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "_disabled_torch_function_impl"]


TensorBase = Tensor
"""What PyTorch's Tensor inherits its methods from."""
_TensorBase = Tensor
_TensorMeta = type(Tensor)
"""The class of the class Tensor."""


def _log_api_usage_once(event: str) -> None:
    """Tell whoever counts how PyTorch is used: nobody does."""


def _get_default_device() -> str:
    """The default device, as text."""
    return str(get_default_device())


def _get_accelerator(check: bool | None = None) -> device:
    """The kind of accelerator; the CPU where there is none."""
    from flambeau.accelerator import current_accelerator

    return current_accelerator() or device("cpu")


def _get_tracing_state() -> Any:
    """The trace that is being recorded, or None."""
    from flambeau.jit.markers import state

    return state.tracer


def _is_tracing() -> bool:
    """Whether a trace is being recorded."""
    return _get_tracing_state() is not None


def _get_privateuse1_backend_name() -> str:
    """The name of a device from outside: nobody has given one."""
    return "privateuseone"


def _are_functorch_transforms_active() -> bool:
    """Whether a function is being transformed: by `vmap`, `grad`, `jvp` and so on."""
    return bool(modes.stacks.levels)


def _len_torch_function_stack() -> int:
    """How many modes with `__torch_function__` are on."""
    return len(modes.stacks.function_modes)


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode with `__torch_function__` is on."""
    return bool(modes.stacks.function_modes)


def _is_alias_of(self: Any, other: Any) -> bool:
    """Whether two tensors lie in one storage."""
    mine, others = self.untyped_storage(), other.untyped_storage()
    return mine.data_ptr() == others.data_ptr()  # type: ignore[no-any-return]


LATER = {
    "_is_multithreading_enabled": ("autograd.grad_mode", "is_multithreading_enabled"),
    "_LinAlgError": ("linalg", "LinAlgError"),
    "Generator": ("_ops.random.draws", "Generator"),
    "PyTorchFileReader": ("serialization.file_reader", "PyTorchFileReader"),
    "DispatchKey": ("_C._dispatch", "DispatchKey"),
    "DispatchKeySet": ("_C._dispatch", "DispatchKeySet"),
    "_ExcludeDispatchKeyGuard": ("_C._dispatch", "ExcludeDispatchKeyGuard"),
    "Graph": ("jit.ir.graph", "Graph"),
    "Node": ("jit.ir.graph", "Node"),
    "ScriptObject": ("jit.ir.values", "ScriptObject"),
    "Value": ("jit.ir.graph", "Value"),
    "_functorch": ("_C._functorch", ""),
    "_nn": ("_C._nn", ""),
}
"""Names that are imported when they are first asked for: where from."""


def __getattr__(name: str) -> Any:
    if name not in LATER:
        return missing(__name__, name)
    file, attribute = LATER[name]
    module = importlib.import_module(f"flambeau.{file}")
    return getattr(module, attribute) if attribute else module
