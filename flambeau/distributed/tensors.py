"""Tensors as arrays that bytes are sent from and read into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, memory_of


def array_of(tensor: Tensor) -> np.ndarray:
    """The array of a tensor in the computer's memory.

    Raises:
        RuntimeError: it is elsewhere.
    """
    data = memory_of(tensor)
    if type(data) is not np.ndarray:
        raise RuntimeError(f"No backend type associated with device type {tensor.device.type}")
    return data


def elements(tensor: Tensor) -> np.ndarray:
    """The elements in one dim: a view where they lie one after another, else a copy."""
    data: Any = tensor
    if tensor._conjugated or tensor._negated:
        data = data.resolve_conj().resolve_neg()
    return np.ascontiguousarray(array_of(data)).reshape(-1)


class Target:
    """The elements of a tensor to be written, in one dim; `write` puts them into the tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self._into = array_of(tensor)
        self._is_view = self._into.flags.c_contiguous
        self.array = np.ascontiguousarray(self._into).reshape(-1)
        self.bytes = as_bytes(self.array)

    def write(self) -> None:
        """Put the elements where they belong."""
        if not self._is_view:
            self._into[...] = self.array.reshape(self._into.shape)


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of an array of one dim without gaps."""
    return array.view(np.uint8)


def check_tensor(value: Any, name: str) -> None:
    """Raise PyTorch's TypeError if an argument is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def check_tensors(values: Any, name: str) -> None:
    """Raise PyTorch's TypeError if an argument is no list of tensors."""
    if not isinstance(values, list) or not all(isinstance(each, Tensor) for each in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )


def check_same_type(*groups: Any) -> None:
    """Raise PyTorch's ValueError if tensors, alone or in lists, are of several types."""
    found = None
    for group in groups:
        for tensor in group if isinstance(group, Sequence) else (group,):
            if found is not None and tensor.dtype is not found:
                raise ValueError(
                    f"Invalid usage of tensors with different dtypesFound {found} and  "
                    f"{tensor.dtype}"
                )
            found = tensor.dtype


def writer(targets: Sequence[Target]) -> Callable[[], None]:
    """A function that writes them all."""

    def write() -> None:
        for target in targets:
            target.write()

    return write
