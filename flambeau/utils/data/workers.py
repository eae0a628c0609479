"""Iteration with workers: which worker gets which task, and in which order results come out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

from flambeau.utils.data.crews import LOOK, Crew, Processes, Stalled
from flambeau.utils.data.duplicates import Watch
from flambeau.utils.data.failures import Failure
from flambeau.utils.data.fetch import DatasetKind
from flambeau.utils.data.iterators import LoaderIterator
from flambeau.utils.data.progress import progress_of
from flambeau.utils.data.sampler import random_seed
from flambeau.utils.data.worker import Work

if TYPE_CHECKING:
    from flambeau.utils.data.dataloader import DataLoader


SPARE = 2
"""Segments that a worker process keeps beside those of prefetched batches."""


class WithWorkers(LoaderIterator):
    """Tasks go to the workers in turn, `prefetch_factor` ahead for each; results come out in the
    order of the tasks (or, with `in_order=False`, as they arrive).
    """

    torch_name = "_MultiProcessingDataLoaderIter"

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if not loader.prefetch_factor:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        self.turn = 0
        self.crew = self._crew()
        if loader.timeout:
            self.crew.give_up_after(loader.timeout)
        self._reset(loader, first_iter=True)

    def _crew(self) -> Crew:
        loader = self.loader
        kind: Any = Processes
        if getattr(loader, "worker_type", "process") == "thread":
            from flambeau.utils.data.worker_thread import Threads as kind  # noqa: N813
        works = [
            Work(
                self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn,
                self._drop_last, self._base_seed, loader.worker_init_fn, number, loader.num_workers,
                loader.prefetch_factor + SPARE,  # type: ignore[operator]
            )
            for number in range(loader.num_workers)
        ]  # fmt: skip
        crew: Crew = kind(loader.multiprocessing_context, works)
        return crew

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """A pass over the data, with the workers that there are."""
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self.turn += 1
        if getattr(type(self._dataset), "is_pipe", False):
            random_seed(loader.generator)  # PyTorch draws another seed for workers that stay
        self._num_yielded = 0
        self.progress = progress_of(loader, self._base_seed)
        self._sampler_iter = self.progress.indices(iter(loader._index_sampler))
        self.progress.take_over()
        self.sent = self.next = 0
        self.owner: dict[int, int] = {}  # task -> worker, until its result is given
        self.arrived: dict[int, tuple[str, Any, Any]] = {}
        self.active = [True] * loader.num_workers
        self.waiting = [0] * loader.num_workers  # tasks without result, per worker
        self.last = self.progress.worker
        watched = loader._dataset_kind == DatasetKind.Iterable and self.progress.begun is None
        self.watch = Watch(loader.num_workers if watched else 0)
        try:
            for _ in range(loader.prefetch_factor * loader.num_workers):  # type: ignore[operator]
                self._submit()
        except BaseException:  # a worker was lost since the last pass
            self.close()
            raise

    def _submit(self) -> None:
        """One more task, if there is one and somebody to do it."""
        if not any(self.active):
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = self._next_worker()
        self.owner[self.sent] = worker
        self.waiting[worker] += 1
        try:
            self.crew.submit(
                worker, self.turn, self.sent, index, self.watch.going_on, self.progress.begun
            )
        except Stalled:
            self._time_out()
        self.sent += 1

    def _next_worker(self) -> int:
        """The next active worker in turn; out of order, the one with the least to do."""
        count = len(self.active)
        ring = [(self.last + 1 + k) % count for k in range(count)]
        active = [worker for worker in ring if self.active[worker]]
        if not self.loader.in_order:
            active.sort(key=lambda worker: self.waiting[worker])
        self.last = active[0]
        return self.last

    def _next_data(self) -> Any:
        """The result of the next task; those of workers that are at their end have none."""
        try:
            while True:
                while self.next < self.sent and self._is_over(self.next):
                    self.owner.pop(self.next, None)
                    self.next += 1
                ready = self._ready()
                if ready is not None:
                    return self._given(ready)
                if self.next == self.sent:
                    break
                self._receive()
        except BaseException as error:
            if not isinstance(error, Exception) or self.timed_out or self.crew.closed:
                self.close()
            raise
        self.watch.end()
        self.progress.end()
        if not self.loader.persistent_workers:
            self.close()
        raise StopIteration

    def _is_over(self, task: int) -> bool:
        """Whether nothing is to be waited for: the result was given, or its worker has ended."""
        if task in self.arrived:
            return False
        return task not in self.owner or not self.active[self.owner[task]]

    def _ready(self) -> int | None:
        """A task whose result can be given now."""
        if self.loader.in_order:
            return self.next if self.next in self.arrived else None
        return next(iter(self.arrived), None)

    def _given(self, task: int) -> Any:
        kind, value, reached = self.arrived.pop(task)
        self.progress.gave(self.owner.pop(task), reached)
        self._submit()
        if kind == "failed":
            failure: Failure = value
            raise failure.error()
        return value

    def _receive(self) -> None:
        """Wait for one result, of this pass or an earlier one."""
        limit = self.loader.timeout
        start = time.monotonic()
        while True:
            try:
                result = self.crew.receive(min(limit, LOOK) if limit else LOOK)
            except Stalled:
                self._time_out()
            if result is not None:
                break
            if limit and time.monotonic() - start >= limit:
                self._time_out()
        (turn, task, kind, digests, reached), value = result
        if turn != self.turn:
            return
        worker = self.owner[task]
        self.watch.note(worker, digests)
        self.waiting[worker] -= 1
        if kind == "end":
            self.active[worker] = False
            self.progress.finished(worker, reached)
            del self.owner[task]
            self._submit()
        else:
            self.arrived[task] = kind, value, reached

    def _time_out(self) -> NoReturn:
        self.timed_out = True
        raise RuntimeError(f"DataLoader timed out after {self.loader.timeout} seconds") from None

    timed_out = False

    def close(self) -> None:
        """End the workers."""
        self.crew.close()
        self._sampler_iter = iter(())
        self.next = self.sent
        self.arrived.clear()
        self.loader._iterator = None
