"""`Concater`, `Zipper`, `Multiplexer`: several pipes as one. `Forker`, `Demultiplexer`: one as
several, which share a buffer."""

from __future__ import annotations

import copy as copies
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import FEEDBACK, IterDataPipe, text_of
from flambeau.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = [
    "ConcaterIterDataPipe", "DemultiplexerIterDataPipe", "ForkerIterDataPipe",
    "MultiplexerIterDataPipe", "ZipperIterDataPipe",
]  # fmt: skip


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """One pipe after the other."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(one, IterDataPipe) for one in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for one in self.datapipes:
            yield from one

    def __len__(self) -> int:
        return sum(len(one) for one in self.datapipes)  # type: ignore[arg-type]


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of an item of each pipe, as long as all have one."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not all(isinstance(one, IterDataPipe) for one in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield from zip(*[iter(one) for one in self.datapipes], strict=False)

    def __len__(self) -> int:
        return min(len(one) for one in self.datapipes)  # type: ignore[arg-type]


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """An item of each pipe in turn, until one has no more."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for items in zip(*[iter(one) for one in self.datapipes], strict=False):
            yield from items

    def __len__(self) -> int:
        return min(len(one) for one in self.datapipes) * len(self.datapipes)  # type: ignore[arg-type]


COPIES: dict[Any, Callable[[Any], Any]] = {
    None: lambda item: item, "shallow": copies.copy, "deep": copies.deepcopy,
}  # fmt: skip
UNLIMITED = "Unlimited buffer size is set for `{}`, please be aware of OOM at random places"
NOT_EXHAUSTED = (
    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer "
    "and each child DataPipe will read from the start again."
)


def _check_count(num_instances: int) -> None:
    if num_instances < 1:
        raise ValueError("Expected `num_instances` larger than 0, but "
                         f"{num_instances} is found")  # fmt: skip


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """The same items several times.

    Args:
        buffer_size: how far one of the pipes may be ahead; -1: as far as it likes.
        copy: None, "shallow" or "deep": what each of them gets.
    """

    def __new__(cls, datapipe: IterDataPipe, num_instances: int, buffer_size: int = 1000,
                copy: Any = None) -> Any:  # fmt: skip
        _check_count(num_instances)
        if num_instances == 1:
            return datapipe
        container = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(container, place) for place in range(num_instances)]


class _Shared(IterDataPipe):
    """The pipe that is read, and what those read from it that share it."""

    main_datapipe: Any
    num_instances: int
    buffer_size: int
    word: str

    def _start(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int) -> None:
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        if buffer_size < 0:
            warnings.warn(UNLIMITED.format(self.word), UserWarning, stacklevel=4)
        self.buffer_size = buffer_size
        self.generation = 0
        self.reset()

    def reset(self) -> None:
        """Everything from the start."""
        self.source: Any = None
        self.done = False
        self.generation += 1
        self.begun: set[int] = set()

    def start(self, place: int) -> int:
        """Let one of those that share begin; the number of the pass that it is part of."""
        if place in self.begun:
            if not self._all_done():
                warnings.warn(NOT_EXHAUSTED, UserWarning, stacklevel=4)
            self.reset()
        self.begun.add(place)
        if self.source is None:
            self.source = iter(self.main_datapipe)
        return self.generation

    def _all_done(self) -> bool:
        return self.done

    def take(self, place: int) -> Any:
        """The next item for one of those that share; StopIteration at the end."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.main_datapipe)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "source": None, "begun": set()}


class _ForkerIterDataPipe(_Shared):
    word = "fork"

    def __init__(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int = 1000,
                 copy: Any = None) -> None:  # fmt: skip
        if copy not in COPIES:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, "
                             "`shallow` or `deep`.")  # fmt: skip
        self.copied = COPIES[copy]
        self._start(datapipe, num_instances, buffer_size)

    def reset(self) -> None:
        super().reset()
        self.buffer: deque[Any] = deque()
        self.first = 0  # the number of the buffer's first item
        self.next = [0] * self.num_instances

    def _all_done(self) -> bool:
        return self.done and min(self.next) == self.first + len(self.buffer)

    def take(self, place: int) -> Any:
        number = self.next[place]
        if number == self.first + len(self.buffer):
            if self.done:
                raise StopIteration
            if (
                0 <= self.buffer_size < len(self.buffer) + 1
                and min(self.next) == self.first < number
            ):
                raise BufferError("ForkerIterDataPipe buffer overflow,buffer size "
                                  f"{self.buffer_size} is insufficient.")  # fmt: skip
            try:
                self.buffer.append(next(self.source))
            except StopIteration:
                self.done = True
                raise
        item = self.buffer[number - self.first]
        self.next[place] += 1
        while self.buffer and min(self.next) > self.first:
            self.buffer.popleft()
            self.first += 1
        return self.copied(item)


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Items that go to one of several pipes, by what a function says of them.

    Args:
        classifier_fn: the number of the pipe, or None, which is an error unless `drop_none`.
        buffer_size: how many items may wait; -1: as many as there are.
    """

    def __new__(cls, datapipe: IterDataPipe, num_instances: int,
                classifier_fn: Callable[[Any], int | None], drop_none: bool = False,
                buffer_size: int = 1000) -> Any:  # fmt: skip
        _check_count(num_instances)
        _check_unpickable_fn(classifier_fn)
        container = _DemultiplexerIterDataPipe(
            datapipe, num_instances, classifier_fn, drop_none, buffer_size
        )
        return [_ChildDataPipe(container, place) for place in range(num_instances)]


