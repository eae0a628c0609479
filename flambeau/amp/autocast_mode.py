"""`autocast` regions, and what custom autograd functions need in them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from flambeau._core.autocast import kind_of, settings
from flambeau._core.device import Cuda
from flambeau._core.dtype import bfloat16, dtype, float16, float64
from flambeau._tensor.tensor import Tensor
from flambeau.amp import settings as functions

SUPPORTED = (bfloat16, float16)


def is_autocast_available(device_type: str) -> bool:
    """Whether a device type knows autocast."""
    functions.expect("_is_autocast_available", "device_type", 1, device_type, str)
    return kind_of(device_type) is not None


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU for autocast: flambeau has emulated ones only."""
    return Cuda.devices() == 0


def autocast_decorator(autocast_instance: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function run in a region."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return call


class autocast:
    """A region in which operators choose the type of floating-point tensors.

    Products of matrices and convolutions run in `dtype` (on the CPU bfloat16 unless told
    otherwise), losses, FFTs and decompositions in float32, all others in the type they are given.
    A context manager, or a decorator.

    >>> import flambeau as torch
    >>> weight = torch.ones(2, 2, requires_grad=True)
    >>> with torch.autocast("cpu"):
    ...     result = weight @ torch.ones(2)
    >>> result.dtype
    torch.bfloat16
    >>> result.sum().backward()
    >>> weight.grad.dtype
    torch.float32
    """

    def __init__(self, device_type: str, dtype: dtype | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:  # fmt: skip
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.custom_backend_name = "privateuseone"
        self.fast_dtype: Any = dtype
        if dtype is None:
            self.fast_dtype = functions.get_autocast_dtype(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type "
                               f"'{device_type}'")  # fmt: skip
        self._cache_enabled = settings.cache_enabled if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._is_supported() and enabled  # what it is, for the setter

    def _is_supported(self) -> bool:
        """Whether the region can do anything; warns if it cannot."""
        if self.device == "cuda":
            if amp_definitely_not_available():
                warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.",
                              stacklevel=3)  # fmt: skip
                return False
        elif self.fast_dtype not in SUPPORTED:
            name = self.device.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, SUPPORTED))} "
                "currently.",
                stacklevel=3,
            )
            return False
        return True

    def __enter__(self) -> autocast:
        self.prev_cache_enabled = settings.cache_enabled
        self.prev = functions.is_autocast_enabled(self.device)
        self.prev_fastdtype = functions.get_autocast_dtype(self.device)
        self._set(self._enabled, self.fast_dtype, self._cache_enabled)
        functions.autocast_increment_nesting()
        return self

    def __exit__(self, *exc: object) -> None:
        if functions.autocast_decrement_nesting() == 0:
            functions.clear_autocast_cache()
        self._set(self.prev, self.prev_fastdtype, self.prev_cache_enabled)

    def _set(self, enabled: bool, fast_dtype: Any, cache_enabled: bool) -> None:
        functions.set_autocast_enabled(self.device, enabled)
        functions.set_autocast_dtype(self.device, fast_dtype)
        functions.set_autocast_cache_enabled(cache_enabled)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you "
                "mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


# ---- custom autograd functions


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str,
               cast_inputs: dtype | None = None) -> Any:  # fmt: skip
    """Decorate `forward` of an autograd function: note the region for `custom_bwd`.

    With `cast_inputs`, floating-point tensors come in that type and autocast is off inside.
    Outside regions nothing changes.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        enabled = functions.is_autocast_enabled(device_type)
        args[0]._dtype = functions.get_autocast_dtype(device_type)
        args[0]._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return forward(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return forward(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return call


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorate `backward` of an autograd function: it runs in the region that `forward` ran in."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def call(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, args[0]._dtype, enabled=args[0]._fwd_used_autocast):
            return backward(*args, **kwargs)

    return call


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Tensors, and those in containers, in another type; text, arrays and float64 as they are."""
    if isinstance(value, Tensor):
        given: Any = value
        eligible = given.is_floating_point() and given.dtype is not float64
        return given.to(dtype) if eligible and given.device.type == device_type else given
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(key, device_type, dtype): _cast(item, device_type, dtype)
            for key, item in value.items()
        }
    if not isinstance(value, Iterable):
        return value
    items = (_cast(item, device_type, dtype) for item in value)
    return type(value)(items) if isinstance(value, (list, tuple)) else items  # type: ignore[call-arg]
