"""The parameters of one module in one buffer: gathered, and averaged, by one collective.

Behind one another in the buffer lie the parts of one process, each with room for the largest part
that any process has of that parameter. All processes know all lengths, so what is not filled is
never read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import wrap
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed import collectives
from flambeau.distributed.fsdp.parameters import ShardedParameter
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.tensors import array_of
from flambeau.distributed.work import Work

ALIGNMENT = 16
"""Bytes: where the parts of a parameter may begin."""


@dataclass(frozen=True)
class Place:
    """Where the parts of a parameter lie in the buffers, counted in elements or bytes."""

    parameter: ShardedParameter
    start: int
    room: int


class ParameterGroup:
    """The parameters that are gathered together, and their gradients that are averaged together.

    Args:
        parameters: of one mesh.
    """

    def __init__(self, parameters: list[ShardedParameter]) -> None:
        self.parameters = parameters
        self._coming: tuple[np.ndarray, list[Place], Work | None] | None = None

    @property
    def is_gathered(self) -> bool:
        """Whether the modules hold the whole parameters."""
        return all(parameter.is_gathered for parameter in self.parameters)

    @property
    def is_coming(self) -> bool:
        """Whether a gather has begun that nobody has taken."""
        return self._coming is not None

    def gather(self) -> None:
        """Let the modules hold all of each parameter."""
        if self.is_gathered:
            return
        if self._coming is None:
            self.begin(is_async=False)
        self.take()

    @no_grad()
    def begin(self, is_async: bool = True) -> None:
        """Send this process's parts, and receive those of the others, unless that has begun."""
        if self.is_coming or self.is_gathered:
            return
        wanted = [parameter for parameter in self.parameters if not parameter.is_gathered]
        line = wanted[0].line()
        places, size = _places(wanted, line.count, by_bytes=True)
        own = np.empty(size, np.uint8)
        for place in places:
            data = place.parameter.own_part()
            own[place.start : place.start + data.nbytes] = data.reshape(-1).view(np.uint8)
        everybody = np.empty((line.count, size), np.uint8)
        work = collectives.all_gather_into_tensor(
            wrap(everybody.reshape(-1)), wrap(own), line.group, async_op=is_async
        )
        self._coming = everybody, places, work

    @no_grad()
    def take(self) -> None:
        """Wait for the parts, and put parameters together of them."""
        if self._coming is None:
            return
        everybody, places, work = self._coming
        self._coming = None
        if work is not None:
            work.wait()
        for place in places:
            place.parameter.put_together(everybody[:, place.start : place.start + place.room])

    def drop(self) -> None:
        """Forget what is coming: the parts may have changed since they were sent."""
        if self._coming is not None:
            work = self._coming[2]
            self._coming = None
            if work is not None:
                work.wait()

    def release(self) -> None:
        """Let the modules hold this process's parts."""
        self.drop()
        for parameter in self.parameters:
            parameter.release()

    @no_grad()
    def reduce(self, divisor: float | None) -> list[Reduction]:
        """Begin to average the gradients that there are: one collective for each type of numbers.

        Args:
            divisor: what sums are divided by, instead of the number of processes.
        """
        of_type: dict[Any, list[tuple[ShardedParameter, Any]]] = {}
        for parameter in self.parameters:
            grad = parameter.take_grad()
            if grad is not None:
                of_type.setdefault(grad.dtype, []).append((parameter, grad))
        return [Reduction(given, divisor) for given in of_type.values()]


class Reduction:
    """Gradients of one type that are being averaged over the processes."""

    def __init__(self, given: list[tuple[ShardedParameter, Any]], divisor: float | None) -> None:
        line, kind = given[0][0].line(), given[0][1].dtype
        self._places, size = _places([parameter for parameter, _ in given], line.count)
        terms: Any = ops.zeros(line.count * size, dtype=kind)
        rows = array_of(terms).reshape(line.count, size)
        for place, (parameter, grad) in zip(self._places, given, strict=True):
            parameter.take_apart(array_of(grad), rows[:, place.start :])
        self._own: Any = ops.empty(size, dtype=kind)
        self._divisor = divisor
        self._operation = RedOpType.AVG if divisor is None else RedOpType.SUM
        self._work = collectives.reduce_scatter_tensor(
            self._own, terms, self._operation, line.group, async_op=True
        )

    @no_grad()
    def finish(self) -> None:
        """Wait for the sums, and add them to the gradients of the parts."""
        if self._work is not None:
            self._work.wait()
        first = self._places[0].parameter
        for group in first.groups_of_copies():
            collectives.all_reduce(self._own, self._operation, group)
        own = self._own if self._divisor is None else self._own / self._divisor
        for place in self._places:
            place.parameter.add_to_grad(own[place.start :])


def _places(parameters: list[ShardedParameter], count: int,
            by_bytes: bool = False) -> tuple[list[Place], int]:  # fmt: skip
    """Where the parts of parameters lie in a buffer of one process, and how large that is."""
    places, at = [], 0
    for parameter in parameters:
        room = parameter.largest_part(count)
        if by_bytes:
            room = -(-room * parameter.dtype.itemsize // ALIGNMENT) * ALIGNMENT
        places.append(Place(parameter, at, room))
        at += room
    return places, at
