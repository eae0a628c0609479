"""Arrays in pinned memory of the host, from which copies to a GPU need not wait."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from flambeau._core.device import device, thread
from flambeau._core.layout import is_dense
from flambeau._runtime.cpu import address, element_strides
from flambeau._runtime.cuda import pinned


def memory(nbytes: int) -> np.ndarray:
    """Pinned memory as bytes; it goes back to its pool with the last array that lies in it."""
    block = pinned.HostBlock(nbytes)
    buffer: Any = (ctypes.c_char * block.size).from_address(block.address)
    buffer.block = block
    return np.ndarray((nbytes,), np.uint8, buffer)


def is_pinned(data: np.ndarray) -> bool:
    """Whether an array lies in pinned memory."""
    return bool(pinned.starts) and pinned.is_pinned(address(data))


def pinned_copy(data: np.ndarray) -> np.ndarray:
    """The same elements in pinned memory, with the same strides where they lie side by side."""
    if not is_dense(data.shape, element_strides(data)) or any(step < 0 for step in data.strides):
        data = np.ascontiguousarray(data).reshape(data.shape)
    result = np.ndarray(data.shape, data.dtype, memory(data.nbytes).data, 0, data.strides)
    result[...] = data
    return result


def wanted(data: Any, place: device | None) -> Any:
    """An array for the tensor that is being made on a device, None for the CPU, in pinned memory
    (`refuse_pinned`).

    Raises:
        RuntimeError: it is one of a GPU.
    """
    thread.pins = False
    if place is not None or data.__class__ is not np.ndarray:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    return pinned_copy(data)
