"""The keys and values of a store, in one process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

HIDDEN = "init/"
"""The key by which a store counts its processes; it counts as a key, and is not listed."""


class Table:
    """What every kind of store does, on plain containers; its user sees to locks and waiting."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, deque[bytes]] = {}

    def has(self, keys: Sequence[str]) -> bool:
        """Whether there are all of these keys."""
        return all(key in self.values or self.queues.get(key) for key in keys)

    def perform(self, operation: str, keys: list[str], values: list[bytes]) -> list[bytes]:
        """Carry out one operation; its answer is byte strings, none where there is no value.

        Raises:
            ValueError: the value to add to is no number, or there are too few parts.
            KeyError: there is no such operation.
        """
        return OPERATIONS[operation](self, keys, values)

    def _set(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        self.values.update(zip(keys, values, strict=True))
        return []

    def _get(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        return [self.values[key] for key in keys if key in self.values]

    def _add(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        before = self.values.get(keys[0], b"0")
        try:
            total = int(before) + int(values[0])
        except ValueError:
            raise ValueError(f"stoll\nThe value of {keys[0]!r} is no number.") from None
        self.values[keys[0]] = b"%d" % total
        return [self.values[keys[0]]]

    def _check(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        return [b"yes"] if self.has(keys) else []

    def _compare_set(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        expected, desired = values
        there = self.values.get(keys[0])
        if there is None and expected:
            return [expected]
        if there is None or there == expected:
            self.values[keys[0]] = desired
        return [self.values[keys[0]]]

    def _delete(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        return [b"yes"] if self.values.pop(keys[0], None) is not None else []

    def _append(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        self.values[keys[0]] = self.values.get(keys[0], b"") + values[0]
        return []

    def _count(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        return [b"%d" % len(self.values)]

    def _list(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        return [key.encode() for key in self.values if key != HIDDEN]

    def _push(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        self.queues.setdefault(keys[0], deque()).append(values[0])
        return []

    def _pop(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        waiting = self.queues.get(keys[0])
        return [waiting.popleft()] if waiting else []

    def _length(self, keys: list[str], values: list[bytes]) -> list[bytes]:
        return [b"%d" % len(self.queues.get(keys[0], ()))]


Operation = Callable[[Table, list[str], list[bytes]], list[bytes]]
OPERATIONS: dict[str, Operation] = {
    "set": Table._set, "get": Table._get, "add": Table._add, "check": Table._check,
    "compare_set": Table._compare_set, "delete": Table._delete, "append": Table._append,
    "count": Table._count, "list": Table._list, "push": Table._push, "pop": Table._pop,
    "length": Table._length,
}  # fmt: skip
