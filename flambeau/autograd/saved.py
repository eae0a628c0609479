"""Hooks on saved tensors, and anomaly mode."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._core.device import refuse_pinned
from flambeau._tensor.tensor import Tensor, new
from flambeau.autograd import anomaly


class saved_tensors_hooks:
    """While active, every tensor saved for backward goes through `pack_hook`; backward gets what
    `unpack_hook` makes of it again.

    >>> import flambeau as torch
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
    ...     y = x ** 2
    >>> y.backward()
    >>> x.grad
    tensor([4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        modes.stacks.saved_hooks.append(self.hooks)
        modes.watch.saving += 1

    def __exit__(self, *exc: object) -> None:
        if modes.stacks.saved_hooks:
            modes.stacks.saved_hooks.pop()
            modes.watch.saving -= 1


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors on the CPU: a copy there, brought back for backward.

    `pin_memory`: in pinned memory, if there is a device of `device_type`; there is one only for
    "cpu", which cannot pin.

    >>> import flambeau as torch
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = x ** 2
    >>> y.backward()
    >>> x.grad
    tensor([4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        pins = pin_memory and device_type == "cpu"
        super().__init__(_pinned if pins else _copied, lambda packed: packed)


def _pinned(tensor: Tensor) -> Tensor:
    refuse_pinned("empty", True)
    return _copied(tensor)


def _copied(tensor: Tensor) -> Tensor:
    result = new(Tensor)
    result._data = tensor._data.copy()
    return result  # type: ignore[no-any-return]


class disable_saved_tensors_hooks:
    """While active, `saved_tensors_hooks` raises with the given message.

    >>> import flambeau as torch
    >>> try:
    ...     with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...         with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
    ...             pass
    ... except RuntimeError as error:
    ...     print(error)
    not here
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        if modes.stacks.saved_hooks:
            raise RuntimeError(self.error_message)
        self.before = saved_tensors_hooks.__enter__
        message = self.error_message

        def refuse(_: saved_tensors_hooks) -> None:
            raise RuntimeError(message)

        saved_tensors_hooks.__enter__ = refuse  # type: ignore[method-assign]

    def __exit__(self, *exc: object) -> None:
        saved_tensors_hooks.__enter__ = self.before  # type: ignore[method-assign]


# ---- anomaly mode


class set_detect_anomaly:
    """Switch anomaly mode: errors and NaNs in backward name the forward line that is to blame.

    >>> import flambeau as torch
    >>> with torch.autograd.set_detect_anomaly(True):
    ...     inside = torch.is_anomaly_enabled()
    >>> inside, torch.is_anomaly_enabled()
    (True, False)
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (modes.watch.anomaly, anomaly.Anomaly.check_nan)
        _switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _switch(*self.before)


class detect_anomaly:
    """Anomaly mode for a block of code.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # that backward takes longer
    ...     with torch.autograd.detect_anomaly():
    ...         torch.is_anomaly_enabled()
    True
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (modes.watch.anomaly, anomaly.Anomaly.check_nan)
        _switch(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        _switch(*self.before)


def _switch(mode: bool, check_nan: bool) -> None:
    modes.watch.saving += int(mode) - int(modes.watch.anomaly)
    modes.watch.nodes += int(mode) - int(modes.watch.anomaly)
    modes.watch.anomaly = mode
    anomaly.Anomaly.check_nan = check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode, and whether it looks for NaN gradients.

    >>> import flambeau as torch
    >>> torch.set_anomaly_enabled(True)
    >>> torch.is_anomaly_enabled()
    True
    >>> torch.set_anomaly_enabled(False)
    """
    for position, (name, value) in enumerate((("enabled", enabled), ("check_nan", check_nan)), 1):
        if not isinstance(value, bool):
            raise TypeError(f"set_anomaly_enabled(): argument '{name}' (position {position}) must "
                            f"be bool, not {type(value).__name__}")  # fmt: skip
    _switch(enabled, check_nan)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on.

    >>> import flambeau as torch
    >>> torch.is_anomaly_enabled()
    False
    """
    return modes.watch.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN gradients.

    >>> import flambeau as torch
    >>> torch.is_anomaly_check_nan_enabled()
    True
    """
    return anomaly.Anomaly.check_nan
