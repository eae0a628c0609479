"""`torch.accelerator`: there is none, and what needs one says so in torch's words.

Where there is a GPU, or CUDA is emulated, that is the accelerator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import cuda
from flambeau._core.device import Cuda, device
from flambeau._core.missing import lazily

NO_ACCELERATOR = "Cannot access accelerator device when none is available."


def is_available() -> bool:
    """Whether there is an accelerator: an emulated GPU, if any."""
    return Cuda.devices() > 0


def device_count() -> int:
    """The number of accelerators: of emulated GPUs."""
    return Cuda.devices()


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of accelerator; None without any."""
    return device("cuda") if Cuda.devices() else None


NEED_A_DEVICE = (
    "current_device_idx current_device_index current_stream empty_cache max_memory_allocated "
    "max_memory_reserved memory_allocated memory_reserved set_device_idx set_device_index "
    "synchronize"
).split()


AS_CUDA = {"current_device_idx": "current_device", "current_device_index": "current_device",
           "set_device_idx": "set_device", "set_device_index": "set_device"}  # fmt: skip
"""Functions that have another name in `torch.cuda`."""


def _needs_a_device(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        if not Cuda.devices():
            raise RuntimeError(NO_ACCELERATOR)
        return getattr(cuda, AS_CUDA.get(name, name))(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "As `torch.cuda` has it. Raises RuntimeError without an accelerator."
    return function


globals().update({name: _needs_a_device(name) for name in NEED_A_DEVICE})


class device_index:
    """Another current accelerator for a block; None leaves it.

    >>> import flambeau as torch
    >>> with torch.accelerator.device_index(None):
    ...     torch.ones(1).item()
    1.0
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            if not Cuda.devices():
                raise RuntimeError(NO_ACCELERATOR)
            self.prev_idx = cuda.current_device()
            cuda.set_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        if self.idx is not None:
            cuda.set_device(self.prev_idx)


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Bytes that are free on an accelerator, and all that it has.

    Raises:
        RuntimeError: there is none.
    """
    if not Cuda.devices():
        raise RuntimeError(NO_ACCELERATOR)
    return cuda.mem_get_info(device_index)


__getattr__ = lazily(__name__)
