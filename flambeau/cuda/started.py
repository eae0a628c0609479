"""Whether there are GPUs, and what is said where there are none. Nothing is started by looking."""

from __future__ import annotations

from typing import NoReturn

from flambeau._core.device import Cuda

NOT_COMPILED = "Torch not compiled with CUDA enabled"


class Started:
    """Whether somebody asked for a device to be made ready."""

    on = False


def init() -> None:
    """Get ready for GPUs; this happens by itself when one is first used.

    Raises:
        AssertionError: there is none.
    """
    if not Cuda.devices():
        raise AssertionError(NOT_COMPILED)
    Started.on = True


def unbound(function: str) -> NoReturn:
    """What PyTorch's build for the CPU says of functions that it lacks."""
    raise AttributeError(f"module 'torch._C' has no attribute '_cuda_{function}'")
