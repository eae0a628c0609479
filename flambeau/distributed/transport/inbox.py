"""Messages that came, and receives that wait for them."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from flambeau.distributed.errors import DistBackendError

MESSAGE, EXCHANGE, FAREWELL = 1, 2, 3
"""Kinds of messages: of a send, of a collective, and that a process leaves."""
KINDS = frozenset((MESSAGE, EXCHANGE, FAREWELL))


@dataclass(frozen=True)
class Key:
    """Which receive a message is for: the group, the kind, and the tag or the number of a call."""

    group: int
    kind: int
    tag: int


@dataclass(eq=False)
class Message:
    """A message that came before it was asked for."""

    source: int
    label: bytes
    data: bytearray


@dataclass(eq=False)
class Receive:
    """One receive: where the bytes go, and what became of it. Ranks are those of the world."""

    sources: tuple[int, ...]
    view: memoryview
    source: int = -1
    label: bytes = b""
    error: Exception | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def finish(self, error: Exception | None = None) -> None:
        """Say that it is done."""
        self.error = error
        self.done.set()


class Inbox:
    """Matches messages with receives, in the order in which each came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Key, deque[Receive]] = {}
        self._arrived: dict[Key, deque[Message]] = {}
        self.gone: dict[int, str] = {}
        """Ranks from which nothing will come any more, and why."""

    def post(self, key: Key, receive: Receive) -> None:
        """Wait for a message, or take one that is there."""
        with self._lock:
            there = self._arrived.get(key, ())
            for message in there:
                if message.source in receive.sources:
                    break
            else:
                self._wait(key, receive)
                return
            self._arrived[key].remove(message)
        _fill(receive, message)

    def _wait(self, key: Key, receive: Receive) -> None:
        lost = [rank for rank in receive.sources if rank in self.gone]
        if len(lost) == len(receive.sources):
            receive.finish(DistBackendError(f"rank {lost[0]} {self.gone[lost[0]]}"))
            return
        self._waiting.setdefault(key, deque()).append(receive)

    def claim(self, key: Key, source: int, length: int, label: bytes) -> Receive | None:
        """The receive whose memory the next message of a rank may be read into."""
        with self._lock:
            for receive in self._waiting.get(key, ()):
                if source in receive.sources:
                    self._waiting[key].remove(receive)
                    if length <= len(receive.view):
                        return receive
                    receive.label = label
                    receive.finish(_too_long(length, len(receive.view)))
                    return None
        return None

    def withdraw(self, key: Key, receive: Receive) -> None:
        """Wait no longer."""
        with self._lock:
            if receive in self._waiting.get(key, ()):
                self._waiting[key].remove(receive)

    def deliver(self, key: Key, message: Message) -> None:
        """A whole message that nobody had claimed when it began to come."""
        with self._lock:
            for receive in self._waiting.get(key, ()):
                if message.source in receive.sources:
                    self._waiting[key].remove(receive)
                    break
            else:
                self._arrived.setdefault(key, deque()).append(message)
                return
        _fill(receive, message)

    def lose(self, rank: int, reason: str) -> None:
        """Nothing will come from a rank any more."""
        with self._lock:
            self.gone.setdefault(rank, reason)
            error = DistBackendError(f"rank {rank} {self.gone[rank]}")
            for waiting in self._waiting.values():
                for receive in list(waiting):
                    if all(source in self.gone for source in receive.sources):
                        waiting.remove(receive)
                        receive.finish(error)

    def is_awaited(self) -> bool:
        """Whether anybody waits."""
        with self._lock:
            return any(self._waiting.values())


def _fill(receive: Receive, message: Message) -> None:
    receive.source, receive.label = message.source, message.label
    if len(message.data) > len(receive.view):
        receive.finish(_too_long(len(message.data), len(receive.view)))
        return
    receive.view[: len(message.data)] = message.data
    receive.finish()


def _too_long(length: int, room: int) -> DistBackendError:
    return DistBackendError(
        f"Received data size doesn't match expected size: {length} bytes came, there is room "
        f"for {room}. Is there a distributed collective mismatch in your code?"
    )
