"""The way of a call with tensors on a GPU: its kernel there, or the host.

Views are made by their rows, and composites are made of other rows. All else is computed by the
row's kernel (`table`) or, where there is none, by the CPU (`host`), and recorded here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.device import CPU, device, thread
from flambeau._core.dtype import dtype
from flambeau._core.layout import memory_format
from flambeau._ops.cuda import generators, host, transfer
from flambeau._ops.cuda.deterministic import alert_of
from flambeau._ops.cuda.mismatch import WORDED, check
from flambeau._ops.cuda.straight import sorter
from flambeau._ops.cuda.table import KERNELS, WRITING
from flambeau._ops.table import dispatch, pointwise
from flambeau._ops.table.op import Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.ranks import Rank
from flambeau._ops.table.recording import Plan
from flambeau._ops.transforms import batching
from flambeau._runtime.cuda.memory import Current, On
from flambeau._tensor import device_array
from flambeau._tensor.device_array import DeviceArray
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import Tensor, new, provides
from flambeau.autograd.history import bump, check_inplace, snapshot


def place_in(values: Any) -> device | None:
    """The GPU that a call works on; None where no tensor lies on one."""
    for tensor in tensors_in(values):
        data = tensor._entries._data if isinstance(tensor, SparseTensor) else tensor._data
        if isinstance(data, DeviceArray):
            return data.place
    return None


class Way:
    """What is known of a row before it is called."""

    __slots__ = ("alert", "is_made_of_rows", "is_pointwise", "is_view", "kernel", "lists", "make",
                 "mixes", "record")  # fmt: skip

    def __init__(self, op: Op) -> None:
        self.is_made_of_rows = op.kind == "composite" and op.shape is None
        self.is_view, self.is_pointwise = op.kind == "view", op.kind == "pointwise"
        self.mixes = self.is_pointwise and op.devices not in WORDED
        """Whether single numbers of the host are numbers, whoever they belong to."""
        self.kernel, self.alert = KERNELS.get(op.full_name), alert_of(op)
        self.lists = op.schema.return_types[0].endswith("[]")
        self.make = tuple if self.lists else dispatch.result_type(op)
        self.record = batching.recorder(op).call if op.backward else None


WAYS: dict[Op, Way] = {}


class Found:
    """What a look at the arguments of a call finds."""

    __slots__ = ("learns", "mixed", "mixes", "place", "sparse")

    def __init__(self, mixes: bool) -> None:
        self.mixes = mixes  # whether single numbers of the host may be among them
        self.place: Any = None  # the first tensor's device that is none of the CPU's
        self.mixed = False  # whether others lie elsewhere
        self.learns = False
        self.sparse = False  # whether there are sparse ones, which no kernel takes

    def array(self, tensor: Tensor) -> Any:
        """A tensor as kernels get it; a number for a single one of the host."""
        data: Any = tensor._data
        if tensor._requires_grad:
            self.learns = True
        if isinstance(data, DeviceArray):
            if self.place is not data.place:
                self.mixed = self.mixed or self.place is not None
                self.place = self.place or data.place
            return data
        if data.ndim or data.__class__ is not np.ndarray:
            self.mixed = True
            return data
        self.mixed = self.mixed or not self.mixes
        return data[()]

    def argument(self, value: Any) -> Any:
        """An argument as kernels get it: arrays for tensors."""
        if isinstance(value, Tensor):
            if isinstance(value, SparseTensor):
                self.sparse = True
                return value
            if value.__class__ is not Tensor and value._is_param:
                _meet(value.__class__)
            return self.array(value)
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        return value


def _meet(kind: type) -> None:
    """A class of dense tensors, which calls may have been made with before it was known."""
    if kind not in TENSORS:
        TENSORS.add(kind)
        SORTERS.clear()


PLAIN: frozenset[type] = frozenset(
    (int, float, bool, type(None), str, complex, dtype, memory_format)
)
"""Classes of arguments that kernels get as they are."""
TENSORS: set[type] = {Tensor}
"""Classes of dense tensors that have been met."""
SORTERS: dict[tuple[type, ...], Any] = {}
"""Classes of arguments -> see `straight.sorter`."""
MOST = 1024


def watch(
    op: Op, plain: Callable[..., Any], values: tuple[Any, ...], functional: bool | None
) -> Any:
    """A row's call with tensors on a GPU; NotImplemented where there are none."""
    kinds = tuple(map(type, values))
    sort = SORTERS.get(kinds, SORTERS)
    if sort is SORTERS:
        if len(SORTERS) >= MOST:
            SORTERS.clear()
        sort = SORTERS[kinds] = sorter(kinds, TENSORS, PLAIN)
    found = None if sort is None else sort(*values)
    way = WAYS.get(op)
    if way is None:
        way = WAYS[op] = Way(op)
    look = None
    if found is not None:
        place, learns, arrays = found
    else:
        look = Found(way.mixes)
        arrays = [look.argument(value) for value in values]
        place, learns = look.place or place_in(values), look.learns
    if place is None:
        return NotImplemented
    if place.index != Current.device:
        with On(place.index or 0):
            return watch(op, plain, values, functional)
    if look is not None and look.mixed:
        check(op, values, _name_of_place)
    if way.is_made_of_rows:
        return plain(*values)
    if way.is_view:
        return _views(plain(*values), place)
    if way.alert is not None:
        way.alert(values)
    if functional is False:
        return _in_place(op, plain, values, arrays, place)
    none = way.kernel is None or (look is not None and look.sparse)
    found = NotImplemented if none else way.kernel(*arrays)
    if found is NotImplemented:
        result = host.compute(op, plain, values, place)
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        if not any(isinstance(part, Tensor) for part in results):
            return result
    elif found.__class__ is tuple:
        results = [None if part is None else _tensor(part) for part in found]
    else:
        results = [_tensor(found)]
    if learns and way.record is not None and modes.grad.enabled:
        given = batching.as_recorded(op, values) if way.is_pointwise else values
        way.record(*given, *([tuple(results)] if way.lists else results))
    return way.make(results) if way.lists or len(results) > 1 else results[0]


