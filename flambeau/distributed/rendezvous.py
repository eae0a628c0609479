"""How processes find one another: `env://`, `tcp://`, `file://`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import NoReturn
from urllib.parse import ParseResult, parse_qsl, urlparse

from flambeau.distributed.stores import FileStore, Store, TCPStore
from flambeau.distributed.stores.base import DEFAULT_TIMEOUT

Found = tuple[Store, int, int]
"""A store, this process's rank, and the number of processes."""
Handler = Callable[..., Iterator[Found]]
HANDLERS: dict[str, Handler] = {}
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
"""In the environment of children: whether their launcher has the store."""


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Let `rendezvous` know another scheme.

    Raises:
        RuntimeError: it is known.
    """
    if scheme in HANDLERS:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    HANDLERS[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1,
               timeout: timedelta = DEFAULT_TIMEOUT) -> Iterator[Found]:  # fmt: skip
    """What the processes of a program agree on: a store, and who they are.

    Args:
        url: `env://`, `tcp://host:port?rank=..&world_size=..`, `file:///path?rank=..&world_size=..`
        rank, world_size: as in the url; -1 where they are not given.

    Raises:
        RuntimeError: the scheme is not known.
        ValueError: something is not said.
    """
    if not isinstance(url, str | bytes):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parts = urlparse(url if isinstance(url, str) else url.decode())
    if parts.scheme not in HANDLERS:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    asked = dict(parse_qsl(parts.query))
    if rank != -1:
        asked["rank"] = str(rank)
    if world_size != -1:
        asked["world_size"] = str(world_size)
    return HANDLERS[parts.scheme](parts, asked, timeout)


def _fail(scheme: str, what: str) -> NoReturn:
    raise ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def _number(scheme: str, asked: dict[str, str], name: str) -> int:
    if name not in asked:
        _fail(scheme, f"{name.replace('_', ' ')} parameter missing")
    return int(asked[name])


def _by_file(parts: ParseResult, asked: dict[str, str], timeout: timedelta) -> Iterator[Found]:
    if not parts.path:
        _fail("file", "path missing")
    rank, size = _number("file", asked, "rank"), _number("file", asked, "world_size")
    store = FileStore(parts.path, size)
    store.set_timeout(timeout)
    yield store, rank, size


def _by_tcp(parts: ParseResult, asked: dict[str, str], timeout: timedelta) -> Iterator[Found]:
    if parts.port is None:
        _fail("tcp", "port number missing")
    rank, size = _number("tcp", asked, "rank"), _number("tcp", asked, "world_size")
    yield _tcp_store(parts.hostname or "", parts.port, rank, size, timeout), rank, size


def _by_environment(
    parts: ParseResult, asked: dict[str, str], timeout: timedelta
) -> Iterator[Found]:
    def told(name: str) -> str:
        if name not in os.environ:
            _fail("env", f"environment variable {name} expected, but not set")
        return os.environ[name]

    rank = int(asked["rank"]) if "rank" in asked else int(told("RANK"))
    size = int(asked["world_size"]) if "world_size" in asked else int(told("WORLD_SIZE"))
    host, port = told("MASTER_ADDR"), int(told("MASTER_PORT"))
    yield _tcp_store(host, port, rank, size, timeout), rank, size


def _tcp_store(host: str, port: int, rank: int, size: int, timeout: timedelta) -> Store:
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is not between 0 and world_size {size}")
    if os.environ.get(AGENT_STORE) == "True":
        from flambeau.distributed.stores import PrefixStore

        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return PrefixStore(f"worker/attempt_{attempt}", TCPStore(host, port, None, False, timeout))
    return TCPStore(
        host, port, size, rank == 0, timeout, wait_for_workers=False, multi_tenant=True
    )  # a group that has ended may be kept


register_rendezvous_handler("file", _by_file)
register_rendezvous_handler("tcp", _by_tcp)
register_rendezvous_handler("env", _by_environment)
