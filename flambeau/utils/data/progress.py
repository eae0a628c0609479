"""How far the batches that a loader has given reach, and going on from there.

A pass over samples by index goes on with the same order, drawn again from the random streams as
they were when it began; batches that were given are not fetched. A pass over an archive goes on
where each worker was, or is shared anew among other workers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.utils.data.archives.order import Pass, Resumable
from flambeau.utils.data.sampler import random_seed


class Progress:
    """Of one pass of a loader; this one keeps nothing."""

    begun: Pass | None = None
    """The pass of a resumable dataset, which all workers have to know."""
    ended = False
    worker = -1
    """Which gave the last batch."""

    def __init__(self, base_seed: int) -> None:
        self.base_seed = base_seed

    def indices(self, source: Iterator[Any]) -> Iterator[Any]:
        """What the sampler gives; of a pass that goes on, the rest of it."""
        return source

    def take_over(self) -> None:
        """Be the one that knows how far the dataset is."""

    def gave(self, worker: int, reached: Any) -> None:
        """A batch was given; `reached` is what its worker's iterator says of itself."""

    def finished(self, worker: int, reached: Any) -> None:
        """A worker has nothing more; batches of it may still have to be given."""

    def end(self) -> None:
        """All was given."""
        self.ended = True

    def state(self) -> dict[str, Any]:
        """What has to be kept to go on."""
        raise NotImplementedError


def base_seed_of(loader: Any) -> int:
    """What the workers' seeds are counted from: a new number from the loader's stream; of a pass
    that goes on, the one that was drawn for it."""
    told = getattr(loader, "_told", None) or {}
    return told["base_seed"] if "base_seed" in told else random_seed(loader.generator)


def progress_of(loader: Any, base_seed: int) -> Progress:
    """That of the pass that begins now, which is the one that `load_state_dict` was told."""
    found = Progress(base_seed)
    if not hasattr(loader, "_told"):
        return found  # an object of a library, with the attributes that PyTorch's loader has
    told, loader._told = loader._told, None
    if not loader._is_iterable:
        found = ByIndex(loader, base_seed, told)
    elif isinstance(loader.dataset, Resumable):
        found = OfArchive(loader, base_seed, told)
    loader._progress = found
    return found


def state_of(loader: Any) -> dict[str, Any]:
    """What `DataLoader.state_dict` returns.

    Raises:
        RuntimeError: the dataset is an iterable one that can't go on in the middle.
    """
    if loader._told is not None:
        return dict(loader._told)
    progress: Progress | None = loader._progress
    if progress is not None and progress.ended:
        progress = None
    if not loader._is_iterable:
        return progress.state() if progress else {"given": None, "streams": _states(loader)[1:]}
    _need_resumable(loader)
    if progress is not None:
        return progress.state()
    return {"dataset": loader.dataset.state_dict(), "workers": 0, "worker": -1}


def load_state(loader: Any, state: dict[str, Any]) -> None:
    """What `DataLoader.load_state_dict` does.

    Raises:
        ValueError: not a state of a loader over a dataset of this kind.
        RuntimeError: the dataset is an iterable one that can't go on in the middle.
    """
    keys = {"dataset", "workers", "worker"}
    if loader._is_iterable:
        _need_resumable(loader)
    else:
        keys = {"given", "streams"}
    if not isinstance(state, dict) or not keys <= state.keys():
        raise ValueError(f"not the state of a DataLoader over such a dataset: {state!r}")
    loader._progress = None
    if loader._is_iterable:
        loader.dataset.load_state_dict(state["dataset"])
    elif len(_streams(loader)) != len(state["streams"]) + (state["given"] is None):
        raise ValueError("the state is that of a DataLoader with other generators")
    elif state["given"] is None:
        for stream, kept in zip(_streams(loader)[1:], state["streams"], strict=True):
            stream.set_state(kept.numpy())
        state = None  # type: ignore[assignment]
    loader._told = state


def _need_resumable(loader: Any) -> None:
    if not isinstance(loader.dataset, Resumable):
        raise RuntimeError(
            f"{type(loader.dataset).__name__} can't go on in the middle of a pass; of iterable "
            "datasets, TarDataset and TFRecordDataset can"
        )


# ---- samples by index