def _tensor(data: Any) -> Tensor:
    result = new(Tensor)
    result._data = data
    if modes.grad.enabled is None:
        result._inference = True
    return result  # type: ignore[no-any-return]


def _name_of_place(tensor: Tensor) -> str:
    return str(tensor.device)


def _views(result: Any, place: device) -> Any:
    """Some views come as plain arrays over the same memory; those without elements, over none."""
    if result.__class__ is Tensor and isinstance(result._data, DeviceArray):
        return result
    for part in result if isinstance(result, tuple) else (result,):
        data = part._data
        if data.__class__ is np.ndarray:
            owner = data.base
            while owner is not None and not isinstance(owner, DeviceArray):
                owner = owner.base
            if owner is not None:
                part._data = np.ndarray.view(data, owner.views_as)
            elif not data.size:
                part._data = device_array.like(data, place.index or 0)
    return result


class Write:
    """What is known of a row's form in place."""

    __slots__ = ("kernel", "record", "uses_self", "written")

    def __init__(self, op: Op) -> None:
        self.written = op.written
        self.kernel = WRITING.get(op.full_name)
        self.record = bool(self.written.backward)
        self.uses_self = self.record and Plan(self.written).uses_self()


WRITES: dict[Op, Write] = {}


def _in_place(op: Op, plain: Callable[..., Any], values: tuple[Any, ...], arrays: list[Any],
              place: device) -> Any:  # fmt: skip
    """A write to the first argument."""
    target = values[0]
    way = WRITES.get(op)
    if way is None:
        way = WRITES[op] = Write(op)
    recorded = way.record and pointwise.wants_grad(values)
    check_inplace(target, recorded)
    before = snapshot(target) if recorded and way.uses_self else target
    written = NotImplemented
    if way.kernel is not None and isinstance(arrays[0], DeviceArray):
        written = way.kernel(*arrays)
    if written is NotImplemented:
        host.compute_in_place(op, plain, values, place)
    if recorded:
        recorder = batching.recorder(way.written)
        recorder.inplace(*batching.as_recorded(op, (before, *values[1:])), target)
    else:
        bump(target)
    return target


def on_host(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of a composite that looks at numbers: see `by_the_host`."""
    check(op, args, _name_of_place)
    return by_the_host(op.full_name, op.body, args, kwargs)


@provides("by_the_host")
def by_the_host(name: str, function: Callable[..., Any], args: tuple[Any, ...],
                kwargs: dict[str, Any]) -> Any:  # fmt: skip
    """A function of tensors computed by the host, on copies that keep their history;
    NotImplemented where no tensor is on a GPU. What it changes and returns is an argument."""
    place = place_in((*args, *kwargs.values()))
    if place is None:
        return NotImplemented
    host.CALLS[name] += 1
    before, thread.works_on = thread.works_on, place
    try:
        given = [transfer.all_moved(value, CPU) for value in args]
        named = {key: transfer.all_moved(value, CPU) for key, value in kwargs.items()}
        result = function(*given, **named)
    finally:
        thread.works_on = before
    for source, copy in zip(args, given, strict=True):
        if result is copy:
            return _changed(source, copy, place)
    return transfer.all_moved(result, place)


def _changed(source: Any, copy: Any, place: device) -> Any:
    """An argument that was changed in a copy on the host."""
    if isinstance(source, SparseTensor):
        parts = transfer.moved(copy, place)
        source._places, source._entries = parts._places, parts._entries
        source._size, source._coalesced = parts._size, parts._coalesced
    elif isinstance(source, Tensor):
        source.copy_(copy)  # type: ignore[attr-defined]
    return source


@provides("expect_cuda")
def expect_cuda() -> None:
    """From now on there may be tensors on GPUs."""
    import flambeau._ops.table.autocast  # noqa: F401  (precision is chosen before the place)
    from flambeau._ops.cuda import attention, conv, fft, linalg, products  # noqa: F401

    if dispatch.add_watcher(watch, Rank.DEVICES):
        dispatch.WITHOUT_NUMBERS.append(on_host)
        modes.watch.active += 1
        modes.watch.devices += 1
        dispatch.ALONE.append(watch)
        modes.watch.results += 1
        generators.start()
