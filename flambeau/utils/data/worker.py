"""What workers of every kind do: for each task a result, whatever happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flambeau.utils.data.failures import Failure
from flambeau.utils.data.fetch import DatasetKind, Fetcher
from flambeau.utils.data.seeds import seed_pipes


def share(dataset: Any, workers: int, worker: int) -> None:
    """Let the data pipes that can share give one worker its part."""
    from flambeau.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
    from flambeau.utils.data.graph_settings import apply_sharding

    apply_sharding(dataset, workers, worker, SHARDING_PRIORITIES.MULTIPROCESSING)


@dataclass
class Work:
    """What a worker has to know; told once."""

    kind: int
    dataset: Any
    batched: bool
    collate: Any
    drop_last: bool
    base_seed: int
    init: Any
    worker: int
    workers: int
    kept: int
    """How many segments without a batch a worker process keeps."""


class Worker:
    """Fetches what tasks ask for.

    where: says in errors which worker this is. caught: which exceptions become results; others
    are the end of the worker.
    """

    def __init__(self, work: Work, where: str, caught: type[BaseException] = Exception) -> None:
        self.work, self.where, self.caught = work, where, caught
        self.fetcher: Fetcher | None = None
        self.turn = -1
        self.over = -1  # the pass whose end was told; no more is said about its tasks
        self.wrong: Failure | None = None  # why nothing can be fetched
        self.told = False  # whether that was reported
        self.useless: Failure | None = None
        self.is_pipe = getattr(type(work.dataset), "is_pipe", False)

    def prepare(self) -> None:
        """Take this worker's part of a data pipe, and call `worker_init_fn`. Where that fails,
        nothing can be fetched in any pass."""
        try:
            if self.is_pipe:
                share(self.work.dataset, self.work.workers, self.work.worker)
            if self.work.init is not None:
                self.work.init(self.work.worker)
        except self.caught as error:
            self.useless = Failure.of(error, self.where)

    def _start(self, turn: int, begun: Any) -> None:
        """A new pass over the dataset."""
        work = self.work
        again = self.turn >= 0
        self.turn, self.wrong, self.told = turn, self.useless, False
        if self.wrong is not None:
            return
        try:
            if begun is not None:
                work.dataset.begin(begun)
            if self.is_pipe and again:  # the seeds of the first pass came with the dataset
                seed_pipes(work.dataset, work.base_seed + turn)
            self.fetcher = DatasetKind.create_fetcher(
                work.kind, work.dataset, work.batched, work.collate, work.drop_last
            )
        except self.caught as error:
            self.wrong = Failure.of(error, self.where)

    def result(self, turn: int, index: Any, watched: bool, begun: Any) -> tuple[str, Any]:
        """("data", batch), ("end", None) or ("failed", Failure) for one task of a pass.

        watched: whether samples are to be digested (see duplicates.py). begun: the pass, for a
            resumable dataset (see progress.py).
        """
        if turn != self.turn:
            self._start(turn, begun)
        if self.wrong is not None:
            return self._nothing()
        fetcher = self.fetcher
        assert fetcher is not None
        fetcher.watched = watched
        try:
            return "data", fetcher.fetch(index)
        except StopIteration as end:
            if not fetcher.by_index:
                return self._end()
            return "failed", Failure.of(end, self.where, fetcher.place())
        except self.caught as error:
            return "failed", Failure.of(error, self.where, fetcher.place())

    def _end(self) -> tuple[str, Any]:
        self.over = self.turn
        return "end", None

    def _nothing(self) -> tuple[str, Any]:
        """Why there is no data; said once of an iterable dataset, which is then at its end."""
        if self.told and self.work.kind == DatasetKind.Iterable:
            return self._end()
        self.told = True
        return "failed", self.wrong

    def reached(self) -> Any:
        """How far this worker is in a resumable dataset."""
        return self.fetcher.reached() if self.fetcher is not None else None

    def digests(self) -> list[int | None]:
        """Those of the samples that were fetched since the last call."""
        return self.fetcher.taken_digests() if self.fetcher is not None else []
