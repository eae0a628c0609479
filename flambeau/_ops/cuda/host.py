"""Rows without a kernel for GPUs: the operands are copied to the host, the CPU computes, and the
results are copied back. It is always right, and slow; each such call is counted (`CALLS`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.device import device, thread
from flambeau._ops.table.op import Op
from flambeau._tensor.device_array import DeviceArray, from_host, overwrite, to_host
from flambeau._tensor.sparse import SparseTensor, sparse_tensor
from flambeau._tensor.tensor import Tensor, wrap

CALLS: Counter[str] = Counter()
"""Row -> how often the host has computed it for a GPU."""
WRITTEN = re.compile(r"!\)(?:\[\])?\??\s+(\w+)")
"""Parameters that a row writes to."""


class Apart:
    """`with Apart(place):` the CPU computes for a GPU, and what it does is not recorded."""

    __slots__ = ("before", "place")

    def __init__(self, place: device) -> None:
        self.place = place

    def __enter__(self) -> None:
        self.before = modes.grad.enabled, thread.works_on
        modes.grad.enabled, thread.works_on = False, self.place

    def __exit__(self, *exc: object) -> None:
        modes.grad.enabled, thread.works_on = self.before


class Copies:
    """The operands of a call on the host: one copy of each array, however often it is given."""

    def __init__(self) -> None:
        self.of: dict[int, tuple[Any, np.ndarray]] = {}

    def take(self, value: Any) -> Any:
        """An argument with host memory for tensors on devices."""
        if isinstance(value, (list, tuple)):
            return type(value)([self.take(item) for item in value])
        if isinstance(value, SparseTensor):
            return sparse_tensor(self.take(value._places), self.take(value._entries), value._size,
                                 value._coalesced)  # fmt: skip
        if not isinstance(value, Tensor) or not isinstance(value._data, DeviceArray):
            return value
        known = self.of.get(id(value._data))
        if known is None:
            known = self.of[id(value._data)] = value._data, to_host(value._data)
        return wrap(known[1])

    def give(self, value: Any, place: device) -> Any:
        """A result on the device; what is an operand, or other than a tensor, stays itself."""
        if isinstance(value, (list, tuple)):
            items = [self.give(item, place) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, SparseTensor):
            return sparse_tensor(self.give(value._places, place), self.give(value._entries, place),
                                 value._size, value._coalesced)  # fmt: skip
        if not isinstance(value, Tensor) or isinstance(value._data, DeviceArray):
            return value
        for on_device, here in self.of.values():
            if here is value._data:
                return wrap(on_device)
        return wrap(from_host(value._data, place))

    def write_back(self, value: Any) -> None:
        """The numbers of an operand that was written to, on its device."""
        for item in value if isinstance(value, (list, tuple)) else (value,):
            data = getattr(item, "_data", None)
            if data is not None and id(data) in self.of:
                overwrite(*self.of[id(data)])


def compute(op: Op, plain: Callable[..., Any], values: tuple[Any, ...], place: device) -> Any:
    """What a row gives, and what it writes to, computed by the CPU."""
    CALLS[op.full_name] += 1
    copies = Copies()
    with Apart(place):
        result = plain(*copies.take(values))
    if "!" in op.text:
        written = WRITTEN.findall(op.text)
        for argument, value in zip(op.schema.arguments, values, strict=True):
            if argument.name in written:
                copies.write_back(value)
    return copies.give(result, place)


def compute_in_place(op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
                     place: device) -> None:  # fmt: skip
    """Let the CPU write to the first argument."""
    CALLS[f"{op.full_name} in place"] += 1
    copies = Copies()
    with Apart(place):
        plain(*copies.take(values))
    copies.write_back(values[0])
