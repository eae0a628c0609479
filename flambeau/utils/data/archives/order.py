"""Who reads which sample, and when: shares of workers and ranks, shuffling, going on in the middle.

All positions are known before anything is read. The files (in random order, with `shuffle`) make
one long line of samples. Each rank has a stretch of it, each of its consumers (its workers) a
stretch of that, which it mixes through a buffer of positions. What a pass has left over is known
from how far each consumer came.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Shuffle:
    """How a pass is mixed: files by (seed, epoch), samples through a buffer. Size 0: not at all."""

    files: bool = False
    buffer: int = 0
    seed: int = 0

    def stream(self, epoch: int, *more: int) -> np.random.Generator:
        """Random numbers for one purpose of an epoch."""
        return np.random.default_rng([self.seed, epoch, *more])


@dataclass
class Pass:
    """One pass over the samples, or the rest of one.

    epoch: its number. before: what earlier parts of the pass have taken, as (consumers, samples
    taken by each), in order.
    """

    epoch: int = 0
    before: list[tuple[int, list[int]]] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """As plain data."""
        return {"epoch": self.epoch, "before": [[n, list(taken)] for n, taken in self.before]}

    @classmethod
    def of(cls, state: Any) -> Pass:
        """From plain data.

        Raises:
            ValueError: it is none of `state`.
        """
        try:
            before = [(int(n), [int(t) for t in taken]) for n, taken in state["before"]]
            found = cls(int(state["epoch"]), before)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the state of a pass: {state!r}") from error
        if any(n < 1 or len(taken) != n or min(taken) < 0 for n, taken in before):
            raise ValueError(f"not the state of a pass: {state!r}")
        return found

    def after(self, consumers: int, taken: list[int]) -> Pass:
        """The same pass after its consumers have taken this many more samples each."""
        before = list(self.before)
        if before and before[-1][0] == consumers:
            _, earlier = before.pop()
            taken = [a + b for a, b in zip(earlier, taken, strict=True)]
        return Pass(self.epoch, [*before, (consumers, taken)])


class Order:
    """The order of a pass over files with these numbers of samples, for one of some ranks."""

    def __init__(self, counts: list[int], shuffle: Shuffle, one: Pass, rank: int = 0,
                 ranks: int = 1) -> None:  # fmt: skip
        self.shuffle, self.epoch = shuffle, one.epoch
        files = list(range(len(counts)))
        if shuffle.files:
            files = shuffle.stream(one.epoch, 0).permutation(len(counts)).tolist()
        self.files = files
        self.ends = list(accumulate(counts[file] for file in files))
        total = self.ends[-1] if self.ends else 0
        self.left: Any = range(total * rank // ranks, total * (rank + 1) // ranks)
        self.round = 0
        self.consumers, self.taken = 0, [0]
        for consumers, taken in one.before:
            self._share_rest()
            self.consumers, self.taken = consumers, taken

    def _share_rest(self) -> None:
        """Make one line of what the last consumers have left over, for others."""
        if self.consumers:
            parts = [self._rest(number) for number in range(self.consumers)]
            self.left = [position for part in parts for position in part]
            self.round += 1
            self.consumers = 0

    def _rest(self, number: int) -> Iterator[int]:
        """What one of the last consumers has not taken."""
        return islice(self._mixed(number, self.consumers), self.taken[number], None)

    def _positions(self, number: int, consumers: int) -> Iterator[int]:
        if consumers == self.consumers:
            return self._rest(number)
        self._share_rest()
        return self._mixed(number, consumers)

    def _mixed(self, number: int, consumers: int) -> Iterator[int]:
        """A consumer's stretch of the line, through its buffer."""
        total = len(self.left)
        stretch = self.left[total * number // consumers : total * (number + 1) // consumers]
        if self.shuffle.buffer <= 1:
            return iter(stretch)
        start = self.left[0] if total else 0
        random = self.shuffle.stream(self.epoch, 1, self.round, number, start)
        return through_buffer(stretch, self.shuffle.buffer, random)

    def of(self, number: int, consumers: int) -> Iterator[tuple[int, int]]:
        """(file, sample in it) of each sample of a consumer, in the order to be read: where the
        same consumers had left off, or a share of what others have left over.
        """
        for position in self._positions(number, consumers):
            place = bisect_right(self.ends, position)
            start = self.ends[place - 1] if place else 0
            yield self.files[place], position - start


def through_buffer(values: Iterable[int], size: int,
                   random: np.random.Generator) -> Iterator[int]:  # fmt: skip
    """The values in random order, none much earlier than `size` places before its turn."""
    source = iter(values)
    buffer = list(islice(source, size))
    for value in source:
        k = int(random.integers(len(buffer)))
        yield buffer[k]
        buffer[k] = value
    random.shuffle(buffer)
    yield from buffer


class Resumable:
    """What datasets in archives share: the pass they are in, and how far each consumer came.

    Loaders call `next_pass` once per pass and hand the result to all workers, where `begin` takes
    it. What iterates is `running`: its `place()` is the rest of the pass, None at its end.
    """

    current: Pass | None = None  # what the next iteration runs; None: the next epoch from its start
    epoch = -1  # of the last pass
    running: Any = None

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next; without, each pass is one more than the last."""
        self.current = Pass(epoch)

    def upcoming(self) -> Pass:
        """The pass that would begin now."""
        return Pass(self.epoch + 1) if self.current is None else self.current

    def next_pass(self) -> Pass:
        """The pass that begins now."""
        found = self.upcoming()
        self.current, self.epoch = None, found.epoch
        return found

    def begin(self, one: Pass) -> None:
        """Make the next iteration run this pass."""
        self.current = one

    def state_dict(self) -> dict[str, Any]:
        """How far the running pass is, as plain data for `load_state_dict`; of samples that a
        loader has fetched ahead, those that it has given count. Between passes, that of the next.
        """
        rest = None
        if self.current is None and self.running is not None:
            rest = self.running.place()
        return (self.upcoming() if rest is None else rest).state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was called, with any number of workers.

        Raises:
            ValueError: not a state of such a dataset.
        """
        self.current = Pass.of(state)
