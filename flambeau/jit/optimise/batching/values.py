"""What a batch computes with: the tensors of all rounds, and the integers of all rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor

LARGEST = 2**31
"""Integers of rounds stay below it, so that their sums and products are exact."""


class NotBatchable(Exception):
    """What a loop does has no batched form."""


class Batched:
    """The tensors of all rounds: [rounds, *]."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def rank(self) -> int:
        """Dims of the tensor of one round."""
        return self.tensor._data.ndim - 1


class Rounds:
    """An integer of each round, such as the loop's index: [rounds], int64."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: np.ndarray) -> None:
        if np.abs(numbers).max() >= LARGEST:
            raise NotBatchable("integers that may grow too large for an element")
        self.numbers = numbers

    @property
    def start(self) -> int | None:
        """The first number, if each is one more than the one before it and none is negative."""
        first = int(self.numbers[0])
        whole = first >= 0 and bool((np.diff(self.numbers) == 1).all())
        return first if whole else None


class Counted(Rounds):
    """0, 1, 2, …: the index itself, whose numbers are made when they are asked for."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    @property
    def numbers(self) -> np.ndarray:  # type: ignore[override]
        return np.arange(self.count)

    @property
    def start(self) -> int | None:
        return 0


def depends_on_round(value: Any) -> bool:
    """Whether a value differs from round to round."""
    kind = value.__class__
    if kind is Batched or kind is Counted or kind is Rounds:
        return True
    return isinstance(value, (list, tuple)) and any(map(depends_on_round, value))
