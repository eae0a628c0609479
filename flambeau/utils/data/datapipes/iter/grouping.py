"""`Batcher`, `UnBatcher` and `Grouper`: items together, and apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import DataChunk, IterDataPipe
from flambeau.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """So many items in one list; the last may be shorter, unless `drop_last`."""

    def __init__(self, datapipe: IterDataPipe, batch_size: int, drop_last: bool = False,
                 wrapper_class: Any = DataChunk) -> None:  # fmt: skip
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.wrapper_class = datapipe, wrapper_class
        self.batch_size, self.drop_last = batch_size, drop_last

    def __iter__(self) -> Iterator[Any]:
        items = iter(self.datapipe)
        while batch := list(islice(items, self.batch_size)):
            if not (self.drop_last and len(batch) < self.batch_size):
                yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = len(self.datapipe)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The items of lists, and of lists in them: `unbatch_level` deep, -1 as deep as they go."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            yield from self._dive(item, self.unbatch_level)

    def _dive(self, item: Any, level: int) -> Iterator[Any]:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0:
            yield item
        elif isinstance(item, (list, DataChunk)):
            for one in item:
                yield from self._dive(one, level if level == -1 else level - 1)
        elif level == -1:
            yield item
        else:
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )


def _least(guaranteed: int | None, size: int | None, room: int) -> int | None:
    """From how many items on a group may go before it has its size."""
    if size is not None and not 0 < size <= room:
        raise AssertionError("group_size must be > 0 and <= buffer_size")
    if guaranteed is None:
        return size
    if size is None or not 0 < guaranteed <= size:
        raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and "
                             "group_size must be set")  # fmt: skip
    return guaranteed


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Items with the same key in one list.

    Args:
        buffer_size: how many items are held; the largest group then goes, if it is large enough.
        group_size: how many items a group has before it is given out.
        guaranteed_group_size: from how many items on a group may go where the buffer is full.
        drop_remaining: whether smaller groups are left out where the buffer is full.
    """

    def __init__(self, datapipe: IterDataPipe, group_key_fn: Callable[[Any], Any], *,
                 keep_key: bool = False, buffer_size: int = 10000, group_size: int | None = None,
                 guaranteed_group_size: int | None = None,
                 drop_remaining: bool = False) -> None:  # fmt: skip
        _check_unpickable_fn(group_key_fn)
        self.datapipe, self.group_key_fn, self.wrapper_class = datapipe, group_key_fn, DataChunk
        self.keep_key, self.drop_remaining = keep_key, drop_remaining
        self.max_buffer_size, self.group_size = buffer_size, group_size
        self.guaranteed_group_size = _least(guaranteed_group_size, group_size, buffer_size)

    def _remove_biggest_key(self, groups: dict[Any, list[Any]]) -> Any:
        """Take out the largest group; None if it is too small to be given out."""
        key = max(groups, key=lambda one: len(groups[one]))
        size = len(groups[key])
        least = self.guaranteed_group_size
        if least is not None and size < least and not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(groups[key]))
        found = groups.pop(key)
        return None if least is not None and size < least else (key, found)

    def _given(self, key: Any, items: list[Any]) -> Any:
        found = self.wrapper_class(items)
        return (key, found) if self.keep_key else found

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = {}
        held = 0
        for item in self.datapipe:
            key = self.group_key_fn(item)
            groups.setdefault(key, []).append(item)
            held += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                held -= self.group_size
                yield self._given(key, groups.pop(key))
            if held == self.max_buffer_size:
                before = sum(map(len, groups.values()))
                found = self._remove_biggest_key(groups)
                held -= before - sum(map(len, groups.values()))
                if found is not None:
                    yield self._given(*found)
        for key in tuple(groups):
            yield self._given(key, groups.pop(key))
