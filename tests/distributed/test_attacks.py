"""Whoever speaks to a store or to a process without the secret, or nonsense, changes nothing."""

from __future__ import annotations

import ast
import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from flambeau.distributed import secret, wire
from flambeau.distributed.errors import DistNetworkError, DistStoreError
from flambeau.distributed.stores import FileStore, TCPStore, server
from flambeau.distributed.stores.requests import pack_request
from flambeau.distributed.transport import callers as callers_of
from flambeau.distributed.transport.callers import Callers
from tests.distributed.processes import ROOT, run
from tests.random_seeds import generator

LONG = timedelta(seconds=600)
SHORT = timedelta(seconds=0.5)
FOREVER = 1e6


@pytest.fixture
def master() -> Iterator[TCPStore]:
    """A store that is found in order after whatever was done to it."""
    store = TCPStore("127.0.0.1", 0, 1, True, LONG)
    store.set("kept", "1")
    before = store.num_keys()
    yield store
    assert store._server._thread.is_alive()
    client = TCPStore("127.0.0.1", store.port, timeout=LONG)
    assert client.get("kept") == b"1"
    assert store.num_keys() == before


def called(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=100)


def is_cut_off(connection: socket.socket) -> bool:
    """Whether the other side ends the connection, whatever it has said before."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True


def nonsense() -> list[bytes]:
    draw = generator("nonsense")
    drawn = [draw.randbytes(draw.choice((64, 65, 100, 5000, 200_000))) for _ in range(8)]
    return [b"\0" * 64, b"\xff" * 1000, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".ljust(80), *drawn]


def test_nonsense_instead_of_a_proof(master: TCPStore):
    for text in nonsense():
        with called(master.port) as stranger:
            with contextlib.suppress(ConnectionError):
                stranger.sendall(text)
            assert is_cut_off(stranger)


def test_who_ends_anywhere_in_the_handshake(master: TCPStore):
    for count in (0, 1, 31, 32, 63):
        with called(master.port) as stranger:
            stranger.sendall(b"x" * count)


def test_a_proof_that_was_heard_before(master: TCPStore):
    """What a process with the secret said once opens nothing to who repeats it."""
    with called(master.port) as honest:
        challenge = wire.receive_exactly(honest, secret.NONCE)
        own = secret.nonce()
        heard = own + secret.proof(b"caller", challenge, own)
        honest.sendall(heard)
        reply = wire.receive_exactly(honest, secret.PROOF)
        assert secret.proves(b"listener", own, challenge, reply)
    for said in (heard, own + reply, challenge + reply):
        with called(master.port) as stranger:
            assert len(wire.receive_exactly(stranger, secret.NONCE)) == secret.NONCE
            stranger.sendall(said)
            assert stranger.recv(1) == b""


def test_a_caller_that_is_too_slow(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "PATIENCE", 0.05)
    slow = server.StoreServer("127.0.0.1", 0)
    with contextlib.closing(slow), called(slow.port) as stranger:
        stranger.sendall(b"x")
        assert is_cut_off(stranger)


def records() -> Iterator[bytes]:
    """What a process with the secret might send by mistake."""
    draw = generator("records")
    yield from (b"", b"\0\0\0", wire.pack(b"set"), wire.pack(b"a", b"b", b"c", b"d"))
    yield pack_request("nothing like this", ["k"], [b"v"])
    yield pack_request("compare_set", ["new"], [b"v"])
    yield pack_request("get", [], []) + b"\xff"
    yield wire.pack(b"\xff\xfe", b"", b"")
    yield pack_request("add", [], [])
    yield pack_request("wait", ["k"], [b"soon"])
    yield pack_request("wait", ["k"], [b"9" * 400])
    yield pack_request("wait", ["k"], [])
    yield from (draw.randbytes(draw.randrange(200)) for _ in range(20))


def test_nonsense_after_a_proof(master: TCPStore):
    for record in records():
        client = TCPStore("127.0.0.1", master.port, timeout=LONG)
        client._connection.sendall(wire.frame(record))
        client._connection.shutdown(socket.SHUT_WR)
        assert is_cut_off(client._connection)


def test_a_wait_without_end(master: TCPStore):
    client = TCPStore("127.0.0.1", master.port, timeout=LONG)
    milliseconds = b"%d" % 10**15
    client._connection.sendall(wire.frame(pack_request("wait", ["later"], [milliseconds])))
    assert master.add("there", 1) == 1
    master.set("later", "1")
    assert wire.unpack(wire.receive_frame(client._connection)) == [b"done"]
    master.delete_key("later")
    master.delete_key("there")


def test_who_never_reads_its_answers_is_cut_off(master: TCPStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "MOST_UNSENT", 1 << 20)
    master.set("large", b"x" * (1 << 19))
    client = TCPStore("127.0.0.1", master.port, timeout=LONG)
    request = wire.frame(pack_request("get", ["large"], []))
    end = time.monotonic() + 100
    with pytest.raises(ConnectionError):  # the system keeps some of the questions and answers
        while time.monotonic() < end:
            client._connection.sendall(request)
    master.delete_key("large")


SMALL = """
import resource, sys, time
from flambeau.distributed.stores import TCPStore, server
server.PATIENCE = 1e6
store = TCPStore("127.0.0.1", 0, 1, True)
used = len(__import__("os").listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (used + 12, used + 12))
print(store.port, flush=True)
store.get("done")
"""


def test_strangers_that_take_all_descriptors():
    if not Path("/proc/self/fd").exists():
        pytest.skip("the system does not tell which descriptors there are")
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(
            [sys.executable, "-c", SMALL], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)}))  # fmt: skip
        stack.callback(process.kill)
        port = int(process.stdout.readline())
        strangers = [stack.enter_context(called(port)) for _ in range(60)]
        client = TCPStore("127.0.0.1", port, timeout=LONG)
        client.set("done", "1")
        assert process.wait(100) == 0
        assert all(is_cut_off(stranger) for stranger in strangers)


Act = Callable[[socket.socket], None]


def drip(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(b"x")
            time.sleep(0.02)


def say(text: bytes) -> Act:
    return lambda connection: connection.sendall(text)


@pytest.mark.parametrize(("act", "patience", "error"), [
    pytest.param(lambda connection: connection.close(), LONG, "is its secret another", id="ends"),
    pytest.param(lambda connection: connection.recv(1000), SHORT, "has not answered", id="silent"),
    pytest.param(drip, SHORT, "has not answered|does not hold the secret", id="slow"),
    pytest.param(say(b"y" * 64), LONG, "does not hold the secret", id="wrong"),
    pytest.param(say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), SHORT, "has not answered", id="other"),
])  # fmt: skip
def test_something_else_listens(act: Act, patience: timedelta, error: str):
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(wire.listen("127.0.0.1", 0))
        accepted: list[socket.socket] = []

        def serve() -> None:
            connection, _ = listener.accept()
            accepted.append(connection)
            act(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(DistNetworkError, match=error):
            TCPStore("127.0.0.1", port, timeout=patience)
        thread.join(100)
        assert not thread.is_alive()
        for connection in accepted:
            connection.close()


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Callers]]:
    """The port of a process that waits for ranks 1 and 2, however long strangers take."""
    monkeypatch.setattr(callers_of, "PATIENCE", FOREVER)
    listener = wire.listen("127.0.0.1", 0)
    heard = Callers(listener, lambda rank: rank in (1, 2))
    with listener, contextlib.closing(heard):
        yield listener.getsockname()[1], heard


def call_as(rank: int, port: int, more: bytes = b"") -> socket.socket:
    connection = wire.connect("127.0.0.1", port, time.monotonic() + 100)
    connection.sendall(struct.pack("!I", rank) + more)
    return connection


def until_found(heard: Callers) -> tuple[int, socket.socket]:
    while True:
        for found in heard.wait(0.2):
            return found


def test_strangers_do_not_keep_a_rank_waiting(callers: tuple[int, Callers]):
    port, heard = callers
    with contextlib.ExitStack() as stack:
        for text in (*[b""] * 20, *[b"x"] * 20, *nonsense()):
            stranger = stack.enter_context(called(port))
            stranger.settimeout(0)
            with contextlib.suppress(OSError):
                stranger.send(text)
        made: list[socket.socket] = []
        thread = threading.Thread(target=lambda: made.append(call_as(2, port, b"message")))
        thread.start()
        rank, connection = until_found(heard)
        thread.join(100)
        stack.enter_context(connection)
        stack.enter_context(made[0])
        assert rank == 2
        connection.settimeout(100)
        assert wire.receive_exactly(connection, 7) == b"message"  # nothing of it was taken


def test_a_rank_that_is_not_expected(callers: tuple[int, Callers]):
    port, heard = callers
    made: list[socket.socket] = []

    def both() -> None:
        made.append(call_as(7, port))
        made.append(call_as(1, port))

    thread = threading.Thread(target=both)
    thread.start()
    rank, connection = until_found(heard)
    thread.join(100)
    assert rank == 1
    assert is_cut_off(made[0])
    for each in (connection, *made):
        each.close()


MESSAGES = {
    "nonsense": "b'\\x5a' * 400",
    "another kind": "mesh.HEADER.pack(mesh.MARK, 1, 77, 0, 5, b'')",
    "too long": "mesh.HEADER.pack(mesh.MARK, 1, 1, 0, 1 << 60, b'')",
    "a long farewell": "mesh.HEADER.pack(mesh.MARK, 0, 3, 0, 99, b'')",
}


@pytest.mark.parametrize("over", ["0", "1"], ids=["sockets", "shared memory"])
@pytest.mark.parametrize("message", MESSAGES.values(), ids=list(MESSAGES))
def test_nonsense_in_the_middle_of_a_collective(message: str, over: str):
    text = f"""
