"""Iteration with workers: which worker gets which task, and in which order results come out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from flambeau.utils.data.crews import CREWS, LOOK
from flambeau.utils.data.failures import Failure
from flambeau.utils.data.iterators import LoaderIterator

if TYPE_CHECKING:
    from flambeau.utils.data.dataloader import DataLoader


class WithWorkers(LoaderIterator):
    """Tasks go to the workers in turn, `prefetch_factor` ahead for each; results come out in the
    order of the tasks (or, with `in_order=False`, as they arrive).
    """

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if not loader.prefetch_factor:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        self.turn = 0
        self.crew = CREWS[loader.worker_type](loader, self.base_seed)
        self.start()

    def start(self) -> None:
        """A pass over the data, with the workers that there are."""
        loader = self.loader
        self.turn += 1
        self.yielded = 0
        self.indices = iter(loader._index_sampler)
        self.sent = self.next = 0
        self.owner: dict[int, int] = {}  # task -> worker, until its result is given
        self.arrived: dict[int, tuple[str, Any]] = {}
        self.active = [True] * loader.num_workers
        self.waiting = [0] * loader.num_workers  # tasks without result, per worker
        self.last = -1
        for _ in range(loader.prefetch_factor * loader.num_workers):  # type: ignore[operator]
            self._submit()

    def _submit(self) -> None:
        """One more task, if there is one and somebody to do it."""
        if not any(self.active):
            return
        try:
            index = next(self.indices)
        except StopIteration:
            return
        worker = self._next_worker()
        self.owner[self.sent] = worker
        self.waiting[worker] += 1
        self.crew.submit(worker, self.turn, self.sent, index)
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

    def next_data(self) -> Any:
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
            if not isinstance(error, Exception) or self._is_broken(error):
                self.close()
            raise
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
        kind, value = self.arrived.pop(task)
        del self.owner[task]
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
            result = self.crew.receive(min(limit, LOOK) if limit else LOOK)
            if result is not None:
                break
            if limit and time.monotonic() - start >= limit:
                self.timed_out = True
                raise RuntimeError(f"DataLoader timed out after {limit} seconds")
        turn, task, kind, value = result
        if turn != self.turn:
            return
        worker = self.owner[task]
        self.waiting[worker] -= 1
        if kind == "end":
            self.active[worker] = False
            del self.owner[task]
            self._submit()
        else:
            self.arrived[task] = kind, value

    timed_out = False

    def _is_broken(self, error: Exception) -> bool:
        """Whether the crew can't go on after an error."""
        return self.timed_out or "exited unexpectedly" in str(error)

    def close(self) -> None:
        """End the workers."""
        self.crew.close()
        self.indices = iter(())
        self.next = self.sent
        self.arrived.clear()
        self.loader._iterator = None
