"""Collectives through MPI, by way of mpi4py."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from flambeau.distributed.errors import DistBackendError
from flambeau.distributed.transport import futex
from flambeau.distributed.transport.call import LABEL, Call, Exchange, Pieces, Sink
from flambeau.distributed.transport.messages import LATE, Coming, Going

MISSING = (
    "Distributed package doesn't have MPI built in. MPI is only included if mpi4py is installed: "
    "pip install 'flambeau[distributed]', and an MPI such as `pip install mpich`."
)
COLLECTIVE = 1
"""The tag of what collectives send; sends of users have tags above."""


def library() -> Any:
    """`mpi4py.MPI`, started.

    Raises:
        RuntimeError: it, or an MPI, is not installed.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(MISSING) from error
    return MPI


class MpiExchange(Exchange):
    """Sends and receives between all processes of a communicator."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self._rank = communicator.Get_rank()

    def run(self, call: Call, send: Pieces, sink: Sink) -> None:
        """Send, receive, and hand over what came; each piece comes behind the call's label."""
        pieces: list[np.ndarray | None] = [None] * len(sink.sizes)
        labels: dict[int, np.ndarray] = {}
        requests: list[tuple[int, Any]] = []
        for rank, size in enumerate(sink.sizes):
            if rank == self._rank or size < 0:
                continue
            there = sink.buffers[rank]
            pieces[rank] = np.empty(size, np.uint8) if there is None else there
            labels[rank] = np.empty(LABEL, np.uint8)
            requests.append((rank, self._communicator.Irecv(labels[rank], rank, COLLECTIVE)))
            requests.append((rank, self._communicator.Irecv(pieces[rank], rank, COLLECTIVE)))
        label = np.frombuffer(call.label, np.uint8)
        for rank, data in enumerate(send):
            if data is not None and rank != self._rank:
                requests.append((rank, self._communicator.Isend(label, rank, COLLECTIVE)))
                requests.append((rank, self._communicator.Isend(data, rank, COLLECTIVE)))
        self._finish(call, requests)
        for rank, found in labels.items():
            call.check(found.tobytes(), rank)
        sink.take(0, pieces)

    def _finish(self, call: Call, requests: list[tuple[int, Any]]) -> None:
        testall = library().Request.Testall
        every = [request for _, request in requests]
        while not testall(every):
            if time.monotonic() >= call.deadline:
                late = [rank for rank, request in requests if not request.Test()]
                if late:
                    call.late(late[0])
            futex.give_way()

    def close(self) -> None:
        """The communicator belongs to who made it."""


class MpiMessages:
    """Sends and receives of users, through MPI. Ranks are those of the communicator."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self._going: list[MpiGoing] = []

    def send(self, rank: int, tag: int, data: np.ndarray, deadline: float) -> Going:
        """Begin to send a message: a large one is taken only when the other side receives."""
        # Kept here, too: the bytes have to stay where they are though nobody may ever wait.
        self._going = [each for each in self._going if not each.is_gone()]
        going = MpiGoing(self._communicator.Isend(data, rank, tag + COLLECTIVE + 1), data, rank)
        self._going.append(going)
        return going

    def receive(self, rank: int | None, tag: int, into: np.ndarray) -> Coming:
        """Begin to receive a message."""
        source = library().ANY_SOURCE if rank is None else rank
        return MpiComing(self._communicator.Irecv(into, source, tag + COLLECTIVE + 1))


class MpiGoing(Going):
    """A message that MPI takes away; its bytes are kept until then."""

    def __init__(self, request: Any, data: np.ndarray, rank: int) -> None:
        self._request, self._data, self._rank = request, data, rank
        self._lock = threading.Lock()
        self._is_gone = False

    def is_gone(self) -> bool:
        """Whether it has been taken."""
        with self._lock:
            self._is_gone = self._is_gone or bool(self._request.Test())
        return self._is_gone

    def wait(self, deadline: float) -> None:
        """Wait until it has been; DistBackendError if it is not in time."""
        while not self.is_gone():
            if time.monotonic() >= deadline:
                raise DistBackendError(f"Timed out: rank {self._rank} takes no data")
            futex.give_way()


class MpiComing(Coming):
    """A message that MPI will bring."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._lock = threading.Lock()

    def is_there(self) -> bool:
        """Whether it has come."""
        with self._lock:
            status = library().Status()
            if self.source < 0 and self._request.Test(status):
                self.source = status.Get_source()
        return self.source >= 0

    def wait(self, deadline: float) -> None:
        """Wait for it; DistBackendError if it does not come in time."""
        while not self.is_there():
            if time.monotonic() >= deadline:
                raise DistBackendError(LATE)
            futex.give_way()
