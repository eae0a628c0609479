"""The names that `torch.cpu.amp` and `torch.cuda.amp` gave to `torch.amp`, with their warnings."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from flambeau._core.dtype import dtype
from flambeau.amp import autocast_mode, grad_scaler


def _warn(old: str, new: str) -> None:
    text = f"`torch.{old}` is deprecated. Please use `torch.{new}` instead."
    warnings.warn(text, FutureWarning, stacklevel=3)


def autocast_for(device_type: str, default: dtype) -> Any:
    """`torch.cuda.amp.autocast` and its like."""

    class autocast(autocast_mode.autocast):
        """`torch.amp.autocast` for one device type."""

        def __init__(self, enabled: bool = True, dtype: Any = default,
                     cache_enabled: bool = True) -> None:  # fmt: skip
            _warn(f"{device_type}.amp.autocast(args...)", f"amp.autocast('{device_type}', args...)")
            super().__init__(device_type, dtype, enabled, cache_enabled)

    return _named(autocast, device_type)


def grad_scaler_for(device_type: str) -> Any:
    """`torch.cuda.amp.GradScaler` and its like."""

    class GradScaler(grad_scaler.GradScaler):
        """`torch.amp.GradScaler` for one device type."""

        def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0,
                     backoff_factor: float = 0.5, growth_interval: int = 2000,
                     enabled: bool = True) -> None:  # fmt: skip
            _warn(f"{device_type}.amp.GradScaler(args...)",
                  f"amp.GradScaler('{device_type}', args...)")  # fmt: skip
            super().__init__(device_type, init_scale, growth_factor, backoff_factor,
                             growth_interval, enabled)  # fmt: skip

    return _named(GradScaler, device_type)


def _named(made: type, device_type: str) -> type:
    made.__module__ = f"flambeau.{device_type}.amp"
    made.__qualname__ = made.__name__
    return made


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """`torch.amp.custom_fwd` for CUDA."""
    _warn("cuda.amp.custom_fwd(args...)", "amp.custom_fwd(args..., device_type='cuda')")
    decorate = functools.partial(autocast_mode.custom_fwd, device_type="cuda")
    return decorate(fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """`torch.amp.custom_bwd` for CUDA."""
    _warn("cuda.amp.custom_bwd(args...)", "amp.custom_bwd(args..., device_type='cuda')")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")


amp_definitely_not_available = autocast_mode.amp_definitely_not_available