from flambeau.distributed import world
from flambeau.distributed.transport import mesh
dist.barrier()
if RANK == 1:
    world.State.mesh._peers[0].connection.send({message})
    error = error_of(lambda: dist.recv(torch.ones(1), 0))
else:
    error = error_of(lambda: dist.all_reduce(torch.ones(300_000)))
tell(error[0])
"""
    error, other = run(text, 2, FLAMBEAU_DISTRIBUTED_SHARED_MEMORY=over)
    assert error.startswith("all_reduce: Connection closed by peer: rank 1 sent what cannot be")
    assert other.startswith("recv: Connection closed by peer: rank 0 has died")


def test_a_length_is_not_believed():
    """Room for a message is made as its bytes come."""
    text = """
import resource
from flambeau.distributed import world
from flambeau.distributed.transport import mesh
dist.barrier()
if RANK == 1:
    connection = world.State.mesh._peers[0].connection
    connection.send(mesh.HEADER.pack(mesh.MARK, 1, 1, 5, 1 << 40, b"") + b"x" * 1000)
    dist.barrier()
    tell(0)
else:
    def most():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    before = most()
    peer = world.State.mesh._peers[1]
    while not peer.data:
        time.sleep(0.001)
    dist.barrier()
    tell([len(peer.data), peer.missing, most() - before])
