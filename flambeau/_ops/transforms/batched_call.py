"""A call with tensors that stand for examples, and the batches that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from flambeau._ops.table import dispatch
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.batches import Batch


class Parts(NamedTuple):
    """The results of a call: with the examples along their first dim, or the same for all."""

    values: list[Any]
    is_batched: bool


class Call:
    """A call of a row. Examples lie along the first dim of batches."""

    def __init__(self, level: Batch, op: Op, plain: Callable[..., Any],
                 values: tuple[Any, ...]) -> None:  # fmt: skip
        self.level, self.op, self.plain, self.values = level, op, plain, values
        self.size = level.size
        self.arguments = op.schema.arguments

    def is_batched(self, value: Any) -> bool:
        """Whether a tensor, or one of a list, differs from example to example."""
        if isinstance(value, (list, tuple)):
            return any(self.is_batched(item) for item in value)
        entry = self.level.example(value) if isinstance(value, Tensor) else None
        return entry is not None and entry.is_batched

    def whole(self, value: Any) -> Any:
        """What an argument stands for."""
        if isinstance(value, (list, tuple)) and tensors_in(value):
            return [self.whole(item) for item in value]
        entry = self.level.example(value) if isinstance(value, Tensor) else None
        return value if entry is None else entry.value

    def wholes(self) -> list[Any]:
        """What the arguments stand for."""
        return [self.whole(value) for value in self.values]

    def batch(self, value: Any) -> Any:
        """The batch of a tensor, which is repeated where it is the same for all examples."""
        if isinstance(value, (list, tuple)):
            return [self.batch(item) for item in value]
        whole = self.whole(value)
        if whole is None or self.is_batched(value):
            return whole
        return whole.unsqueeze(0).expand([self.size, *whole.shape])

    def lined_up(self, value: Any, rank: int) -> Any:
        """A batch with dims of size 1 after the first, so that its examples have `rank` dims; what
        is the same for all examples broadcasts as it is."""
        whole = self.whole(value)
        if not self.is_batched(value):
            return whole
        for _ in range(rank - value._data.ndim):
            whole = whole.unsqueeze(1)
        return whole

    def example(self, number: int) -> list[Any]:
        """The arguments of one example."""
        return [self._of_example(value, number) for value in self.values]

    def _of_example(self, value: Any, number: int) -> Any:
        if isinstance(value, (list, tuple)) and tensors_in(value):
            return [self._of_example(item, number) for item in value]
        whole = self.whole(value)
        return whole.select(0, number) if self.is_batched(value) else whole

    def rank(self) -> int:
        """The largest number of dims that an operand has."""
        return max(tensor._data.ndim for tensor in tensors_in(self.values))

    def results(self, values: Iterable[Any], functional: bool = True) -> list[Any]:
        """What the row makes of other arguments, a level further out."""
        found = dispatch.taken_over(self.op, self.plain, tuple(values), functional)
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def stacked(self, rows: list[list[Any]]) -> list[Any]:
        """The results of all examples, put together."""
        return [
            None if parts[0] is None else ops.stack(list(parts))
            for parts in zip(*rows, strict=True)
        ]
