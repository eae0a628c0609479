"""Crews: the workers of a loader. One is told tasks and asked for results; how its workers live
and end is its own affair. Here: processes; threads are in worker_thread.py.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import struct
import time
import warnings
import weakref
from multiprocessing.connection import wait
from typing import Any

from flambeau._core import signals
from flambeau.utils.data.failures import Failure, death
from flambeau.utils.data.transfer import Receiver
from flambeau.utils.data.worker import Work
from flambeau.utils.data.worker_process import END, GRACE, PARENTS_ENDS, live

LOOK = 0.5
"""Seconds between two looks at whether workers are alive."""
TIME = struct.Struct("@ll")
"""The system's `struct timeval`: seconds and millionths."""
SERVER_IMPORTS = ("flambeau.utils.data.crews", "flambeau.utils.data.interruptible_server")

NOT_PICKLED = (
    "Got pickle error when attempting to start a worker Process. This might be "
    "because the worker Process arguments are not picklable. Python 3.14+ changed the "
    "multiprocessing start method in non-Mac POSIX platforms to 'forkserver', which "
    "requires the worker Process arguments to be picklable. You can also try "
    "multiprocessing.set_start_method('fork')."
)

Head = tuple[int, int, str, list[int | None], Any]
"""Of a result: pass, task, "data", "end" or "failed", digests of samples (see duplicates.py), how
far the worker is in a resumable dataset (see progress.py)."""


class Stalled(Exception):
    """A worker that neither sends nor takes the rest of a message."""


class Crew:
    """Workers. Tasks and results carry the number of the pass, so that those of a pass that was
    left early can be told from others.
    """

    closed = False

    def submit(self, worker: int, turn: int, number: int, index: Any, watched: bool,
               begun: Any) -> None:  # fmt: skip
        """Tell a worker to fetch. begun: what a resumable dataset has to know of the pass."""
        raise NotImplementedError

    def receive(self, timeout: float) -> tuple[Head, Any] | None:
        """The next result; None after `timeout` seconds. RuntimeError if a worker is gone."""
        raise NotImplementedError

    def give_up_after(self, seconds: float) -> None:
        """Let `submit` and `receive` raise Stalled if a worker stops for so long in the middle of
        a message."""

    def close(self) -> None:
        """End all workers."""
        raise NotImplementedError


class Processes(Crew):
    """Worker processes, each with a pipe for tasks and one for results."""

    def __init__(self, context: Any, works: list[Work]) -> None:
        if context is None:
            import multiprocessing as context
        self.workers: list[Any] = []
        self.tasks: list[Any] = []
        self.receivers: list[Receiver] = []
        self._close = weakref.finalize(
            self, _end, os.getpid(), self.workers, self.tasks, self.receivers
        )
        _prepare(context)
        for work in works:
            self._start(context, work)

    def _start(self, context: Any, work: Work) -> None:
        tasks_out, tasks_in = context.Pipe(duplex=True)
        results_in, results_out = context.Pipe(duplex=True)
        PARENTS_ENDS.update((tasks_in, results_in))
        worker = context.Process(
            target=live, args=(tasks_out, results_out, work), daemon=True,
            name=f"flambeau-worker-{work.worker}",
        )  # fmt: skip
        try:
            with _uninterrupted():
                worker.start()
        except (TypeError, AttributeError, pickle.PicklingError):
            warnings.warn(NOT_PICKLED, stacklevel=6)
            self.close()
            raise
        finally:
            tasks_out.close()
            results_out.close()
        self.workers.append(worker)
        self.tasks.append(tasks_in)
        self.receivers.append(Receiver(results_in))

    def submit(self, worker: int, turn: int, number: int, index: Any, watched: bool,
               begun: Any) -> None:  # fmt: skip
        """Send a task, and the segments that are free again."""
        message = turn, number, index, watched, begun, self.receivers[worker].returned()
        try:
            self.tasks[worker].send_bytes(pickle.dumps(message, 5))
        except BlockingIOError:
            raise Stalled from None
        except (BrokenPipeError, ConnectionResetError):
            self._raise_death(worker)

    def give_up_after(self, seconds: float) -> None:
        """Set the time limits of the sockets that the pipes are."""
        if os.name == "nt":
            return
        whole = int(seconds)
        limit = TIME.pack(whole, max(int((seconds - whole) * 1e6), 1))
        receiving = [receiver.connection for receiver in self.receivers]
        for connections, option in ((receiving, socket.SO_RCVTIMEO),
                                    (self.tasks, socket.SO_SNDTIMEO)):  # fmt: skip
            for connection in connections:
                with socket.socket(fileno=os.dup(connection.fileno())) as end:
                    end.setblocking(True)  # whatever socket.setdefaulttimeout says
                    end.setsockopt(socket.SOL_SOCKET, option, limit)

    def receive(self, timeout: float) -> tuple[Head, Any] | None:
        """As soon as one of the pipes has a result, or one of the processes has ended."""
        by_pipe = {r.connection: number for number, r in enumerate(self.receivers)}
        ends = {w.sentinel: number for number, w in enumerate(self.workers)}
        ready = wait([*by_pipe, *ends], timeout)
        for one in ready:
            if one in by_pipe:
                return self._received(by_pipe[one])
        for one in ready:
            self._raise_death(ends[one])
        return None

    def _received(self, number: int) -> tuple[Head, Any]:
        try:
            head, make = self.receivers[number].receive()
        except BlockingIOError:
            raise Stalled from None
        except (EOFError, ConnectionResetError):
            self._raise_death(number)
        try:
            return head, make()
        except Exception as error:
            turn, task, _, digests, reached = head
            failure = Failure.of(error, "in the DataLoader's own process", "by unpickling a batch")
            return (turn, task, "failed", digests, reached), failure

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
        self.closed = True
        self._close()


def _uninterrupted() -> contextlib.AbstractContextManager[None]:
    """A process that starts here gets no SIGINT until it says so: Ctrl-C while it imports its
    modules would print a traceback for each process."""
    return signals.blocked({signal.SIGINT})


def _prepare(context: Any) -> None:
    """Start what workers of a kind share."""
    method = context.get_start_method()
    if method == "fork":
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # here: it ends by letting SIGINT through
    if method == "forkserver":
        _prepare_server(context)


def _prepare_server(context: Any) -> None:
    """Let the server that forks workers import what they need, once for all of them; one that
    runs already stays as it is."""
    from multiprocessing import forkserver

    preloaded = forkserver._forkserver._preload_modules  # type: ignore[attr-defined]
    if SERVER_IMPORTS[0] not in preloaded:
        context.set_forkserver_preload([*preloaded, *SERVER_IMPORTS])
    with _uninterrupted():
        forkserver.ensure_running()


def _end(owner: int, workers: list[Any], tasks: list[Any], receivers: list[Receiver]) -> None:
    """Tell the processes to end, then wait for them; those that are late are killed."""
    if os.getpid() != owner:  # a forked child, to which these do not belong
        return
    for connection in tasks:
        with contextlib.suppress(OSError):
            os.set_blocking(connection.fileno(), False)
            connection.send_bytes(END)
    for connection in (*tasks, *[r.connection for r in receivers]):
        connection.close()
    deadline = time.monotonic() + GRACE + 0.5
    for worker in workers:
        worker.join(max(deadline - time.monotonic(), 0.01))
        if worker.is_alive():
            worker.kill()
            worker.join(1)
