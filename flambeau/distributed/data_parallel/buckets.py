"""Parameters in buckets: what is reduced together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor

FIRST = 1 << 20
"""Bytes of the first bucket: it is small, so that reducing begins early."""
DEFAULT_MEGABYTES = 25


class GradBucket:
    """The gradients of some parameters, one after another: what a communication hook gets."""

    __module__ = "torch.distributed"

    def __init__(self, index: int, parameters: Sequence[Tensor]) -> None:
        self._index, self._parameters = index, list(parameters)
        sizes = [parameter.numel() for parameter in parameters]
        first = parameters[0]
        self._buffer: Any = ops.zeros(sum(sizes), dtype=first.dtype, device=first.device)
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
        self._buffer = buffer

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
