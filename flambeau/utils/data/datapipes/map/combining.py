"""`Concater` and `Zipper`: several pipes as one."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Any

from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import MapDataPipe

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]


def _check(datapipes: tuple[Any, ...]) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(one, MapDataPipe) for one in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(one, "__len__") for one in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """One pipe after the other."""

    def __init__(self, *datapipes: Any) -> None:
        _check(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        ends = list(accumulate(map(len, self.datapipes)))
        place = bisect_right(ends, index)
        if place == len(ends):
            raise IndexError(f"Index {index} is out of range.")
        return self.datapipes[place][index - (ends[place - 1] if place else 0)]

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


def _item(pipe: Any, index: Any) -> Any:
    """An item, or an IndexError that names the pipe."""
    try:
        return pipe[index]
    except IndexError as error:
        raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes "
                         f"{pipe}.") from error  # fmt: skip


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of an item of each pipe."""

    def __init__(self, *datapipes: Any) -> None:
        _check(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(_item(pipe, index) for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))
