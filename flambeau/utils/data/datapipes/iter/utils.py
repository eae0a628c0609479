"""`IterableWrapper`: an iterable as a pipe."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Sized
from typing import Any

from flambeau.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The items of an iterable, of which each pass makes a copy unless `deepcopy` is False."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        yield from self._copied() if self.deepcopy else self.iterable

    def _copied(self) -> Iterable[Any]:
        """A copy for one pass, or the iterable itself where it cannot be copied."""
        try:
            return copy.deepcopy(self.iterable)
        except TypeError:
            warnings.warn("The input iterable can not be deepcopied, please be aware of in-place "
                          "modification would affect source data.", stacklevel=3)  # fmt: skip
            return self.iterable

    def __len__(self) -> int:
        if isinstance(self.iterable, Sized):
            return len(self.iterable)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