"""
    there, missing, grown = run(text, 2)[0]
    assert there == 1 << 20
    assert missing == (1 << 40) - (1 << 20)
    assert grown < 100_000  # kilobytes


def test_long_messages_that_nobody_waits_for_yet():
    text = """
if RANK == 0:
    for count in (0, 1, 262_144, 262_145, 1_000_000, 3_333_333):
        dist.send(torch.arange(count), 1, tag=count)
    dist.barrier()
    tell(True)
else:
    dist.barrier()
    same = []
    for count in (1_000_000, 0, 3_333_333, 262_145, 1, 262_144):
        x = torch.empty(count, dtype=torch.int64)
        dist.recv(x, 0, tag=count)
        same.append(torch.equal(x, torch.arange(count)))
    tell(all(same))
"""
    assert run(text, 2, FLAMBEAU_DISTRIBUTED_SHARED_MEMORY="0") == [True, True]


MEETING = """
import sys
from datetime import timedelta
from flambeau import distributed as dist
rank, url = int(sys.argv[1]), sys.argv[2]
try:
    dist.init_process_group("gloo", init_method=url, rank=rank, world_size=2,
                            timeout=timedelta(seconds=600))
except RuntimeError as error:
    print(type(error).__name__, str(error).splitlines()[0], flush=True)
"""


@pytest.mark.parametrize("outsider", [0, 1])
def test_ranks_with_different_secrets(outsider: int, tmp_path: Path):
    """The file lets anybody in; the connection between processes does not."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MEETING, str(rank), f"file://{tmp_path}/meet"],
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT),
                 secret.VARIABLE: "another" if rank == outsider else "the secret"},
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        calling = processes[1].communicate(timeout=700)[0]
        listening = processes[0].communicate(timeout=700)[0]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert calling.startswith(f"DistNetworkError {wire.REFUSED}")
    assert listening.startswith("DistNetworkError init_process_group: rank 1 has died")


def test_a_file_that_is_something_else(tmp_path: Path):
    path = tmp_path / "meet"
    path.write_bytes(wire.frame(b"some text that is no record"))
    with pytest.raises(DistStoreError, match=r"meet is no file of a FileStore"):
        FileStore(str(path), 1)


def test_nothing_below_the_collectives_of_objects_unpickles():
    folder = ROOT / "flambeau" / "distributed"
    files = [folder / "wire.py", folder / "secret.py", folder / "rendezvous.py",
             *(folder / "stores").glob("*.py"), *(folder / "transport").glob("*.py")]  # fmt: skip
    assert len(files) > 15
    for path in files:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [each.name for each in getattr(node, "names", ())] + [
                str(getattr(node, "module", ""))
            ]
            wrong = {"pickle", "marshal", "dill", "cloudpickle", "shelve"} & set(names)
            assert not wrong, (path, wrong)
