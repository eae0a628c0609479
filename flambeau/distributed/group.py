"""A group of processes: who they are, and how bytes get from one to another."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from flambeau.distributed.errors import DistBackendError
from flambeau.distributed.stores import Store
from flambeau.distributed.transport.call import (
    Exchange,
    MakingStep,
    Pieces,
    Sink,
    Step,
    new_call,
)
from flambeau.distributed.transport.messages import Coming, Going, Messages
from flambeau.distributed.work import Progress, Work


class ProcessGroup:
    """Some processes of a program. `init_process_group` and `new_group` make groups."""

    __module__ = "torch.distributed"

    def __init__(self, ranks: Sequence[int], rank: int, backend: str, exchange: Exchange,
                 messages: Messages, store: Store | None, timeout: timedelta,
                 group_name: str, group_desc: str) -> None:  # fmt: skip
        self._ranks, self._rank, self._backend = tuple(ranks), rank, backend
        self._exchange, self._messages, self._store = exchange, messages, store
        self._timeout = timeout
        self.group_name, self.group_desc = group_name, group_desc
        self.bound_device_id = None
        self._progress = Progress(f"flambeau-group-{group_name}")
        self._broken: Exception | None = None

    def rank(self) -> int:
        """This process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """How many processes are in the group."""
        return len(self._ranks)

    def name(self) -> str:
        """The backend."""
        return self._backend

    def get_group_store(self) -> Store | None:
        """The store of the group's own keys."""
        return self._store

    def step(self, name: str, detail: str, largest: int, send: Pieces, sink: Sink,
             same: bool) -> Step:  # fmt: skip
        """An exchange of bytes that begins now: see `transport.call`."""
        seconds, is_aside = self._timeout.total_seconds(), self._progress.is_here()
        call = new_call(name, detail, largest, same, seconds, is_aside)
        return Step(call, send, sink)

    def exchange(self, name: str, detail: str, largest: int, send: Pieces, sink: Sink,
                 same: bool) -> None:  # fmt: skip
        """Move bytes between all processes of the group."""
        step = self.step(name, detail, largest, send, sink, same)
        self._exchange.run(step.call, step.send, step.sink)

    def exchange_both(self, first: MakingStep, second: Step) -> None:
        """Two exchanges, the second of which sends what the first has made."""
        self._exchange.run_both(first, second)

    def submit(self, job: Callable[[], None], outputs: Any, is_async: bool) -> Work | None:
        """Run a collective, now or in the thread of the group. After an error no more can run."""
        work = Work(outputs)
        if is_async:
            self._progress.start(lambda: self._guarded(job), work)
            return work
        self._progress.run(lambda: self._guarded(job), work)
        return None

    def _guarded(self, job: Callable[[], None]) -> None:
        if self._broken is not None:
            raise self._broken
        try:
            job()
        except Exception as error:
            self._broken = error  # the processes have lost count of one another
            raise
        except BaseException:
            self._broken = DistBackendError("a collective of this group was interrupted")
            raise

    def deadline(self, timeout: timedelta | None = None) -> float:
        """When what begins now has to be done."""
        return time.monotonic() + (timeout or self._timeout).total_seconds()

    def receive_work(self, coming: Coming, written: Callable[[], None], outputs: Any) -> Work:
        """The work of a receive that has begun."""
        return _ReceiveWork(self, coming, written, outputs)

    def send_work(self, going: Going, outputs: Any) -> Work:
        """The work of a send that has begun."""
        return _SendWork(self, going, outputs)

    def close(self) -> None:
        """End the thread, and give memory back."""
        self._progress.close()
        self._exchange.close()


class _ReceiveWork(Work):
    """A receive: who waits for it writes the tensor."""

    def __init__(self, group: ProcessGroup, coming: Coming, written: Callable[[], None],
                 outputs: Any) -> None:  # fmt: skip
        super().__init__(outputs)
        self._coming, self._written = coming, written
        self._deadline = group.deadline()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the message is there."""
        with self._guard:
            is_done = self._finished.is_set()
        if not is_done:
            end = self._deadline
            if timeout:
                end = time.monotonic() + timeout.total_seconds()
            self._receive(end)
        return super().wait()

    def _receive(self, deadline: float) -> None:
        error: Exception | None = None
        try:
            self._coming.wait(deadline)
            self._written()
            self._source = self._coming.source
        except Exception as failed:  # it is raised by every `wait`
            error = failed
        self._finish(error)

    def is_completed(self) -> bool:
        """Whether the message is there."""
        return self._finished.is_set() or self._coming.is_there()


class _SendWork(Work):
    """A send that goes on until the other side takes it."""

    def __init__(self, group: ProcessGroup, going: Going, outputs: Any) -> None:
        super().__init__(outputs)
        self._going, self._deadline = going, group.deadline()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the tensor may be written again."""
        if not self._finished.is_set():
            end = self._deadline
            if timeout:
                end = time.monotonic() + timeout.total_seconds()
            error: Exception | None = None
            try:
                self._going.wait(end)
            except Exception as failed:  # it is raised by every `wait`
                error = failed
            self._finish(error)
        return super().wait()

    def is_completed(self) -> bool:
        """Whether the tensor may be written again."""
        return self._finished.is_set() or self._going.is_gone()


def group_number(name: str) -> int:
    """A number by which messages tell groups apart."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
