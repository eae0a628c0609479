"""Stores: every kind answers alike; nobody without the secret is answered."""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from flambeau.distributed import secret
from flambeau.distributed.errors import DistNetworkError, DistStoreError, QueueEmptyError
from flambeau.distributed.rendezvous import rendezvous
from flambeau.distributed.stores import FileStore, HashStore, PrefixStore, Store, TCPStore

KINDS = ["hash", "file", "tcp", "prefix"]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = {
        "hash": HashStore,
        "file": lambda: FileStore(str(tmp_path / "store")),
        "tcp": lambda: TCPStore("127.0.0.1", 0, 1, True),
        "prefix": lambda: PrefixStore("some", PrefixStore("other", HashStore())),
    }[request.param]()
    yield made


def test_values(store: Store):
    store.set("a", "1")
    store.set("b", b"\x00x")
    assert (store.get("a"), store.get("b")) == (b"1", b"\x00x")
    assert (store.add("c", 5), store.add("c", -2), store.add("a", 1)) == (5, 3, 2)
    assert store.get("c") == b"3"
    assert store.check(["a", "b"])
    assert not store.check(["a", "none"])
    store.append("joined", "x")
    store.append("joined", "y")
    store.multi_set(["m1", "m2"], ["1", b"2"])
    assert store.multi_get(["joined", "m2", "m1"]) == [b"xy", b"2", b"1"]


def test_compare_set(store: Store):
    assert store.compare_set("k", "", "v") == b"v"
    assert store.compare_set("other", "x", "v") == b"x"
    assert not store.check(["other"])
    assert store.compare_set("k", "v", "w") == b"w"
    assert store.compare_set("k", "v", "z") == b"w"


def test_keys_are_counted_and_deleted(store: Store):
    before = store.num_keys()
    store.set("k", "v")
    assert store.num_keys() == before + 1
    assert store.delete_key("k")
    assert not store.delete_key("k")
    assert store.num_keys() == before


def test_queues(store: Store):
    store.queue_push("q", "1")
    store.queue_push("q", "2")
    assert store.queue_len("q") == 2
    assert [store.queue_pop("q"), store.queue_pop("q")] == [b"1", b"2"]
    with pytest.raises(QueueEmptyError):
        store.queue_pop("q", block=False)


def test_what_does_not_come(store: Store):
    store.set_timeout(timedelta(milliseconds=50))
    assert store.timeout == timedelta(milliseconds=50)
    with pytest.raises(DistStoreError, match=r"[wW]ait timeout"):
        store.get("never")
    with pytest.raises(DistStoreError, match=r"[wW]ait timeout"):
        store.wait(["never"], timedelta(milliseconds=20))
    store.set("there", "1")
    store.wait(["there"])
    assert store.get("there") == b"1"


def test_wrong_arguments(store: Store):
    with pytest.raises(TypeError, match=r"set\(\): incompatible function arguments"):
        store.set("k", 3)
    with pytest.raises(TypeError, match=r"wait\(\): incompatible function arguments"):
        store.wait("k")
    store.set("k", "text")
    with pytest.raises(ValueError, match="stoll"):
        store.add("k", 1)
    assert store.get("k") == b"text"


def test_a_waiter_is_woken(store: Store):
    other, found = store.clone(), []
    waiter = threading.Thread(target=lambda: found.append(other.get("late")))
    waiter.start()
    store.set("late", "here")
    waiter.join(10)
    assert found == [b"here"]


