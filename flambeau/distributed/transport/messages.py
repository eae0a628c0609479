"""Messages from one process of a group to another. Ranks are those of the group."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from flambeau.distributed.errors import DistBackendError
from flambeau.distributed.transport.inbox import MESSAGE, Key, Receive
from flambeau.distributed.transport.mesh import Mesh

LATE = "Timed out waiting for recv operation to complete"


class Coming:
    """A message that is waited for."""

    source = -1
    """The rank that it came from, once it is there."""

    def is_there(self) -> bool:
        """Whether it has come."""
        raise NotImplementedError(type(self).__name__)

    def wait(self, deadline: float) -> None:
        """Wait for it.

        Raises:
            DistBackendError: it does not come in time, or its sender is gone.
        """
        raise NotImplementedError(type(self).__name__)


class Going:
    """A message that is being sent; its bytes may be written over once it is gone."""

    def is_gone(self) -> bool:
        """Whether it has been taken."""
        raise NotImplementedError(type(self).__name__)

    def wait(self, deadline: float) -> None:
        """Wait until it has been.

        Raises:
            DistBackendError: it is not in time.
        """
        raise NotImplementedError(type(self).__name__)


class Messages(Protocol):
    """Sends and receives."""

    def send(self, rank: int, tag: int, data: np.ndarray, deadline: float) -> Going | None:
        """Send bytes to a rank; None: they may be written over when this returns."""

    def receive(self, rank: int | None, tag: int, into: np.ndarray) -> Coming:
        """Begin to receive bytes from a rank, or from any."""


class MeshMessages:
    """Messages over the connections of a mesh."""

    def __init__(self, mesh: Mesh, group: int, ranks: Sequence[int]) -> None:
        self._mesh, self._group, self._ranks = mesh, group, tuple(ranks)

    def send(self, rank: int, tag: int, data: np.ndarray, deadline: float) -> None:
        """Send bytes to a rank."""
        key = Key(self._group, MESSAGE, tag)
        try:
            self._mesh.send(self._ranks[rank], key, b"", data.data, deadline)
        except DistBackendError as error:
            raise DistBackendError(f"send: Connection closed by peer: {error}") from error

    def receive(self, rank: int | None, tag: int, into: np.ndarray) -> Coming:
        """Begin to receive bytes from a rank, or from any."""
        sources = self._ranks if rank is None else (self._ranks[rank],)
        others = tuple(each for each in sources if each != self._mesh.rank)
        key, receive = Key(self._group, MESSAGE, tag), Receive(others, into.data)
        self._mesh.inbox.post(key, receive)
        return MeshComing(self._mesh, key, receive, self._ranks)


class MeshComing(Coming):
    """A message that a connection will bring."""

    def __init__(self, mesh: Mesh, key: Key, receive: Receive, ranks: Sequence[int]) -> None:
        self._mesh, self._key, self._receive, self._ranks = mesh, key, receive, ranks

    def is_there(self) -> bool:
        """Whether it has come."""
        return self._receive.done.is_set()

    def wait(self, deadline: float) -> None:
        """Wait for it."""
        if not self._receive.done.wait(max(deadline - time.monotonic(), 0)):
            self._mesh.inbox.withdraw(self._key, self._receive)
            ranks = ", ".join(map(str, self._receive.sources))
            raise DistBackendError(f"{LATE}: nothing from rank {ranks}")
        if self._receive.error is not None:
            raise DistBackendError(
                f"recv: Connection closed by peer: {self._receive.error}"
            ) from self._receive.error
        self.source = self._ranks.index(self._receive.source)


class NoMessages:
    """Messages of a process that plays alone: sends vanish, receives leave memory as it is."""

    def send(self, rank: int, tag: int, data: np.ndarray, deadline: float) -> None:
        """Nothing is sent."""

    def receive(self, rank: int | None, tag: int, into: np.ndarray) -> Coming:
        """Nothing is waited for."""
        return _Nothing(rank or 0)


class _Nothing(Coming):
    """No message."""

    def __init__(self, source: int) -> None:
        self.source = source

    def is_there(self) -> bool:
        """Yes, for what it is."""
        return True

    def wait(self, deadline: float) -> None:
        """There is nothing to wait for."""
