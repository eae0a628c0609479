"""`Shuffler`: the items of a pipe with keys in random order, as a pipe without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flambeau.utils.data.datapipes.datapipe import MapDataPipe
from flambeau.utils.data.datapipes.iter.combinatorics import Shuffling

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(Shuffling):
    """All items in random order; `indices` are the keys, 0 and up by default."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._shuffled_indices = self.indices

    def reset(self) -> None:
        """A new order."""
        if self._enabled:
            self._begin()
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __iter__(self) -> Iterator[Any]:
        order = self._shuffled_indices[::-1] if self._enabled else self.indices
        for index in order:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
