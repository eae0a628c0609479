"""Which memory tensors take and give back while a recording is on."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from flambeau._runtime.cpu import address
from flambeau._tensor.tensor import Tensor


class Change(NamedTuple):
    """Memory taken (bytes above 0) or given back."""

    time: int  # nanoseconds
    bytes: int
    total: int  # of the recording, afterwards
    address: int
    record: Any  # what took it or ran meanwhile; None between operators
    category: str  # "result" or "gradient"


class Allocations:
    """The arrays that were made since the recording began and are alive.

    An operator's result is counted when the operator is done, and again, as negative bytes, when
    the last tensor that looks into it is gone. What an operator needs only while it runs is not.
    """

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.alive: dict[int, tuple[Any, int, str]] = {}
        self.changes: list[Change] = []
        self.total = 0

    def note(self, values: Any, result: Any, record: Any) -> None:
        """Count what is new in an operator's result."""
        for tensor in (result,) if isinstance(result, Tensor) else tensors(result):
            array = owner(tensor)
            if array is None or id(array) in self.alive or not array.nbytes:
                continue
            if all(owner(each) is not array for each in tensors(values)):
                self._take(array, record)

    def _take(self, array: np.ndarray, record: Any) -> None:
        key, size = id(array), array.nbytes
        category = "gradient" if is_backward(record) else "result"
        self.alive[key] = (weakref.ref(array, lambda _: self._gone(key)), size, category)
        self._change(size, address(array), record, category)

    def _gone(self, key: int) -> None:
        found = self.alive.pop(key, None)
        if found is None:
            return
        inside = self.recorder.current if threading.get_ident() == self.recorder.thread else None
        self._change(-found[1], 0, inside, found[2])

    def _change(self, size: int, address: int, record: Any, category: str) -> None:
        if len(self.changes) >= self.recorder.options.limit:
            return
        self.total += size
        now = record.end if record is not None and size > 0 else perf_counter_ns()
        self.changes.append(Change(now, size, self.total, address, record, category))
        if record is not None:
            record.memory += size

    def stop(self) -> None:
        """Whatever is given back from now on is no matter."""
        self.alive.clear()


def is_backward(record: Any) -> bool:
    """Whether a record is, or lies in, a node of backward."""
    while record is not None and record.kind != "node":
        record = record.parent
    return record is not None


def tensors(value: Any) -> Iterator[Tensor]:
    """What tensors are in lists and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def owner(tensor: Tensor) -> np.ndarray | None:
    """The array whose memory a tensor's elements lie in; None of a sparse tensor."""
    if tensor.is_sparse:
        return None
    array: np.ndarray = tensor._data
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