class _DemultiplexerIterDataPipe(_Shared):
    word = "demux"

    def __init__(self, datapipe: IterDataPipe, num_instances: int,
                 classifier_fn: Callable[[Any], int | None], drop_none: bool,
                 buffer_size: int) -> None:  # fmt: skip
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none
        self._start(datapipe, num_instances, buffer_size)

    def reset(self) -> None:
        super().reset()
        self.waiting: list[deque[Any]] = [deque() for _ in range(self.num_instances)]

    def _all_done(self) -> bool:
        return self.done and not any(self.waiting)

    def take(self, place: int) -> Any:
        if self.waiting[place]:
            return self.waiting[place].popleft()
        while not self.done:
            try:
                item = next(self.source)
            except StopIteration:
                self.done = True
                break
            chosen = self.classifier_fn(item)
            if chosen is None and self.drop_none:
                continue
            if chosen is None or not 0 <= chosen < self.num_instances:
                raise ValueError("Output of the classification fn should be between 0 and "
                                 f"{self.num_instances - 1}. {chosen} is returned.")  # fmt: skip
            if chosen == place:
                return item
            if 0 <= self.buffer_size <= sum(map(len, self.waiting)):
                raise BufferError("DemultiplexerIterDataPipe buffer overflow, buffer size "
                                  f"{self.buffer_size} is insufficient.")  # fmt: skip
            self.waiting[chosen].append(item)
        raise StopIteration

    def __len__(self) -> int:
        raise TypeError


class _ChildDataPipe(IterDataPipe):
    """One of the pipes that share another."""

    def __init__(self, main_datapipe: _Shared, instance_id: int) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator[Any]:
        return _Part(self.main_datapipe, self.instance_id)

    __iter__.of_one_reader = True  # type: ignore[attr-defined]  # the shared pipe looks to that

    def __len__(self) -> int:
        return len(self.main_datapipe)


class _Part:
    """One pass over one of the pipes."""

    def __init__(self, shared: _Shared, place: int) -> None:
        self.shared = shared
        self.place = place
        self.generation = shared.start(place)

    def __iter__(self) -> _Part:
        return self

    def __next__(self) -> Any:
        if self.generation != self.shared.generation:
            raise RuntimeError("This iterator has been invalidated, because a new iterator has "
                               "been created from one of the ChildDataPipes of "
                               f"{text_of(self.shared)}.{FEEDBACK}")  # fmt: skip
        return self.shared.take(self.place)
