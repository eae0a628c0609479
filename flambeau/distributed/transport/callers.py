"""Processes that call while all meet: each proves that it holds the secret, then says its rank.

Many are heard at once: one that is slow, or a stranger that says nothing, keeps nobody waiting.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable

from flambeau.distributed.wire import HANDSHAKE, Caller, check_answer

RANK = struct.Struct("!I")
WHOLE = HANDSHAKE + RANK.size
"""Bytes of a caller's answer and its rank; what follows is a message, and is not read here."""
PATIENCE = 10.0
"""Seconds that a caller has for them."""


class Callers:
    """The connections to a listener, until they have proved who they are.

    Args:
        is_expected: whether a rank may call, and has not called yet.
    """

    def __init__(self, listener: socket.socket, is_expected: Callable[[int], bool]) -> None:
        self._listener, self._is_expected = listener, is_expected
        listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._callers: dict[Caller, None] = {}

    def wait(self, seconds: float) -> list[tuple[int, socket.socket]]:
        """Ranks that have proved themselves, and their connections; after so long, none."""
        found = []
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._listener:
                self._accept()
                continue
            rank = self._heard(key.data)
            if rank is not None:
                found.append((rank, key.data.connection))
        self._drop_the_slow()
        return found

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # such as no descriptor left: strangers may have them
            self._drop_the_first()
            return
        connection.setblocking(False)
        caller = Caller(connection)
        self._callers[caller] = None
        self._selector.register(connection, selectors.EVENT_READ, caller)
        self._say(caller, caller.challenge)

    def _heard(self, caller: Caller) -> int | None:
        """The rank that a caller has proved to be, once it is known."""
        if caller not in self._callers:
            return None
        try:
            got = caller.connection.recv(WHOLE - len(caller.received))
        except BlockingIOError:
            return None
        except OSError:
            got = b""
        caller.received += got
        if not got or not self._is_right(caller):
            self._drop(caller)
            return None
        if len(caller.received) < WHOLE:
            return None
        (rank,) = RANK.unpack_from(caller.received, HANDSHAKE)
        if not self._is_expected(rank):
            self._drop(caller)
            return None
        self._forget(caller)
        return int(rank)

    def _is_right(self, caller: Caller) -> bool:
        """Whether what came so far is what a process with the secret says; it gets our proof."""
        if caller.proved or len(caller.received) < HANDSHAKE:
            return True
        reply = check_answer(caller.challenge, bytes(caller.received[:HANDSHAKE]))
        caller.proved = reply is not None
        return reply is not None and self._say(caller, reply)

    def _say(self, caller: Caller, text: bytes) -> bool:
        """Send a few bytes, which a new connection takes at once."""
        try:
            return caller.connection.send(text) == len(text)
        except OSError:
            return False

    def _drop_the_slow(self) -> None:
        now = time.monotonic()
        for caller in [each for each in self._callers if now >= each.since + PATIENCE]:
            self._drop(caller)

    def _drop_the_first(self) -> None:
        for caller in self._callers:
            self._drop(caller)
            return
        time.sleep(0.01)  # others of this process have all descriptors

    def _forget(self, caller: Caller) -> None:
        del self._callers[caller]
        self._selector.unregister(caller.connection)

    def _drop(self, caller: Caller) -> None:
        self._forget(caller)
        caller.connection.close()

    def close(self) -> None:
        """Close the connections of those who have not proved anything."""
        for caller in list(self._callers):
            self._drop(caller)
        self._selector.close()
