"""Messages between processes: sockets, frames, and the handshake that comes before all else.

A frame is its length in four bytes and that many bytes; a longer one than the reader allows ends
the connection. A record is several byte strings in one frame. Nothing is unpickled here.

The handshake: the listener sends a nonce; the caller answers with a nonce of its own and a proof;
the listener answers with its proof. Both know then that the other holds the secret.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from flambeau.distributed import secret
from flambeau.distributed.errors import DistNetworkError

LENGTH = struct.Struct("!I")
HANDSHAKE = secret.NONCE + secret.PROOF
SHORTEST = 0.05
"""Seconds that a handshake has at least."""
LARGEST = 1 << 26
"""Bytes of the largest frame of a store."""
REFUSED = "the other side closed the connection in the handshake: is its secret another one?"
SILENT = "the other side has not answered in the handshake in time: is it another program?"


@dataclass(eq=False)
class Caller:
    """A connection to a listener, and what came over it."""

    connection: socket.socket
    challenge: bytes = field(default_factory=secret.nonce)
    since: float = field(default_factory=time.monotonic)
    proved: bool = False
    received: bytearray = field(default_factory=bytearray)


def pack(*parts: bytes) -> bytes:
    """Byte strings in one."""
    return b"".join(LENGTH.pack(len(part)) + part for part in parts)


def unpack(record: bytes) -> list[bytes]:
    """The byte strings of a record.

    Raises:
        ValueError: it is none.
    """
    parts = []
    at = 0
    while at < len(record):
        if at + LENGTH.size > len(record):
            raise ValueError("a record ends within a length")
        (length,) = LENGTH.unpack_from(record, at)
        at += LENGTH.size
        if at + length > len(record):
            raise ValueError("a record ends within a part")
        parts.append(record[at : at + length])
        at += length
    return parts


def frame(payload: bytes) -> bytes:
    """A frame around bytes.

    Raises:
        ValueError: there are too many.
    """
    if len(payload) > LARGEST:
        raise ValueError(f"a message of {len(payload)} bytes is longer than {LARGEST}")
    return LENGTH.pack(len(payload)) + payload


def receive_exactly(connection: socket.socket, size: int,
                    deadline: float | None = None) -> bytes:  # fmt: skip
    """So many bytes.

    Args:
        deadline: when all have to be there; None: the connection's timeout is for each part.

    Raises:
        DistNetworkError: the connection ended before. TimeoutError: they have not come in time.
    """
    parts = bytearray()
    while len(parts) < size:
        if deadline is not None:
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
        got = connection.recv(min(size - len(parts), 1 << 20))
        if not got:
            raise DistNetworkError(
                f"Failed to recv, got {len(parts)} bytes. Connection was likely closed. "
                "Did the remote server shutdown or crash?"
            )
        parts += got
    return bytes(parts)


def receive_frame(connection: socket.socket, largest: int = LARGEST) -> bytes:
    """The payload of the next frame.

    Raises:
        DistNetworkError: the connection ended, or the frame is longer than `largest`.
    """
    (length,) = LENGTH.unpack(receive_exactly(connection, LENGTH.size))
    if length > largest:
        raise DistNetworkError(f"a message of {length} bytes is longer than {largest}")
    return receive_exactly(connection, length)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on one address of this machine, and on no other.

    Raises:
        DistNetworkError: the address is another machine's, or the port is in use.
    """
    family, address = _addresses(host, port)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise DistNetworkError(
            "The server socket has failed to listen on any local network address. "
            f"port: {port}, host: {host}, error: {error.strerror}"
        ) from error
    return listener


def connect(host: str, port: int, deadline: float) -> socket.socket:
    """A connection whose other side has proved that it holds the secret.

    Tried again until `deadline` (of `time.monotonic`): the other side may start later.

    Raises:
        DistNetworkError: nobody answered in time, or without the secret.
    """
    started, pause = time.monotonic(), 0.005
    while True:
        try:
            connection = _connected(host, port, deadline)
            break
        except OSError as error:
            if time.monotonic() + pause >= deadline:
                waited = round((deadline - started) * 1000)
                raise DistNetworkError(
                    f"The client socket has timed out after {waited}ms while trying to connect to "
                    f"({host}, {port})."
                ) from error
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)
    try:
        _introduce(connection, max(deadline, time.monotonic() + SHORTEST))
    except BaseException:
        connection.close()
        raise
    return connection


def check_answer(challenge: bytes, answer: bytes) -> bytes | None:
    """The listener's own proof, if the answer to its challenge is right."""
    own, given = answer[: secret.NONCE], answer[secret.NONCE :]
    if not secret.proves(b"caller", challenge, own, given):
        return None
    return secret.proof(b"listener", own, challenge)


def local_address(connection: socket.socket) -> str:
    """The address of this machine by which a connection was made."""
    return str(connection.getsockname()[0])


def _addresses(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise DistNetworkError(f"The address of {host!r} is not known: {error}") from error
    return [(entry[0], entry[4]) for entry in sorted(found, key=lambda entry: entry[0])]


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    error: OSError = ConnectionRefusedError("there is no address")
    for family, address in _addresses(host, port):
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.settimeout(max(deadline - time.monotonic(), 0.05))
        try:
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError as failed:
            connection.close()
            error = failed
    raise error


def _introduce(connection: socket.socket, deadline: float) -> None:
    """The caller's side of the handshake."""
    try:
        challenge = receive_exactly(connection, secret.NONCE, deadline)
        own = secret.nonce()
        connection.sendall(own + secret.proof(b"caller", challenge, own))
        reply = receive_exactly(connection, secret.PROOF, deadline)
    except TimeoutError as error:
        raise DistNetworkError(SILENT) from error
    except (OSError, DistNetworkError) as error:
        raise DistNetworkError(REFUSED) from error
    if not secret.proves(b"listener", own, challenge, reply):
        raise DistNetworkError("the process that listens there does not hold the secret")


def close_all(sockets: Iterable[socket.socket]) -> None:
    """Close sockets, whatever their state."""
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