def _streams(loader: Any) -> list[Any]:
    """The random streams that an order is drawn from: the global one, the loader's, the
    samplers'."""
    from flambeau._core.generator import default_generator

    found = [default_generator]
    owners = [loader, loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler,
                                                                    "sampler", None)]  # fmt: skip
    for owner in owners:
        generator = getattr(owner, "generator", None)
        if generator is not None and all(generator is not known for known in found):
            found.append(generator)
    return found


def _states(loader: Any) -> list[Any]:
    """As tensors, which files of weights may hold."""
    return [ops.as_tensor(stream.get_state()) for stream in _streams(loader)]


def _in_turn(source: Iterator[Any]) -> Iterator[Any]:
    """What an iterator gives, without another `iter(source)`: a sampler may begin anew by it."""
    while True:
        try:
            index = next(source)
        except StopIteration:
            return
        yield index


def _digest(index: Any) -> int:
    return zlib.crc32(repr(index).encode())


class ByIndex(Progress):
    """Counts batches, and keeps the streams as they were when the order was drawn."""

    def __init__(self, loader: Any, base_seed: int, told: Any) -> None:
        super().__init__(base_seed)
        self.loader, self.told = loader, told
        self.given = 0
        self.streams: list[Any] = []
        self.first: int | None = None

    def gave(self, worker: int, reached: Any) -> None:
        """One batch more."""
        self.given += 1

    def indices(self, source: Iterator[Any]) -> Iterator[Any]:
        """What the sampler gives; of a pass that goes on, the rest of it.

        Raises:
            RuntimeError: the sampler gives another order than it gave then.
        """
        told, self.told = self.told, None
        self.streams = _states(self.loader)
        source = _in_turn(source)
        if told is None:
            return self._noting(source)
        streams = _streams(self.loader)
        for stream, state in zip(streams, told["streams"], strict=True):
            stream.set_state(state.numpy())
        self.given, self.first = told["given"], told["first"]
        start = list(islice(source, max(self.given, 1)))  # one at least, so that it is drawn now
        streams[0].set_state(self.streams[0].numpy())  # the global stream is everybody's
        self.streams = told["streams"]
        changed = start and self.first not in (None, _digest(start[0]))
        if changed or len(start) < self.given:
            raise RuntimeError(
                "the sampler gives another order than in the pass that was to go on: only an order "
                "that depends on nothing but torch's generators can be repeated"
            )
        return chain(start[self.given :], source)

    def _noting(self, source: Iterator[Any]) -> Iterator[Any]:
        self.first = None
        for index in source:
            if self.first is None:
                self.first = _digest(index)
            yield index

    def state(self) -> dict[str, Any]:
        """Batches given, and what the order was drawn from."""
        return {
            "given": self.given, "streams": self.streams, "first": self.first,
            "base_seed": self.base_seed,
        }  # fmt: skip


class OfArchive(Progress):
    """Keeps how far each worker is; the dataset asks it for the rest of its pass."""

    def __init__(self, loader: Any, base_seed: int, told: Any) -> None:
        super().__init__(base_seed)
        self.dataset = loader.dataset
        self.begun: Pass = self.dataset.next_pass()
        self.workers = max(loader.num_workers, 1)
        self.taken = [0] * self.workers
        self.skipped = [0] * self.workers
        self.last: dict[int, Any] = {}
        self.has_copies = loader.num_workers > 0  # of the dataset, which count for themselves
        if told is not None and told["workers"] == self.workers:
            self.worker = told["worker"]

    def take_over(self) -> None:
        """Be what the dataset asks for its place."""
        self.dataset.running = self

    def place(self) -> Pass | None:
        """The rest of the pass; None at its end."""
        return None if self.ended else self.begun.after(self.workers, list(self.taken))

    def gave(self, worker: int, reached: Any) -> None:
        """A worker has come so far."""
        self.worker = worker
        self._reach(worker, *reached)

    def _reach(self, worker: int, taken: int, skipped: int) -> None:
        self.taken[worker] = taken
        if self.has_copies:
            self.dataset.skipped += skipped - self.skipped[worker]
        self.skipped[worker] = skipped

    def finished(self, worker: int, reached: Any) -> None:
        """Samples may have been left out after its last batch."""
        self.last[worker] = reached

    def end(self) -> None:
        """All was given."""
        super().end()
        for worker, reached in self.last.items():
            self._reach(worker, *reached)

    def state(self) -> dict[str, Any]:
        """The dataset's, and whose turn it is."""
        return {
            "dataset": self.dataset.state_dict(), "workers": self.workers, "worker": self.worker,
            "base_seed": self.base_seed,
        }  # fmt: skip
