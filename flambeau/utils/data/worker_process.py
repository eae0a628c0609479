"""The life of a worker process: seeds, tasks, results, and an end under all circumstances."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import threading
import weakref
from typing import Any

from flambeau.utils.data.failures import Failure
from flambeau.utils.data.seeds import seed_everything
from flambeau.utils.data.transfer import Sender
from flambeau.utils.data.worker import Work, Worker
from flambeau.utils.data.worker_info import WorkerInfo, set_worker_info

PARENT_LOOK = 1.0
"""Seconds between two looks at whether the parent is alive."""
GRACE = 1.0
"""Seconds that a worker may still need once nobody waits for its data."""
END = b""
"""The message after which no task comes."""
PARENTS_ENDS: weakref.WeakSet[Any] = weakref.WeakSet()
"""The loader's ends of all pipes in this process. A forked child has them too, and has to close
them, or no worker would ever see its pipe end. Started afresh, a child has none."""


def live(tasks: Any, results: Any, work: Work) -> None:
    """Be a worker until the pipe of tasks is closed."""
    from flambeau._core.settings import set_num_threads

    # the parent is interrupted, and then ends its workers; it blocked the signal until here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for connection in PARENTS_ENDS:
        with contextlib.suppress(OSError):
            connection.close()
    set_num_threads(1)
    sender = Sender(results, work.kept)
    inbox = Inbox(tasks, sender)
    inbox.start()
    seed = seed_everything(work.base_seed, work.worker)
    set_worker_info(WorkerInfo(work.worker, work.workers, seed, work.dataset))
    worker = Worker(work, f"in DataLoader worker process {work.worker}")
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # nobody wants the data now
        worker.prepare()
        _answer_all(worker, inbox, sender)


def _answer_all(worker: Worker, inbox: Inbox, sender: Sender) -> None:
    """Task by task; those of passes that are over are left out."""
    while (message := inbox.tasks.get()) is not None:
        turn, number, index, watched, begun = message
        if turn != inbox.turn or turn == worker.over:
            continue
        kind, value = worker.result(turn, index, watched, begun)
        head = turn, number, kind, worker.digests(), worker.reached()
        try:
            sender.send(head, value)
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:
            failure = Failure.of(error, worker.where, f"when batch {number} was to be sent")
            sender.send((turn, number, "failed", [], worker.reached()), failure)


class Inbox(threading.Thread):
    """Reads tasks from the pipe, so that sending them never waits for this process; ends the
    process when the parent is gone.
    """

    def __init__(self, connection: Any, sender: Sender) -> None:
        super().__init__(daemon=True, name="flambeau-inbox")
        self.connection, self.sender = connection, sender
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.turn = 0

    def run(self) -> None:
        """Until the pipe is closed."""
        with contextlib.suppress(EOFError, OSError):
            self._read()
        self.tasks.put(None)
        # a sample that takes long, or a pipe that nobody reads, must not keep the process
        timer = threading.Timer(GRACE, os._exit, (1,))
        timer.daemon = True
        timer.start()

    def _read(self) -> None:
        starter = os.getppid()
        while True:
            if not self.connection.poll(PARENT_LOOK):
                if os.getppid() != starter or not _parent_lives():
                    return
                continue
            message = self.connection.recv_bytes()
            if message == END:
                return
            turn, number, index, watched, begun, returned = pickle.loads(message)  # noqa: S301
            self.turn = turn
            self.sender.given_back(returned)
            self.tasks.put((turn, number, index, watched, begun))


def _parent_lives() -> bool:
    """Whether the loader's process is there; it may not be the one that started this one."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    return parent is None or parent.is_alive()
