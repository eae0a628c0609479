"""The short way of a pointwise call on a GPU: from tensors to a launch by one look-up.

What a call needs besides addresses and numbers depends on shapes, strides and types of its operands
alone (`Ready`). The long way (`dispatch`, `pointwise`) finds it; the calls after that come here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops.cuda.mismatch import WORDED
from flambeau._ops.cuda.pointwise import number, row_of
from flambeau._ops.table import pointwise as kind
from flambeau._runtime.cuda.memory import Block, Current
from flambeau._tensor import device_array
from flambeau._tensor.device_array import DeviceArray, class_of, empty, layout_of, maker_of
from flambeau._tensor.tensor import Tensor, new, provides

NUMBERS = frozenset((int, float, bool))
MOST = 1024


class Ready:
    """A launch that lacks addresses and numbers alone."""

    __slots__ = ("blocks", "casts", "go", "is_plain", "make", "nbytes", "numbers", "pick", "place",
                 "rest")  # fmt: skip

    def __init__(self, found: tuple[Any, ...], plan: Any, out: Any, places: list[int]) -> None:
        shape, _, dtype, _, self.casts, self.place = found
        self.go, self.blocks, self.rest = plan.kernel.devices[self.place], plan.blocks, plan.rest
        self.pick = [places[k] for k in plan.given]
        self.is_plain = self.pick == list(range(len(places))) and not plan.numbers
        self.numbers = [(places[k], self.casts[k]) for k in plan.numbers]
        self.nbytes = out.block.nbytes
        self.make = maker_of(class_of(self.place), shape, dtype, out.strides)


class Quick:
    """The short way of one row."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self.row = row_of(path.op)
        self.ready: dict[Any, Ready | None] = {}
        self.rest = (1,) if self.row.factor is not None else ()  # what is recorded besides
        self.places = self.row.places
        self.fixed: frozenset[int] = frozenset()
        """The arguments whose number is written into the kernel."""

    def __call__(self, values: tuple[Any, ...]) -> Any:
        if device_array.watching is not None:
            return NotImplemented
        key: list[Any] = []
        arrays: list[Any] = []
        fixed = self.fixed
        for place, value in enumerate(values):
            if value.__class__ in NUMBERS:
                key.append((value.__class__, value) if place in fixed else value.__class__)
                arrays.append(value)
                continue
            try:
                data = value._data
            except AttributeError:
                return NotImplemented
            if isinstance(data, DeviceArray):
                key.append(data.layout or layout_of(data))
            elif data.__class__ is np.ndarray and not data.ndim:
                data = data[()]
                key.append((data.dtype, data) if place in fixed else data.dtype)
            else:
                return NotImplemented
            arrays.append(data)
        ready: Any = self.ready.get(tuple(key), self)
        if ready is self:
            return self._first(values, arrays, tuple(key))
        if ready is None or ready.place != Current.device:
            return NotImplemented
        return self._finish(values, self._launched(ready, arrays))

    def _first(self, values: tuple[Any, ...], arrays: list[Any], key: Any) -> Any:
        """The long way, and what is to be kept of it."""
        if len(self.ready) >= MOST:
            self.ready.clear()
        self.ready[key] = None
        on_device = [a for a in arrays if isinstance(a, DeviceArray)]
        known = len(values) == len(self.places) and not self.row.others
        if self.path.op.devices in WORDED and len(on_device) < len(arrays):
            return NotImplemented
        if not on_device or not known or not all(map(_plain, values)):
            return NotImplemented
        found = self.row._settled(tuple(arrays))
        if found is None or 0 in found[0] or len({a.__class__ for a in on_device}) > 1:
            return NotImplemented
        shape, strides, dtype, fusion, casts, index = found
        fixed = self.fixed | {self.places[k] for k in fusion.fixed}
        if fixed != self.fixed:  # keys need these numbers, too
            self.fixed = fixed
            self.ready.clear()
            return NotImplemented
        out = empty(shape, strides, dtype, index)
        operands = self.row._operands(tuple(arrays), casts)
        if index != Current.device or not fusion.run(operands, (out,), True):
            return NotImplemented
        plan = fusion.plans.get((0, *fusion._key(operands, (out,))))
        if plan is not None and plan.kernel is not None:
            self.ready[key] = Ready(found, plan, out, self.places)
        return self._finish(values, out)

    def _launched(self, ready: Ready, arrays: list[Any]) -> Any:
        block = Block(ready.nbytes, ready.place)
        at = block.address
        if ready.is_plain:
            ready.go(Current.stream, ready.blocks, *arrays, at, *ready.rest)
        else:
            more = [_number(arrays[place], cast) for place, cast in ready.numbers]
            ready.go(Current.stream, ready.blocks, *[arrays[k] for k in ready.pick], at, *more,
                     *ready.rest)  # fmt: skip
        return ready.make(block, at)

    def _finish(self, values: tuple[Any, ...], data: Any) -> Any:
        """The tensor, recorded where that is asked for."""
        result = new(Tensor)
        result._data = data
        enabled = modes.grad.enabled
        if enabled:
            for value in values:
                if value.__class__ not in NUMBERS and value._requires_grad:
                    self._record(values, result)
                    break
        elif enabled is None:
            result._inference = True
        return result

    def _record(self, values: tuple[Any, ...], result: Any) -> None:
        path = self.path
        if path.recorder is None:
            return
        if all(isinstance(value, Tensor) for value in values):
            path.recorder.call(*values, *self.rest, result)
            return
        operands = path._operands(values)
        element = kind.compute_dtype(path.op, operands)
        recorded = kind.as_tensors(path.op, list(values), element)
        path.recorder.call(*recorded, result)


def _plain(value: Any) -> bool:
    """Whether an argument is a number or a dense tensor of no class of a user's."""
    if value.__class__ in NUMBERS:
        return True
    return isinstance(value, Tensor) and (type(value) is Tensor or value._is_param is not False)


def _number(value: Any, cast: Any) -> Any:
    if value.__class__ is float and cast.kind == "f" and cast.itemsize == 8:  # noqa: PLR2004
        return value
    return number(value, cast)


@provides("quick_on_gpu")
def quick_on_gpu(path: Any) -> Quick:
    """The short way of a row, for its path."""
    return Quick(path)
