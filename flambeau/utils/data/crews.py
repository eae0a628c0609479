"""Crews: the workers of a loader, as processes or as threads. One is told tasks and asked for
results; how its workers live and end is its own affair.
"""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import queue
import threading
import time
import warnings
import weakref
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from flambeau.utils.data.dataset import IterableDataset
from flambeau.utils.data.failures import Failure, death
from flambeau.utils.data.fetch import fetcher_for
from flambeau.utils.data.transfer import Receiver
from flambeau.utils.data.worker_info import WorkerInfo, set_worker_info
from flambeau.utils.data.worker_process import GRACE, Work, live

if TYPE_CHECKING:
    from flambeau.utils.data.dataloader import DataLoader

LOOK = 0.5
"""Seconds between two looks at whether workers are alive."""


class Crew:
    """Workers. Tasks and results carry the number of the pass, so that those of a pass that was
    left early can be told from others.
    """

    def submit(self, worker: int, turn: int, number: int, index: Any) -> None:
        """Tell a worker to fetch."""
        raise NotImplementedError

    def receive(self, timeout: float) -> tuple[int, int, str, Any] | None:
        """The next result (pass, task, "data", "end" or "failed", value); None after `timeout`
        seconds. RuntimeError if a worker is gone."""
        raise NotImplementedError

    def close(self) -> None:
        """End all workers."""
        raise NotImplementedError


# ---- processes


class Processes(Crew):
    """Worker processes, each with a pipe for tasks and one for results."""

    def __init__(self, loader: DataLoader, base_seed: int) -> None:
        context = loader.multiprocessing_context
        if context is None:
            import multiprocessing as context
        self.workers: list[Any] = []
        self.tasks: list[Any] = []
        self.receivers: list[Receiver] = []
        self._close = weakref.finalize(self, _end, self.workers, self.tasks, self.receivers)
        for number in range(loader.num_workers):
            work = Work(
                loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last,
                base_seed, loader.worker_init_fn, number, loader.num_workers, os.getpid(),
            )  # fmt: skip
            self._start(context, work)

    def _start(self, context: Any, work: Work) -> None:
        tasks_out, tasks_in = context.Pipe(duplex=True)
        results_in, results_out = context.Pipe(duplex=True)
        ours = [*self.tasks, *[r.connection for r in self.receivers], tasks_in, results_in]
        worker = context.Process(
            target=_begin, args=(tasks_out, results_out, work, _Closing(ours)), daemon=True,
            name=f"flambeau-worker-{work.worker}",
        )  # fmt: skip
        try:
            worker.start()
        except (TypeError, AttributeError, pickle.PicklingError):
            warnings.warn(
                "Got pickle error when attempting to start a worker Process. This might be "
                "because the worker Process arguments are not picklable. Python 3.14+ changed the "
                "multiprocessing start method in non-Mac POSIX platforms to 'forkserver', which "
                "requires the worker Process arguments to be picklable. You can also try "
                "multiprocessing.set_start_method('fork').",
                stacklevel=6,
            )
            self.close()
            raise
        finally:
            tasks_out.close()
            results_out.close()
        self.workers.append(worker)
        self.tasks.append(tasks_in)
        self.receivers.append(Receiver(results_in))

    def submit(self, worker: int, turn: int, number: int, index: Any) -> None:
        """Send a task, and the segments that are free again."""
        message = (turn, number, index, self.receivers[worker].returned())
        try:
            self.tasks[worker].send_bytes(pickle.dumps(message, 5))
        except (BrokenPipeError, ConnectionResetError):
            self._raise_death(worker)

    def receive(self, timeout: float) -> tuple[int, int, str, Any] | None:
        """As soon as one of the pipes has a result, or one of the processes has ended."""
        by_pipe = {r.connection: number for number, r in enumerate(self.receivers)}
        ends = {w.sentinel: number for number, w in enumerate(self.workers)}
        ready = wait([*by_pipe, *ends], timeout)
        for one in ready:
            if one in by_pipe:
                number = by_pipe[one]
                try:
                    head, make = self.receivers[number].receive()
                except (EOFError, OSError):
                    self._raise_death(number)
                turn, task, kind = head
                return turn, task, kind, make()
        for one in ready:
            self._raise_death(ends[one])
        return None

    def _raise_death(self, number: int) -> None:
        worker = self.workers[number]
        worker.join(LOOK)
        error = death(worker.pid, worker.exitcode)
        self.close()
        raise error from None

    @property
    def pids(self) -> list[int]:
        """The processes' numbers."""
        return [worker.pid for worker in self.workers]

    def close(self) -> None:
        """Close the pipes, which ends the processes; those that do not end are killed."""
        self._close()


