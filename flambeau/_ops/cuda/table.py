"""Which rows have kernels for GPUs.

    @on_gpu("softmax.int")
    def softmax(x, dim, dtype): ...

A kernel takes the row's arguments, DeviceArrays (or None) for tensors, and gives a DeviceArray or a
tuple of them; NotImplemented says that it does not know this case: the host computes it then. Those
of rows that write in place take `out=`, the array that is to be written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Kernel = Callable[..., Any]
Made = TypeVar("Made", bound=Kernel)
KERNELS: dict[str, Kernel] = {}
"""Row (`Op.full_name`) -> the function that computes it on a device."""
WRITING: dict[str, Kernel] = {}
"""Row -> the function that writes its result to the row's first argument."""


def on_gpu(*rows: str) -> Callable[[Made], Made]:
    """Register a function as what computes these rows on GPUs."""

    def register(kernel: Made) -> Made:
        KERNELS.update(dict.fromkeys(rows, kernel))
        return kernel

    return register


def writing_on_gpu(*rows: str) -> Callable[[Made], Made]:
    """Register a function as what computes these rows in place."""

    def register(kernel: Made) -> Made:
        WRITING.update(dict.fromkeys(rows, kernel))
        return kernel

    return register
