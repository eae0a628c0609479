"""The life of a worker process: seeds, tasks, results, and an end under all circumstances."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import threading
from dataclasses import dataclass
from typing import Any

from flambeau.utils.data.failures import Failure
from flambeau.utils.data.fetch import fetcher_for
from flambeau.utils.data.transfer import Sender
from flambeau.utils.data.worker_info import WorkerInfo, set_worker_info

PARENT_LOOK = 1.0
"""Seconds between two looks at whether the parent is alive."""
GRACE = 2.0
"""Seconds that a worker may still need once nobody waits for its data."""


@dataclass
class Work:
    """What a worker has to know; sent to it once."""

    dataset: Any
    batched: bool
    collate: Any
    drop_last: bool
    base_seed: int
    init: Any
    worker: int
    workers: int
    parent: int


class Inbox(threading.Thread):
    """Reads tasks from the pipe, so that sending them never waits for this process; ends the
    process when the parent is gone.
    """

    def __init__(self, connection: Any, work: Work, sender: Sender) -> None:
        super().__init__(daemon=True, name="flambeau-inbox")
        self.connection, self.work, self.sender = connection, work, sender
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.current = 0

    def run(self) -> None:
        """Until the pipe is closed."""
        try:
            while True:
                if not self.connection.poll(PARENT_LOOK):
                    if os.getppid() != self.work.parent:
                        break
                    continue
                message = pickle.loads(self.connection.recv_bytes())  # noqa: S301
                self.current = message[0]
                self.sender.given_back(message[3])
                self.tasks.put(message)
        except (EOFError, OSError):
            pass
        self.tasks.put(None)
        # a sample that takes long, or a pipe that nobody reads, must not keep the process
        timer = threading.Timer(GRACE, os._exit, (1,))
        timer.daemon = True
        timer.start()


def seed_everything(base_seed: int, worker: int) -> int:
    """Give the random streams of a worker their own seeds; returns `base_seed + worker`.

    NumPy's comes from its SeedSequence over both numbers, of which it takes 32 bits at a time.
    """
    import random

    import numpy as np

    from flambeau.random import manual_seed

    seed = base_seed + worker
    random.seed(seed)
    manual_seed(seed)
    words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))  # noqa: NPY002
    return seed


def live(tasks: Any, results: Any, work: Work) -> None:
    """Be a worker until the pipe of tasks is closed."""
    from flambeau._core.settings import set_num_threads

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted and closes the pipe
    set_num_threads(1)
    sender = Sender(results, work.parent)
    inbox = Inbox(tasks, work, sender)
    inbox.start()
    seed = seed_everything(work.base_seed, work.worker)
    set_worker_info(WorkerInfo(work.worker, work.workers, seed, work.dataset))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # nobody wants the data now
        Worker(work, inbox, sender).run()


class Worker:
    """Fetches what tasks ask for."""

    def __init__(self, work: Work, inbox: Inbox, sender: Sender) -> None:
        self.work, self.inbox, self.sender = work, inbox, sender
        self.where = f"in DataLoader worker process {work.worker}"
        self.fetcher: Any = None
        self.failed: Failure | None = None

    def run(self) -> None:
        """Task by task; those of a pass that is over are left out."""
        try:
            if self.work.init is not None:
                self.work.init(self.work.worker)
        except Exception as error:
            self.failed = Failure.of(error, self.where)
        going_on = -1
        while (message := self.inbox.tasks.get()) is not None:
            turn, number, index, _ = message
            if turn != self.inbox.current:
                continue
            if turn != going_on:
                going_on = turn
                self.start()
            self.answer(turn, number, index)

    def start(self) -> None:
        """A new pass over the dataset."""
        work = self.work
        if self.failed is None:
            try:
                self.fetcher = fetcher_for(work.dataset, work.batched, work.collate, work.drop_last)
            except Exception as error:
                self.failed = Failure.of(error, self.where)

    def answer(self, turn: int, number: int, index: Any) -> None:
        """Fetch one batch and send it, or what went wrong."""
        found: tuple[str, Any]
        try:
            if self.failed is not None:
                found, self.failed = ("failed", self.failed), None
            else:
                found = ("data", self.fetcher.fetch(index))
        except StopIteration as end:
            found = ("end", None)
            if self.fetcher.by_index:
                found = ("failed", Failure.of(end, self.where, self.fetcher.place()))
        except Exception as error:
            found = ("failed", Failure.of(error, self.where, self.fetcher.place()))
        kind, value = found
        try:
            self.sender.send((turn, number, kind), value)
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:
            failure = Failure.of(error, self.where, f"when batch {number} was to be sent")
            self.sender.send((turn, number, "failed"), failure)
