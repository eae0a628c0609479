"""The side of a TCPStore that has the keys: one thread that serves all connections."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from flambeau.distributed.stores.requests import unpack_request
from flambeau.distributed.stores.table import Table
from flambeau.distributed.wire import (
    HANDSHAKE,
    LARGEST,
    LENGTH,
    Caller,
    check_answer,
    close_all,
    frame,
    listen,
    pack,
)

PATIENCE = 10.0
"""Seconds that a caller has to prove that it holds the secret."""
MOST_UNSENT = LENGTH.size + LARGEST
"""Bytes of answers that a caller has not read: one that asks on and reads nothing is cut off."""
LONGEST = 10.0**9
"""Seconds that somebody may wait."""
HOUR = 3600.0
"""The longest time that a selector is asked to wait: it takes no number however large."""
BROKEN = (OSError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError)
"""What a caller that is gone, unproved, or speaks another language leads to."""


@dataclass(eq=False)
class _Caller(Caller):
    """A connection, and how far it has come."""

    unsent: bytearray = field(default_factory=bytearray)
    awaited: list[str] = field(default_factory=list)
    deadline: float = 0.0


class StoreServer:
    """Listens on one address until it is closed; nobody without the secret is answered."""

    def __init__(self, host: str, port: int) -> None:
        self._listener = listen(host, port)
        self._listener.setblocking(False)
        self.host, self.port = host, int(self._listener.getsockname()[1])
        self._table = Table()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._callers: set[_Caller] = set()
        self._waker, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="flambeau-store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and all connections."""
        self._waker.close()
        if self._thread is not threading.current_thread():
            self._thread.join(5)

    def _serve(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            self._selector.close()
            close_all([self._listener, self._woken, *(each.connection for each in self._callers)])

    def _turn(self) -> bool:
        for key, events in self._selector.select(self._next_deadline()):
            if key.fileobj is self._woken:
                return False
            if key.fileobj is self._listener:
                self._accept()
            else:
                self._attend(key.data, events)
        self._look_at_clock()
        return True

    def _next_deadline(self) -> float | None:
        times = [each.deadline for each in self._callers if each.awaited]
        times += [each.since + PATIENCE for each in self._callers if not each.proved]
        return min(max(min(times) - time.monotonic(), 0), HOUR) if times else None

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # such as no descriptor left: strangers may have them
            self._drop_the_first_stranger()
            return
        with contextlib.suppress(OSError):
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            caller = _Caller(connection)
            self._callers.add(caller)
            self._selector.register(connection, selectors.EVENT_READ, caller)
            self._send(caller, caller.challenge)

    def _attend(self, caller: _Caller, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                self._send(caller, b"")
            if events & selectors.EVENT_READ:
                got = caller.connection.recv(1 << 16)
                if not got:
                    raise ConnectionError("the caller has gone")
                caller.received += got
                self._take(caller)
        except BlockingIOError:
            return
        except BROKEN:
            self._drop(caller)

    def _take(self, caller: _Caller) -> None:
        """Answer what has come whole."""
        if not caller.proved:
            if len(caller.received) < HANDSHAKE:
                return
            reply = check_answer(caller.challenge, bytes(caller.received[:HANDSHAKE]))
            if reply is None:
                raise ValueError("the caller does not hold the secret")
            del caller.received[:HANDSHAKE]
            caller.proved = True
            self._send(caller, reply)
        while len(caller.received) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(caller.received)
            if length > LARGEST:
                raise ValueError("the frame is too long")
            end = LENGTH.size + length
            if len(caller.received) < end:
                return
            record = bytes(caller.received[LENGTH.size : end])
            del caller.received[:end]
            self._answer(caller, record)

    def _answer(self, caller: _Caller, record: bytes) -> None:
        operation, keys, values = unpack_request(record)
        if operation == "wait":
            caller.awaited = keys
            caller.deadline = time.monotonic() + min(int(values[0]) / 1000, LONGEST)
            self._settle(caller)
            return
        try:
            answer = self._table.perform(operation, keys, values)
        except ValueError as error:
            self._send(caller, frame(pack(b"error", str(error).encode())))
            return
        self._send(caller, frame(pack(b"done", *answer)))
        for other in [each for each in self._callers if each.awaited]:
            self._guarded(self._settle, other)

    def _settle(self, caller: _Caller) -> None:
        if not caller.awaited or self._table.has(caller.awaited):
            caller.awaited = []
            self._send(caller, frame(pack(b"done")))

    def _look_at_clock(self) -> None:
        now = time.monotonic()
        for caller in list(self._callers):
            if not caller.proved and now >= caller.since + PATIENCE:
                self._drop(caller)
            elif caller.awaited and now >= caller.deadline:
                caller.awaited = []
                self._guarded(self._send_late, caller)

    def _send_late(self, caller: _Caller) -> None:
        self._send(caller, frame(pack(b"late")))

    def _guarded(self, act: Callable[[_Caller], None], caller: _Caller) -> None:
        try:
            act(caller)
        except BROKEN:
            self._drop(caller)

    def _send(self, caller: _Caller, payload: bytes) -> None:
        """Send what the connection takes, and the rest when it takes more."""
        caller.unsent += payload
        with contextlib.suppress(BlockingIOError):
            while caller.unsent:
                del caller.unsent[: caller.connection.send(caller.unsent)]
        if len(caller.unsent) > MOST_UNSENT:
            raise ValueError("the caller does not read its answers")
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if caller.unsent else 0)
        self._selector.modify(caller.connection, wanted, caller)

    def _drop_the_first_stranger(self) -> None:
        strangers = [each for each in self._callers if not each.proved]
        if strangers:
            self._drop(min(strangers, key=lambda each: each.since))
        else:
            time.sleep(0.01)  # others of this process have all descriptors

    def _drop(self, caller: _Caller) -> None:
        if caller in self._callers:
            self._callers.remove(caller)
            self._selector.unregister(caller.connection)
            caller.connection.close()
