"""A store that one process has and others reach over TCP."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

from flambeau.distributed.errors import DistNetworkError, DistStoreError
from flambeau.distributed.stores.base import DEFAULT_TIMEOUT, Store, wait_timed_out
from flambeau.distributed.stores.requests import pack_request
from flambeau.distributed.stores.server import StoreServer
from flambeau.distributed.stores.table import HIDDEN
from flambeau.distributed.wire import connect, frame, local_address, receive_frame, unpack

PAUSE = 0.01
GRACE = 10.0
"""Seconds that an answer may take longer than the server was asked to wait."""


SHARED: dict[StoreServer, int] = {}
"""Servers that masters of this process share, and how many each has."""
SHARING = threading.Lock()


def _server(host: str, port: int, shared: bool) -> StoreServer:
    """The server of a new master; one that is there already if both may share it."""
    if not shared:
        return StoreServer(host, port)
    with SHARING:
        found = next((each for each in SHARED if (each.host, each.port) == (host, port)), None)
        server = found or StoreServer(host, port)
        SHARED[server] = SHARED.get(server, 0) + 1
        return server


def _leave(server: StoreServer) -> None:
    """A master ends, and its server with the last one."""
    with SHARING:
        SHARED[server] = SHARED.get(server, 1) - 1
        if SHARED[server]:
            return
        del SHARED[server]
    server.close()


class TCPStore(Store):
    """A store whose keys are in the process that is its master.

    The master listens on the address of `host_name`, and on no other. Who connects has to prove
    that it holds the secret: see `secret.py`.

    Args:
        host_name, port: where the master listens; port 0 takes a free one.
        world_size: how many processes will connect, if it is known.
        is_master: whether this process has the keys.
        timeout: for connecting, and for `get` and `wait`.
        wait_for_workers: whether the master waits until `world_size` processes have connected.
        multi_tenant: whether masters of one process on the same port share their keys.
        master_listen_fd: not supported.
        use_libuv: without meaning here.

    Raises:
        DistNetworkError: the port is in use, or the master does not answer.
        DistStoreError: not all processes connected in time.
    """

    __module__ = "torch.distributed"

    def __init__(self, host_name: str, port: int, world_size: int | None = None,
                 is_master: bool = False, timeout: timedelta = DEFAULT_TIMEOUT,
                 wait_for_workers: bool = True, multi_tenant: bool = False,
                 master_listen_fd: int | None = None, use_libuv: bool = True) -> None:  # fmt: skip
        super().__init__()
        if master_listen_fd is not None:
            raise NotImplementedError("TCPStore(master_listen_fd=...) is not implemented")
        self._timeout = timeout
        self.host, self.libuvBackend = host_name, use_libuv
        self._server = _server(host_name, port, multi_tenant) if is_master else None
        self.port = self._server.port if self._server else port
        self._lock = threading.Lock()
        try:
            self._connect()
            self.add(HIDDEN, 1)
            if is_master and wait_for_workers and world_size:
                self._wait_for_workers(world_size)
        except BaseException:
            self._close()
            raise

    def _connect(self) -> None:
        deadline = time.monotonic() + self._timeout.total_seconds()
        self._connection = connect(self.host, self.port, deadline)

    def _wait_for_workers(self, world_size: int) -> None:
        seconds = self._timeout.total_seconds()
        deadline = time.monotonic() + seconds
        while True:
            joined = self.add(HIDDEN, 0)
            if joined >= world_size:
                return
            if time.monotonic() >= deadline:
                raise DistStoreError(
                    f"Timed out after {round(seconds)} seconds waiting for clients. "
                    f"{joined}/{world_size} clients joined."
                )
            time.sleep(PAUSE)

    def local_address(self) -> str:
        """The address of this machine by which the store was reached."""
        return local_address(self._connection)

    def clone(self) -> TCPStore:
        """Another connection to the same keys, for another thread."""
        other = TCPStore.__new__(TCPStore)
        Store.__init__(other)
        other._timeout, other.libuvBackend = self._timeout, self.libuvBackend
        other.host, other.port, other._server = self.host, self.port, None
        other._lock = threading.Lock()
        other._connect()
        return other

    def _ask(self, operation: str, keys: list[str], values: list[bytes]) -> list[bytes]:
        status, *answer = self._request(operation, keys, values, self._timeout.total_seconds())
        if status == b"error":
            raise ValueError(answer[0].decode())
        return answer

    def _wait(self, keys: list[str], timeout: timedelta) -> None:
        milliseconds = b"%d" % round(timeout.total_seconds() * 1000)
        status, *_ = self._request("wait", keys, [milliseconds], timeout.total_seconds())
        if status == b"late":
            raise wait_timed_out(keys, timeout)

    def _request(self, operation: str, keys: list[str], values: list[bytes],
                 seconds: float) -> list[bytes]:  # fmt: skip
        request = frame(pack_request(operation, keys, values))
        with self._lock:
            try:
                self._connection.settimeout(seconds + GRACE)
                self._connection.sendall(request)
                return unpack(receive_frame(self._connection))
            except BaseException as error:
                self._connection.close()  # the answer to this request must not meet the next one
                if isinstance(error, OSError):
                    raise DistNetworkError(f"{error.strerror or error}: the store at "
                                           f"({self.host}, {self.port})") from error  # fmt: skip
                raise

    def _close(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()
        if self._server is not None:
            _leave(self._server)

    def __repr__(self) -> str:
        kind = "master" if self._server else "client"
        return f"TCPStore({self.host}:{self.port}, {kind})"

    def __del__(self, *_: Any) -> None:
        if hasattr(self, "_server"):
            self._close()
