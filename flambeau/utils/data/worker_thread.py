"""Workers that are threads: nothing to start, nothing to copy."""

from __future__ import annotations

import copy
import dataclasses
import queue
import threading
import time
import weakref
from typing import Any

from flambeau._core.generator import of_thread
from flambeau._ops.random.draws import Generator
from flambeau.utils.data.crews import Crew, Head
from flambeau.utils.data.fetch import DatasetKind
from flambeau.utils.data.worker import Work, Worker
from flambeau.utils.data.worker_info import WorkerInfo, set_worker_info
from flambeau.utils.data.worker_process import GRACE


class Threads(Crew):
    """Worker threads: they share the dataset, and the random streams, with everybody else."""

    def __init__(self, context: Any, works: list[Work]) -> None:
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.ended = threading.Event()
        self.threads = [WorkerThread(work, self.results, self.ended) for work in works]
        self._close = weakref.finalize(self, _stop, self.threads, self.ended)
        for thread in self.threads:
            thread.start()

    def submit(self, worker: int, turn: int, number: int, index: Any, watched: bool,
               begun: Any) -> None:  # fmt: skip
        """Put a task into the worker's box."""
        for thread in self.threads:
            thread.turn = turn
        self.threads[worker].box.put((turn, number, index, watched, begun))

    def receive(self, timeout: float) -> tuple[Head, Any] | None:
        """The next result."""
        try:
            found: tuple[Head, Any] = self.results.get(timeout=timeout)
        except queue.Empty:
            return None
        return found

    def close(self) -> None:
        """Ask the threads to end; they do after the sample that they are at."""
        self.closed = True
        self._close()


def _stop(threads: list[WorkerThread], ended: threading.Event) -> None:
    ended.set()
    for thread in threads:
        thread.box.put(None)
    deadline = time.monotonic() + GRACE
    for thread in threads:
        if thread.is_alive() and thread is not threading.current_thread():
            thread.join(max(deadline - time.monotonic(), 0.01))


class WorkerThread(threading.Thread):
    """The life of a worker thread. An iterable dataset is copied for it: an iterator, or what
    `worker_init_fn` sets, must be the worker's own; the copy is shallow, except for pipes."""

    def __init__(self, work: Work, results: Any, ended: threading.Event) -> None:
        super().__init__(daemon=True, name=f"flambeau-worker-{work.worker}")
        if work.kind == DatasetKind.Iterable:
            copied = copy.deepcopy if getattr(type(work.dataset), "is_pipe", False) else copy.copy
            work = dataclasses.replace(work, dataset=copied(work.dataset))
        self.box: queue.SimpleQueue[Any] = queue.SimpleQueue()
        where = f"in DataLoader worker thread {work.worker}"
        self.worker = Worker(work, where, BaseException)  # nobody sees a thread that is gone
        self.results, self.ended = results, ended
        self.turn = 0

    def run(self) -> None:
        """Task by task until there is no more."""
        work = self.worker.work
        seed = work.base_seed + work.worker
        set_worker_info(WorkerInfo(work.worker, work.workers, seed, work.dataset))
        of_thread.generator = Generator().manual_seed(seed)
        self.worker.prepare()
        while (task := self.box.get()) is not None and not self.ended.is_set():
            turn, number, index, watched, begun = task
            if turn != self.turn or turn == self.worker.over:
                continue
            kind, value = self.worker.result(turn, index, watched, begun)
            head = turn, number, kind, self.worker.digests(), self.worker.reached()
            self.results.put((head, value))
