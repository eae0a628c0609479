"""A connection from each process to every other, and the thread that reads from all of them."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta

from flambeau.distributed.errors import DistBackendError, DistNetworkError, DistStoreError
from flambeau.distributed.stores import PrefixStore, Store, TCPStore
from flambeau.distributed.transport import peers
from flambeau.distributed.transport.call import LABEL
from flambeau.distributed.transport.callers import Callers
from flambeau.distributed.transport.inbox import FAREWELL, KINDS, Inbox, Key, Message, Receive
from flambeau.distributed.wire import connect, listen

HEADER = struct.Struct(f"!4sQBqQ{LABEL}s")
"""A mark, group, kind, tag, length in bytes, label."""
MARK = b"flb1"
"""How every message begins: what does not is no message, and ends the connection."""
LARGEST = 1 << 40
STEP = 1 << 20
LOOK = 0.2
"""Seconds between looks at processes that may be stopped."""
ADDRESS = "FLAMBEAU_DISTRIBUTED_ADDRESS"
"""In the environment: the address to listen on, where the store does not tell."""
DIED = "has died"
LEFT = "has left: it ended, or destroyed its process group"


@dataclass(eq=False)
class Peer:
    """Another process: its connection, and the message that is coming."""

    rank: int
    connection: socket.socket
    machine: str = ""
    pid: int = 0
    sending: threading.Lock = field(default_factory=threading.Lock)
    header: bytearray = field(default_factory=bytearray)
    key: Key | None = None
    label: bytes = b""
    receive: Receive | None = None
    data: bytearray = field(default_factory=bytearray)
    missing: int = 0
    view: memoryview = field(default_factory=lambda: memoryview(b""))
    seen_in_trouble: bool = False
    leaves: bool = False


class Mesh:
    """The connections of one process. Ranks are those of the world."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        self.rank, self.size = rank, size
        self.inbox = Inbox()
        self.machine = peers.machine()
        self._peers: dict[int, Peer] = {}
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()
        self._meet(store, timeout)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._read_all, name="flambeau-mesh", daemon=True)
        self._thread.start()

    def _meet(self, store: Store, timeout: timedelta) -> None:
        """Connect to lower ranks, be connected to by higher ones; nobody listens afterwards."""
        deadline = time.monotonic() + timeout.total_seconds()
        listener = listen(_own_address(store), 0)
        try:
            host, port = listener.getsockname()[:2]
            store.set(f"mesh/{self.rank}", f"{host} {port} {self.machine} {os.getpid()}")
            told = {rank: self._told(store, rank, deadline) for rank in range(self.size)}
            for rank in range(self.rank):
                connection = connect(told[rank][0], int(told[rank][1]), deadline)
                connection.sendall(struct.pack("!I", self.rank))
                self._add(rank, connection)
            with contextlib.closing(Callers(listener, self._may_call)) as callers:
                while len(self._peers) < self.size - 1:
                    self._check_those_awaited(told)
                    self._hear(callers, deadline)
        except BaseException:
            self._close_connections()
            raise
        finally:
            listener.close()
        for rank, peer in self._peers.items():
            peer.machine, peer.pid = told[rank][2], int(told[rank][3])

    def _told(self, store: Store, rank: int, deadline: float) -> list[str]:
        left = timedelta(seconds=max(deadline - time.monotonic(), 0.001))
        try:
            store.wait([f"mesh/{rank}"], left)
        except DistStoreError as error:
            raise DistStoreError(
                f"{error}\nRank {rank} has not come to init_process_group."
            ) from error
        return store.get(f"mesh/{rank}").decode().split()

    def _check_those_awaited(self, told: dict[int, list[str]]) -> None:
        """Raise DistNetworkError if a process that will not connect any more is waited for."""
        for rank in range(self.rank + 1, self.size):
            _, _, machine, pid = told[rank]
            if rank in self._peers or machine != self.machine:
                continue
            reason = peers.trouble(int(pid))
            if reason is not None and "stopped" not in reason:
                raise DistNetworkError(f"init_process_group: rank {rank} {reason}")

    def _may_call(self, rank: int) -> bool:
        return self.rank < rank < self.size and rank not in self._peers

    def _hear(self, callers: Callers, deadline: float) -> None:
        for rank, connection in callers.wait(min(max(deadline - time.monotonic(), 0), LOOK)):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._add(rank, connection)
        missing = sorted(set(range(self.rank + 1, self.size)) - set(self._peers))
        if missing and time.monotonic() >= deadline:
            raise DistNetworkError(f"Ranks {missing} have not connected in time.")

    def _add(self, rank: int, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setblocking(False)
        self._peers[rank] = Peer(rank, connection)
        self._selector.register(connection, selectors.EVENT_READ, self._peers[rank])

    # ----- Sending -----

    def send(self, rank: int, key: Key, label: bytes, data: memoryview, deadline: float) -> None:
        """Send a message; it is on its way when this returns.

        Raises:
            DistBackendError: the process is gone, or takes nothing until the deadline.
        """
        header = HEADER.pack(MARK, key.group, key.kind, key.tag, len(data), label)
        peer = self._peers[rank]
        with peer.sending:
            for part in (memoryview(header), data):
                self._send(peer, part, deadline)

    def _send(self, peer: Peer, data: memoryview, deadline: float) -> None:
        at = 0
        while at < len(data):
            try:
                at += peer.connection.send(data[at : at + (1 << 20)])
            except BlockingIOError:
                self._until_writable(peer, deadline)
            except OSError as error:
                reason = self.inbox.gone.get(peer.rank, DIED)
                raise DistBackendError(f"rank {peer.rank} {reason}") from error

    def _until_writable(self, peer: Peer, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(peer.connection, selectors.EVENT_WRITE)
            while not selector.select(LOOK):
                if peer.rank in self.inbox.gone:
                    raise DistBackendError(f"rank {peer.rank} {self.inbox.gone[peer.rank]}")
                if time.monotonic() >= deadline:
                    raise DistBackendError(f"Timed out: rank {peer.rank} takes no data")

    # ----- The thread that reads -----

    def _read_all(self) -> None:
        next_look = time.monotonic() + LOOK
        while True:
            for key, _ in self._selector.select(LOOK):
                if key.fileobj is self._woken:
                    return
                self._read(key.data)
            if time.monotonic() >= next_look:
                self._look_for_trouble()
                next_look = time.monotonic() + LOOK

    def _read(self, peer: Peer) -> None:
        try:
            while self._read_some(peer):
                pass
        except BlockingIOError:
            return
        except OSError:
            self._lose(peer, LEFT if peer.leaves else DIED)
        except Exception as error:  # whatever a peer sends, the others are served
            self._lose(peer, f"sent what cannot be read: {error or type(error).__name__}")
            with contextlib.suppress(OSError):
                peer.connection.shutdown(socket.SHUT_RDWR)  # it learns that nobody listens

    def _read_some(self, peer: Peer) -> bool:
        if peer.key is None:
            got = peer.connection.recv(HEADER.size - len(peer.header))
            if not got:
                raise ConnectionError("end of the connection")
            peer.header += got
            if len(peer.header) == HEADER.size:
                self._begin(peer)
        if peer.key is None:
            return True
        if len(peer.view):
            count = peer.connection.recv_into(peer.view)
            if not count:
                raise ConnectionError("end of the connection")
            peer.view = peer.view[count:]
        if not len(peer.view) and peer.missing:
            self._grow(peer)
        elif not len(peer.view):
            self._end(peer)
        return True

    def _begin(self, peer: Peer) -> None:
        mark, group, kind, tag, length, label = HEADER.unpack(peer.header)
        peer.header.clear()
        if mark != MARK or kind not in KINDS or (kind == FAREWELL and length):
            raise ValueError("it does not begin as a message does")
        if length > LARGEST:
            raise ValueError(f"a message of {length} bytes")
        peer.key, peer.label = Key(group, kind, tag), label
        peer.receive = self.inbox.claim(peer.key, peer.rank, length, label)
        if peer.receive is None:
            peer.data, peer.missing = bytearray(), length
            if length:
                self._grow(peer)
        else:
            peer.view = peer.receive.view[:length]

    def _grow(self, peer: Peer) -> None:
        """Make room for more of a message that nobody waits for: as much as has come already.

        Its length is not believed before its bytes are there.
        """
        peer.view.release()
        before = len(peer.data)
        more = min(peer.missing, max(before, STEP))
        peer.data += bytes(more)
        peer.missing -= more
        peer.view = memoryview(peer.data)[before:]

    def _end(self, peer: Peer) -> None:
        key, receive = peer.key, peer.receive
        peer.key = peer.receive = None
        if key is None:
            return
        if key.kind == FAREWELL:
            peer.leaves = True
        elif receive is not None:
            receive.source, receive.label = peer.rank, peer.label
            receive.finish()
        else:
            self.inbox.deliver(key, Message(peer.rank, peer.label, peer.data))
            peer.data = bytearray()

    def _lose(self, peer: Peer, reason: str) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(peer.connection)
        if peer.receive is not None:
            peer.receive.finish(DistBackendError(f"rank {peer.rank} {reason}"))
            peer.receive = None
        self.inbox.lose(peer.rank, reason)

    def _look_for_trouble(self) -> None:
        """A process of this machine that is stopped twice in a row is taken for lost."""
        for peer in self._peers.values():
            if peer.rank in self.inbox.gone or peer.machine != self.machine:
                continue
            reason = peers.trouble(peer.pid)
            if reason is not None and peer.seen_in_trouble and "stopped" in reason:
                self.inbox.lose(peer.rank, reason)
            peer.seen_in_trouble = reason is not None

    # ----- The end -----

    def close(self) -> None:
        """Say farewell and end all connections."""
        header = HEADER.pack(MARK, 0, FAREWELL, 0, 0, b"")
        for peer in self._peers.values():
            with contextlib.suppress(OSError, DistBackendError), peer.sending:
                self._send(peer, memoryview(header), time.monotonic() + 1)
        self._waker.close()
        self._thread.join(5)
        self._woken.close()
        self._close_connections()

    def _close_connections(self) -> None:
        for peer in self._peers.values():
            _drain(peer.connection)
            peer.connection.close()
        self._selector.close()


def _drain(connection: socket.socket) -> None:
    """Read what is there: closing a connection with unread bytes takes back what was sent."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass


def _own_address(store: Store) -> str:
    """The address by which the store was reached."""
    if ADDRESS in os.environ:
        return os.environ[ADDRESS]
    below = store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store
    return below.local_address() if isinstance(below, TCPStore) else "127.0.0.1"