class _Closing:
    """The parent's ends of pipes, which a forked child has to close, or no worker would ever see
    its pipe end. Started afresh, a child has none of them."""

    def __init__(self, connections: list[Any]) -> None:
        self.connections = connections

    def __reduce__(self) -> Any:
        return _Closing, ([],)


def _begin(tasks: Any, results: Any, work: Work, inherited: _Closing) -> None:
    for connection in inherited.connections:
        with contextlib.suppress(OSError):
            connection.close()
    live(tasks, results, work)


def _end(workers: list[Any], tasks: list[Any], receivers: list[Receiver]) -> None:
    """Close the pipes, then wait for the processes, each of which has a deadline."""
    for connection in (*tasks, *[r.connection for r in receivers]):
        connection.close()
    deadline = time.monotonic() + GRACE + 1
    for worker in workers:
        if worker._parent_pid != os.getpid():  # in a child, which these are not its own
            continue
        worker.join(max(deadline - time.monotonic(), 0.01))
        if worker.is_alive():
            worker.kill()
            worker.join(1)


# ---- threads


class Threads(Crew):
    """Worker threads: they share the dataset, and the random streams, with everybody else."""

    def __init__(self, loader: DataLoader, base_seed: int) -> None:
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.boxes: list[queue.SimpleQueue[Any]] = []
        self.ended = threading.Event()
        self._close = weakref.finalize(self, _stop, self.boxes, self.ended)
        for number in range(loader.num_workers):
            box: queue.SimpleQueue[Any] = queue.SimpleQueue()
            info = WorkerInfo(number, loader.num_workers, base_seed + number, loader.dataset)
            parts = (
                loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
            )  # fmt: skip
            worker = ThreadWorker(info, parts, loader.worker_init_fn, box, self.results, self.ended)
            worker.start()
            self.boxes.append(box)

    def submit(self, worker: int, turn: int, number: int, index: Any) -> None:
        """Put a task into the worker's box."""
        self.boxes[worker].put((turn, number, index))

    def receive(self, timeout: float) -> tuple[int, int, str, Any] | None:
        """The next result."""
        try:
            found: tuple[int, int, str, Any] = self.results.get(timeout=timeout)
        except queue.Empty:
            return None
        return found

    def close(self) -> None:
        """Ask the threads to end; they do after the sample that they are at."""
        self._close()


def _stop(boxes: list[Any], ended: threading.Event) -> None:
    ended.set()
    for box in boxes:
        box.put(None)


class ThreadWorker(threading.Thread):
    """The life of a worker thread."""

    def __init__(self, info: WorkerInfo, parts: Any, init: Any, box: Any, results: Any,
                 ended: threading.Event) -> None:  # fmt: skip
        super().__init__(daemon=True, name=f"flambeau-worker-{info.id}")
        self.info, self.parts, self.init = info, parts, init
        self.box, self.results, self.ended = box, results, ended
        self.where = f"in DataLoader worker thread {info.id}"

    def run(self) -> None:
        """Task by task until there is no more."""
        set_worker_info(self.info)
        failed: Failure | None = None
        try:
            if self.init is not None:
                self.init(self.info.id)
        except Exception as error:
            failed = Failure.of(error, self.where)
        current = -1
        fetcher: Any = None
        result: tuple[str, Any]
        while (task := self.box.get()) is not None and not self.ended.is_set():
            turn, number, index = task
            if turn < current:
                continue
            try:
                if turn > current:
                    current, fetcher = turn, self._fetcher()
                result = ("data", fetcher.fetch(index)) if failed is None else ("failed", failed)
                failed = None
            except StopIteration as end:
                result = ("end", None)
                if fetcher.by_index:
                    result = ("failed", Failure.of(end, self.where, fetcher.place()))
            except Exception as error:
                at = "" if fetcher is None else fetcher.place()
                result = ("failed", Failure.of(error, self.where, at))
            self.results.put((turn, number, *result))

    def _fetcher(self) -> Any:
        dataset, batched, collate, drop_last = self.parts
        if isinstance(dataset, IterableDataset):  # its iterator must be the thread's own
            dataset = copy.copy(dataset)
        return fetcher_for(dataset, batched, collate, drop_last)


CREWS: dict[str, Any] = {"process": Processes, "thread": Threads}
"""What `worker_type` can be."""
