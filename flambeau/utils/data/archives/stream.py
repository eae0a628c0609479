"""What datasets in archives have in common: paths, order, reading, errors, going on."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flambeau.utils.data.archives.order import Order, Pass, Resumable, Shuffle
from flambeau.utils.data.archives.sources import SourceError, opened
from flambeau.utils.data.dataset import IterableDataset
from flambeau.utils.data.worker_info import get_worker_info

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
OPEN_AT_ONCE = 8
"""Files that a worker keeps open."""


def expanded(urls_or_paths: Any) -> list[str]:
    """The paths that are meant: one, several, or with a range of numbers, `{000..007}`."""
    if isinstance(urls_or_paths, (str, os.PathLike)):
        urls_or_paths = [urls_or_paths]
    found: list[str] = []
    for path in map(os.fspath, urls_or_paths):
        match = RANGE.search(path)
        if match is None:
            found.append(path)
            continue
        first, last = match.groups()
        for number in range(int(first), int(last) + 1):
            rest = f"{path[: match.start()]}{number:0{len(first)}}{path[match.end() :]}"
            found += expanded(rest)
    if not found:
        raise ValueError("at least one path is needed")
    return found


class ArchiveDataset(Resumable, IterableDataset[Any]):
    """Samples that are read in the order of a pass; subclasses say where they lie and read one."""

    def __init__(
        self,
        urls_or_paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        shuffle: int,
        seed: int,
        rank: int,
        world_size: int,
        on_error: str,
        transform: Callable[[Any], Any] | None,
    ) -> None:
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error should be 'raise' or 'skip', but got {on_error!r}")
        if not 0 <= rank < world_size:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {world_size - 1}]"
            )
        if shuffle < 0:
            raise ValueError(f"shuffle should be the size of a buffer, but got {shuffle}")
        self.paths = expanded(urls_or_paths)
        self.shuffle = Shuffle(shuffle > 0, shuffle, seed)
        self.rank, self.world_size = rank, world_size
        self.on_error, self.transform = on_error, transform
        self.skipped = 0
        self.indices = [self._index(path) for path in self.paths]

    def _index(self, path: str) -> Any:
        source = opened(path)
        try:
            return self.index_of(source)
        finally:
            source.close()

    def counts(self) -> list[int]:
        """How many samples each file has."""
        return [len(index) for index in self.indices]

    # ---- what subclasses know

    def index_of(self, source: Any) -> Any:
        """Where the samples of a file lie, as many as it has."""
        raise NotImplementedError

    def sample(self, source: Any, file: int, number: int) -> Any:
        """One sample of a file."""
        raise NotImplementedError

    # ---- a pass

    def __len__(self) -> int:
        """The samples of this rank."""
        total = sum(self.counts())
        return total * (self.rank + 1) // self.world_size - total * self.rank // self.world_size

    def batches(self, size: int, drop_last: bool, workers: int) -> int:
        """How many batches a loader gives in a whole pass: each worker ends with one that may be
        incomplete.
        """
        total, consumers = len(self), max(workers, 1)
        stretches = [total * (k + 1) // consumers - total * k // consumers
                     for k in range(consumers)]  # fmt: skip
        return sum(n // size if drop_last else -(-n // size) for n in stretches)

    def __iter__(self) -> Iterator[Any]:
        """The samples of the worker that asks."""
        info = get_worker_info()
        number, consumers = (0, 1) if info is None else (info.id, info.num_workers)
        self.running = Samples(self, self.next_pass(), number, consumers)
        return self.running

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "running": None}

    # ---- going on

    def state_dict(self) -> dict[str, Any]:
        """How far the running pass is, as plain data for `load_state_dict`; of samples that a
        loader has fetched ahead, those that it has given count. Between passes, that of the next.
        """
        return {**super().state_dict(), "rank": self.rank, "world_size": self.world_size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was called, with any number of workers.

        Raises:
            ValueError: not a state of such a dataset, or that of another rank.
        """
        super().load_state_dict(state)
        there = state.get("rank", self.rank), state.get("world_size", self.world_size)
        if there != (self.rank, self.world_size):
            self.current = None
            raise ValueError(
                f"the state is that of rank {there[0]} of {there[1]}, "
                f"not of rank {self.rank} of {self.world_size}"
            )


class Samples(Iterator[Any]):
    """A consumer's samples of a pass, from files that are opened as they are needed."""

    ended = False

    def __init__(self, dataset: ArchiveDataset, one: Pass, number: int, consumers: int) -> None:
        self.dataset, self.one = dataset, one
        self.number, self.consumers = number, consumers
        order = Order(dataset.counts(), dataset.shuffle, one, dataset.rank, dataset.world_size)
        self.order = order.of(number, consumers)
        self.taken = self.skipped = 0
        self.files: dict[int, Any] = {}

    def reached(self) -> tuple[int, int]:
        """How many samples were taken, and how many of them left out."""
        return self.taken, self.skipped

    def place(self) -> Pass | None:
        """The rest of the pass, where this is its only consumer; None at its end."""
        return None if self.ended else self.one.after(1, [self.taken])

    def __next__(self) -> Any:
        for file, number in self.order:
            self.taken += 1
            try:
                return self._read(file, number)
            except Exception:
                if self.dataset.on_error != "skip":
                    raise
                self.skipped += 1
                self.dataset.skipped += 1
        self.close()
        raise StopIteration

    def _read(self, file: int, number: int) -> Any:
        dataset = self.dataset
        where = f"{dataset.paths[file]}, sample {number}"
        try:
            found = dataset.sample(self._opened(file), file, number)
        except SourceError:
            raise
        except Exception as error:
            raise SourceError(f"{where}: {error}") from error
        if dataset.transform is None:
            return found
        try:
            return dataset.transform(found)
        except Exception as error:
            error.add_note(f"The transform failed on {where}.")
            raise

    def _opened(self, file: int) -> Any:
        source = self.files.get(file)
        if source is None:
            if len(self.files) == OPEN_AT_ONCE:
                self.files.pop(next(iter(self.files))).close()
            source = self.files[file] = opened(self.dataset.paths[file])
        return source

    def close(self) -> None:
        """Close the files; the pass has ended."""
        self.ended = True
        while self.files:
            self.files.popitem()[1].close()