def test_many_clients_count_exactly():
    master = TCPStore("127.0.0.1", 0, None, True)
    clients = [TCPStore("127.0.0.1", master.port) for _ in range(8)]

    def count(client: TCPStore) -> None:
        for _ in range(50):
            client.add("n", 1)

    threads = [threading.Thread(target=count, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert master.get("n") == b"400"


def test_a_port_in_use_and_nobody_there():
    master = TCPStore("127.0.0.1", 0, 1, True)
    with pytest.raises(DistNetworkError, match="The server socket has failed to listen"):
        TCPStore("127.0.0.1", master.port, 1, True)
    port = master.port
    del master
    gc.collect()
    with pytest.raises(DistNetworkError, match=r"timed out after .*ms while trying to connect"):
        TCPStore("127.0.0.1", port, 1, False, timedelta(milliseconds=200))


def test_workers_that_do_not_come():
    with pytest.raises(DistStoreError, match=r"1/2 clients joined"):
        TCPStore("127.0.0.1", 0, 2, True, timedelta(milliseconds=100))


def test_a_store_that_ends():
    master = TCPStore("127.0.0.1", 0, 1, True)
    client = TCPStore("127.0.0.1", master.port)
    master._close()
    with pytest.raises(DistNetworkError):
        client.get("k")


def test_the_master_listens_on_one_address():
    master = TCPStore("127.0.0.1", 0, 1, True)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", master.port), timeout=1)


def test_a_wrong_secret(monkeypatch: pytest.MonkeyPatch):
    master = TCPStore("127.0.0.1", 0, 1, True)
    right = secret.secret
    master_thread = master._server._thread
    monkeypatch.setattr(
        secret, "secret",
        lambda: right() if threading.current_thread() is master_thread else b"another",
    )  # fmt: skip
    with pytest.raises(DistNetworkError, match="is its secret another one"):
        TCPStore("127.0.0.1", master.port)
    monkeypatch.undo()
    assert TCPStore("127.0.0.1", master.port).add("k", 1) == 1


def test_strangers_and_long_frames_are_cut_off():
    master = TCPStore("127.0.0.1", 0, 1, True)
    with socket.create_connection(("127.0.0.1", master.port), timeout=10) as stranger:
        assert len(stranger.recv(100)) == secret.NONCE
        stranger.sendall(b"\0" * 64)
        assert stranger.recv(100) == b""
    client = TCPStore("127.0.0.1", master.port)
    client._connection.sendall(b"\xff\xff\xff\xff")
    assert client._connection.recv(1) == b""
    assert master.add("k", 1) == 1


def test_a_file_is_removed_by_the_last(tmp_path: Path):
    path = tmp_path / "store"
    first, second = FileStore(str(path), 2), FileStore(str(path), 2)
    first.set("k", "v")
    assert second.get("k") == b"v"
    del first
    assert path.exists()
    del second
    assert not path.exists()


def test_the_secret_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(secret.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    secret._of_user.cache_clear()
    first = secret.secret()
    secret._of_user.cache_clear()
    assert secret.secret() == first
    (tmp_path / "flambeau" / "distributed-secret").chmod(0o644)
    secret._of_user.cache_clear()
    with pytest.raises(RuntimeError, match="can be read by others"):
        secret.secret()
    secret._of_user.cache_clear()


def test_rendezvous_by_file(tmp_path: Path):
    url = f"file://{tmp_path / 'meet'}?rank=0&world_size=1"
    found, rank, size = next(rendezvous(url))
    assert (rank, size, type(found)) == (0, 1, FileStore)


def test_rendezvous_by_tcp():
    found, rank, size = next(rendezvous("tcp://127.0.0.1:0", rank=0, world_size=1))
    assert (rank, size, type(found)) == (0, 1, TCPStore)


@pytest.mark.parametrize(
    ("url", "error", "text"),
    [
        ("foo://x", RuntimeError, "No rendezvous handler for foo://"),
        ("tcp://127.0.0.1:1?rank=0", ValueError, "world size parameter missing"),
        ("tcp://127.0.0.1?rank=0&world_size=1", ValueError, "port number missing"),
        ("file://", ValueError, "path missing"),
        ("env://", ValueError, "environment variable RANK expected, but not set"),
    ],
)
def test_what_is_not_said(url: str, error: type, text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(error, match=text):
        next(rendezvous(url))


def test_time_of_an_answer():
    """The store says when the time is over; the connection would have been given longer."""
    master = TCPStore("127.0.0.1", 0, 1, True)
    with pytest.raises(DistStoreError, match="timeout after 50ms"):
        master.wait(["never"], timedelta(milliseconds=50))
    assert master.add("k", 1) == 1


def test_masters_of_a_process_share_a_port_if_they_say_so() -> None:
    first = TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True, wait_for_workers=False)
    second = TCPStore(
        "127.0.0.1", first.port, is_master=True, multi_tenant=True, wait_for_workers=False
    )
    first.set("key", "value")
    assert second.get("key") == b"value"
    del first
    assert second.get("key") == b"value"
    del second
