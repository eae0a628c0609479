"""Memory of GPUs among libraries: the CUDA array interface, as Numba's documentation describes it
(version 2), given and taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.memory import Block, Current
from flambeau._tensor.device_array import class_of, extent
from flambeau._tensor.tensor import Tensor, wrap

VERSION = 2


def described(tensor: Tensor) -> dict[str, Any]:
    """The description of a tensor's memory for others.

    Raises:
        AttributeError: the memory is not that of a GPU.
        RuntimeError: the tensor requires a gradient, of which others know nothing.
    """
    if not tensor.is_cuda:
        kind = tensor.type()  # type: ignore[attr-defined]
        raise AttributeError(f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {kind} "
                             "If CUDA data is required use tensor.cuda() to copy tensor to device "
                             "memory.")  # fmt: skip
    if tensor.requires_grad and modes.grad.enabled:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad. If "
                           "gradients aren't required, use var.detach() to get Variable that "
                           "doesn't require grad.")  # fmt: skip
    data = tensor._data
    strides = None if tensor.is_contiguous() else data.strides  # type: ignore[attr-defined]
    return {"typestr": data.dtype.str, "shape": data.shape, "strides": strides,
            "data": (address(data) if data.size else 0, False), "version": VERSION}  # fmt: skip


class Foreign(Block):
    """Memory that another library gives back."""

    __slots__ = ()

    def __init__(self, address: int, nbytes: int, device: int) -> None:
        self.address, self.nbytes, self.device = address, nbytes, device

    def __del__(self) -> None:
        """Its owner does."""

    def record_stream(self, stream: int) -> None:
        """Its owner knows of its own streams alone."""


def over_foreign(array: np.ndarray, index: int) -> Tensor:
    """A tensor over memory of a device that an array names, which keeps its owner."""
    data: Any = np.ndarray.view(array, class_of(index))
    low, high = extent(data)
    data.held = Foreign(address(data) + low, high - low, index)
    return wrap(data)


class _Owned:
    """Somebody else's memory, as NumPy takes it; its owner lives as long as the array."""

    def __init__(self, owner: Any, known: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (known["data"][0], False), "shape": tuple(known["shape"]),
            "typestr": known["typestr"], "strides": known.get("strides"), "version": 3,
        }  # fmt: skip


def tensor_over(source: Any) -> Tensor:
    """A tensor over the memory of an object with a `__cuda_array_interface__`, on the current
    device.

    Raises:
        ValueError: the memory is masked.
    """
    known = source.__cuda_array_interface__
    if known.get("mask") is not None:
        raise ValueError("masked arrays of GPUs can't be tensors")
    return over_foreign(np.asarray(_Owned(source, known)), Current.device)
