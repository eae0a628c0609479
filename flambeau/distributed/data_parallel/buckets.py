"""Parameters in buckets: what is reduced together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._runtime.cpu import address
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.versions import bump
from flambeau.distributed.tensors import array_of

FIRST = 1 << 20
"""Bytes of the first bucket: it is small, so that reducing begins early."""
DEFAULT_MEGABYTES = 25
LARGE = 1 << 18
"""Bytes of a gradient from which its operators are worth their call: they may use several threads.
What is smaller NumPy copies at once (benchmarks/distributed_training.py)."""


class GradBucket:
    """The gradients of some parameters, one after another: what a communication hook gets."""

    __module__ = "torch.distributed"

    def __init__(self, index: int, parameters: Sequence[Tensor]) -> None:
        self._index, self._parameters = index, list(parameters)
        sizes = [parameter.numel() for parameter in parameters]
        first = parameters[0]
        self._buffer: Any = ops.zeros(sum(sizes), dtype=first.dtype, device=first.device)
        self._arrays: list[np.ndarray] | None = None
        self._starts = [sum(sizes[:i]) for i in range(len(sizes))]
        self._sizes = sizes
        self._is_last = False

    def index(self) -> int:
        """Its place in the order in which buckets are reduced."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients in one dim."""
        return self._buffer  # type: ignore[no-any-return]

    def set_buffer(self, buffer: Tensor) -> None:
        """Take another tensor for the gradients."""
        self._buffer, self._arrays = buffer, None

    def gradients(self) -> list[Tensor]:
        """A view for each parameter."""
        return [self.view(position) for position in range(len(self._sizes))]

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether it is the last that is reduced."""
        return self._is_last

    def view(self, position: int) -> Tensor:
        """The gradient of one parameter, in the parameter's shape."""
        part = self._buffer.narrow(0, self._starts[position], self._sizes[position])
        return part.view(self._parameters[position].shape)  # type: ignore[no-any-return]

    def _array(self, position: int) -> np.ndarray:
        """The memory of `view`."""
        if self._arrays is None:
            whole = array_of(self._buffer)
            self._arrays = [
                whole[start : start + size].reshape(parameter.shape)
                for start, size, parameter in zip(
                    self._starts, self._sizes, self._parameters, strict=True
                )
            ]
        return self._arrays[position]

    def _put(self, position: int, grad: Tensor, divisor: int) -> None:
        """Take over a gradient, divided; it may lie here already. `no_grad` is for the caller."""
        given = _memory(grad)
        if given is None or given.nbytes >= LARGE or given.dtype != self._array(position).dtype:
            self._put_large(position, grad, divisor)
            return
        there = self._array(position)
        if given.dtype in dt.NUMPY_HALVES:
            there[...] = given if divisor == 1 else given.astype(np.float32) / divisor
        elif divisor != 1:
            np.divide(given, divisor, out=there)
        elif not self._holds(position, given):
            there[...] = given

    def _put_large(self, position: int, grad: Any, divisor: int) -> None:
        view: Any = self.view(position)
        is_here = self._is_view_of(position, grad)
        if divisor != 1 and not is_here and grad.dtype is view.dtype:
            ops.div(grad, divisor, out=view)
            return
        if not is_here:
            view.copy_(grad)
        if divisor != 1:
            view.div_(divisor)

    def _give(self, position: int, grad: Any) -> None:
        """Write a gradient from here into a tensor. `no_grad` is for the caller."""
        into = _memory(grad)
        is_known = grad._requires_grad or grad._root is not None  # autograd has to hear of it
        if into is not None and not is_known and into.nbytes < LARGE:
            there = self._array(position)
            if into.dtype == there.dtype:
                into[...] = there
                bump(grad)
                return
        grad.copy_(self.view(position))

    def _holds(self, position: int, array: np.ndarray) -> bool:
        """Whether an array is the memory of a gradient here."""
        there = self._array(position)
        return address(array) == address(there) and array.shape == there.shape

    def _is_view_of(self, position: int, grad: Any) -> bool:
        """Whether a tensor is the gradient that lies here."""
        if grad is None:
            return False
        memory = _memory(grad)
        if memory is not None:
            return self._holds(position, memory)
        view: Any = self.view(position)
        return bool(grad.data_ptr() == view.data_ptr() and grad.shape == view.shape)

    def _clear(self, position: int) -> None:
        """Nothing came for a parameter."""
        self.view(position).zero_()  # type: ignore[attr-defined]


def _memory(tensor: Tensor) -> np.ndarray | None:
    """The array of a tensor's values, where there is one."""
    data = tensor._data if tensor._stored is None else None
    return data if type(data) is np.ndarray else None


def assign(parameters: Sequence[Tensor], megabytes: float | None) -> list[list[int]]:
    """Numbers of parameters in each bucket.

    Backward reaches the last parameters first, so buckets are filled from the end. All of a bucket
    are of one type.
    """
    limit = int((DEFAULT_MEGABYTES if megabytes is None else megabytes) * (1 << 20))
    first = min(FIRST, limit)
    finished: list[list[int]] = []
    filling: dict[Any, tuple[list[int], int]] = {}
    for number in reversed(range(len(parameters))):
        parameter = parameters[number]
        kind = (parameter.dtype, parameter.device)
        members, size = filling.get(kind, ([], 0))
        members, size = [*members, number], size + parameter.nbytes
        filling[kind] = (members, size)
        if size >= (first if not finished else limit):
            finished.append(members)
            del filling[kind]
    return finished + [members for members, _ in filling.values()]
