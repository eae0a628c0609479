"""Context managers of torch as classes of programs: the source of their methods is compiled.

The methods name `torch`, which the compiler looks up; Python never runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._core.class_homes import own_module

if TYPE_CHECKING:
    import flambeau as torch


class no_grad:  # noqa: N801
    """`torch.no_grad()` in a program."""

    _jit_override_qualname = "__torch__.torch.autograd.grad_mode.no_grad"

    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        torch.set_grad_enabled(self.prev)


class autocast:  # noqa: N801
    """`torch.autocast(…)`: what it does is for the executor to do, here as in torch."""

    _jit_override_qualname = "__torch__.torch.amp.autocast_mode.autocast"

    def __init__(self, device_type: str, dtype: int | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:  # fmt: skip
        self.fast_dtype = torch.get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled
        self.device = device_type

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        return None


class cpu_autocast:  # noqa: N801
    """`torch.cpu.amp.autocast(…)`."""

    _jit_override_qualname = "__torch__.torch.cpu.amp.autocast_mode.autocast"

    def __init__(self, enabled: bool = True, dtype: int = 15, cache_enabled: bool = True) -> None:
        self._enabled = enabled
        self.device = "cpu"
        self.fast_dtype = dtype

    def __enter__(self) -> cpu_autocast:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        return None


class cuda_autocast:  # noqa: N801
    """`torch.cuda.amp.autocast(…)`."""

    _jit_override_qualname = "__torch__.torch.cuda.amp.autocast_mode.autocast"

    def __init__(self, enabled: bool = True, dtype: int = 5, cache_enabled: bool = True) -> None:
        self._enabled = enabled
        self.device = "cuda"
        self.fast_dtype = dtype

    def __enter__(self) -> cuda_autocast:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        return None


class record_function:  # noqa: N801
    """`torch.profiler.record_function(…)`: a label, for the executor to set."""

    _jit_override_qualname = "__torch__.torch.autograd.profiler.record_function"

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        return None


FORMS = {
    "autograd.grad_mode.no_grad": no_grad, "amp.autocast_mode.autocast": autocast,
    "cpu.amp.autocast": cpu_autocast, "cuda.amp.autocast": cuda_autocast,
    "profiler.autograd_profile.record_function": record_function,
}  # fmt: skip

IN_ARCHIVES = {"__torch__.torch.autograd.profiler.record_function": record_function}
"""Classes whose methods in archives call what only PyTorch has."""


def scripted_form(owner: type) -> type:
    """The class that stands for one of torch in programs; the class itself if there is none."""
    package, _, place = f"{own_module(owner)}.{owner.__qualname__}".partition(".")
    return FORMS.get(place, owner) if package == "flambeau" else owner
