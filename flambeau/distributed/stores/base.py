"""What stores have in common, the store within one process, and stores with a prefix."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

from flambeau.distributed.errors import DistStoreError, QueueEmptyError
from flambeau.distributed.stores.table import Table

DEFAULT_TIMEOUT = timedelta(seconds=300)


class Store:
    """Keys and values that several processes share. Values are bytes; text becomes bytes.

    A kind of store has `_ask`, which carries an operation out, and `_wait`, which waits for keys.
    """

    __module__ = "torch.distributed"

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Give a key a value, in place of an earlier one."""
        self._ask("set", [_key("set", key)], [_value("set", value)])

    def get(self, key: str) -> bytes:
        """The value of a key, waited for.

        Raises:
            DistStoreError: it did not come in time.
        """
        return self.multi_get([key])[0]

    def add(self, key: str, amount: int) -> int:
        """Add a number to a key, which starts at zero; the sum."""
        return int(self._ask("add", [_key("add", key)], [b"%d" % amount])[0])

    def check(self, keys: Sequence[str]) -> bool:
        """Whether there are all of the keys."""
        return bool(self._ask("check", _keys("check", keys), []))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until there are all of the keys.

        Raises:
            DistStoreError: they did not come in time.
        """
        self._wait(_keys("wait", keys), self.timeout if timeout is None else timeout)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Set a key to `desired` if its value is `expected`; the value that it has then.

        A key that is not there counts as empty; if something was expected, it stays away and
        `expected` comes back.
        """
        given = [_value("compare_set", expected), _value("compare_set", desired)]
        return self._ask("compare_set", [_key("compare_set", key)], given)[0]

    def delete_key(self, key: str) -> bool:
        """Take a key away; whether it was there."""
        return bool(self._ask("delete", [_key("delete_key", key)], []))

    def append(self, key: str, value: str | bytes) -> None:
        """Put bytes behind the value of a key."""
        self._ask("append", [_key("append", key)], [_value("append", value)])

    def num_keys(self) -> int:
        """How many keys there are, the one with which a store counts its processes included."""
        return int(self._ask("count", [], [])[0])

    def list_keys(self) -> list[str]:
        """The keys."""
        return [key.decode() for key in self._ask("list", [], [])]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys at once."""
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        given = [_value("multi_set", value) for value in values]
        self._ask("set", _keys("multi_set", keys), given)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, waited for."""
        names = _keys("multi_get", keys)
        self._wait(names, self.timeout)
        found = self._ask("get", names, [])
        if len(found) != len(names):
            raise DistStoreError(f"a key was deleted while it was read: {', '.join(names)}")
        return found

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value into a queue."""
        self._ask("push", [_key("queue_push", key)], [_value("queue_push", value)])

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """The oldest value of a queue, taken out of it.

        Raises:
            QueueEmptyError: there is none, and `block` is false.
        """
        name, end = _key("queue_pop", key), time.monotonic() + self.timeout.total_seconds()
        while True:
            found = self._ask("pop", [name], [])
            if found:
                return found[0]
            if not block:
                raise QueueEmptyError(f"queue is empty: {key}")
            self._wait([name], timedelta(seconds=max(end - time.monotonic(), 0)))

    def queue_len(self, key: str) -> int:
        """How many values wait in a queue."""
        return int(self._ask("length", [_key("queue_len", key)], [])[0])

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_set` and `multi_get` are there: always."""
        return True

    def clone(self) -> Store:
        """Another object for the same keys, for another thread."""
        return self

    def _ask(self, operation: str, keys: list[str], values: list[bytes]) -> list[bytes]:
        raise NotImplementedError(f"{type(self).__name__} has no operations")

    def _wait(self, keys: list[str], timeout: timedelta) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no operations")


class HashStore(Store):
    """A store for the threads of one process."""

    __module__ = "torch.distributed"

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()
        self._changed = threading.Condition()

    def _ask(self, operation: str, keys: list[str], values: list[bytes]) -> list[bytes]:
        with self._changed:
            answer = self._table.perform(operation, keys, values)
            self._changed.notify_all()
        return answer

    def _wait(self, keys: list[str], timeout: timedelta) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._table.has(keys), timeout.total_seconds()):
                raise DistStoreError("Wait timeout")


class PrefixStore(Store):
    """A part of another store: its keys start with a prefix there."""

    __module__ = "torch.distributed"

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        """The store that the keys are in."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait: as in the store below."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait, in the store below."""
        self._store.set_timeout(timeout)

    def clone(self) -> PrefixStore:
        """Another object for the same keys, for another thread."""
        return PrefixStore(self.prefix, self._store.clone())

    def _ask(self, operation: str, keys: list[str], values: list[bytes]) -> list[bytes]:
        return self._store._ask(operation, [f"{self.prefix}/{key}" for key in keys], values)

    def _wait(self, keys: list[str], timeout: timedelta) -> None:
        self._store._wait([f"{self.prefix}/{key}" for key in keys], timeout)


def wait_timed_out(keys: Sequence[str], timeout: timedelta) -> DistStoreError:
    """The error that keys did not come in time."""
    shown = ", ".join(f"/{key}" for key in keys)
    return DistStoreError(f"wait timeout after {round(timeout.total_seconds() * 1000)}ms, "
                          f"keys: {shown}")  # fmt: skip


def _refuse(name: str) -> NoReturn:
    raise TypeError(
        f"{name}(): incompatible function arguments. The following argument types are supported:\n"
        "keys are str, values str or bytes"
    )


def _key(name: str, key: Any) -> str:
    return key if isinstance(key, str) else _refuse(name)


def _keys(name: str, keys: Any) -> list[str]:
    if isinstance(keys, str):
        _refuse(name)
    return [_key(name, key) for key in keys]


def _value(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, bytes | bytearray) else _refuse(name)
