"""`x[index]` and `x[index] = value`: torch's rules, views where possible.

Ints, slices, None and Ellipsis give views, one after the other: `x[0, 1:3]` is `select`, then
`slice`. What remains (masks, integer tensors, lists) goes to `index` and `index_put_`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops.copying.copies import assign
from flambeau._ops.indexing import advanced
from flambeau._ops.indexing import items as index_items
from flambeau._ops.indexing.items import Items, as_items, is_number, new_dims, tensor_indices
from flambeau._ops.table import outputs, pointwise
from flambeau._ops.table.dispatch import Recorder
from flambeau._ops.table.inplace import make_kernel_inplace
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import REGISTRY
from flambeau._ops.table.scalars import scalar_array
from flambeau._ops.views import basic as views
from flambeau._runtime import cpu
from flambeau._runtime.cpu import address
from flambeau._tensor import overriding
from flambeau._tensor.bits import Unresolved, among, awaits_bits, like, on_memory, put, reading
from flambeau._tensor.device_array import DeviceArray, assigned
from flambeau._tensor.examples import Example
from flambeau._tensor.tensor import Tensor, memory_of, method, new, wrap
from flambeau.autograd.history import bump, check_inplace, limit_view, rewritten, view_of

watch = modes.watch
grad_state = modes.grad


select_recorder = Recorder(REGISTRY["select.int"])
slice_recorder = Recorder(REGISTRY["slice.Tensor"])
BODIES = {"select": views.select.body, "slice": views.slice_.body,
          "unsqueeze": views.unsqueeze.body}  # fmt: skip


# ---- reading


def _plain_key(index: tuple[Any, ...]) -> Any:
    """NumPy's index where its view has torch's shape and strides, else None.

    That is so for ints and for slices without a step, with at most one Ellipsis.
    """
    key = (*index, ...)
    for item in index:
        kind = item.__class__
        if kind is int or (kind is slice and item.step is None):
            continue
        if item is not ... or key is index:
            return None
        key = index
    return key


@method
@awaits_bits
def __getitem__(self: Tensor, index: Any) -> Tensor:
    """The part of a tensor at an index. Written out for speed (benchmarks/indexing.py, "x[3]")."""
    kind = index.__class__
    recorded = (self._requires_grad or rewritten.count) and grad_state.enabled
    if kind is int:
        key: Any = (index, ...)
    elif kind is slice and index.step is None:
        key = index
    else:
        key = _plain_key(index) if kind is tuple else None
        if key is None or recorded:
            return get_general(self, index, key)
    if watch.active:
        return get_general(self, index, key)
    try:
        data = self._data
        part = data[key]
    except (IndexError, OverflowError, Unresolved):
        return get_general(self, index)
    if kind is not int and not part.size:  # NumPy forgets where slices without elements start
        return get_general(self, index)
    result = new(Tensor)
    result._data = part
    root = self._root
    if root is None:
        result._root = result._base = self
        version = self._version_count
    else:
        result._root = root
        result._base = self if self._base is None else self._base
        version = root._version_count
    if version:
        result._view_version = version
    if recorded:
        if self._inference:
            limit_view(self, result)
        elif kind is int:
            select_recorder.call(self, 0, index, result)
        else:
            start, stop, _ = index.indices(data.shape[0])
            slice_recorder.call(self, 0, start, stop, 1, result)
    elif not grad_state.enabled:
        limit_view(self, result)
    if self._creation and grad_state.enabled:
        result._creation = self._creation
    return result  # type: ignore[no-any-return]


def get_general(self: Tensor, index: Any, key: Any = None) -> Tensor:
    """Any index, recorded or not. `key`: the index in NumPy's form, if it has one."""
    if self._stored is not None and among([self]):
        return _get_under_bits(self, index)
    if key is not None and watch.active and watch.active == watch.devices:
        found = _get_on_device(self, key)
        if found is not None:
            return found
    if key is not None and key is not index and not watch.active:
        found = _get_recorded(self, index)
        if found is not None:
            return found
    if index.__class__ is Tensor and 0 < index._data.ndim <= self._data.ndim:
        return _get_advanced(self, [index])
    if watch.overriding:
        taken, result = overriding.asked(__getitem__, (self, index), {})
        if taken:
            return result  # type: ignore[no-any-return]
    if index.__class__ is Tensor and index._data.__class__ is Example:  # no number can be read
        return _get_advanced(self, [index])
    indices = tensor_indices(self._data.ndim, index)
    if indices:
        return _get_advanced(self, indices)
    if index.__class__ is Tensor and self._data.ndim and is_number(index._data):
        return __getitem__(self, int(index._data))
    if index is None:
        index = (None,)
    if index.__class__ is tuple:
        places = new_dims(self._data.ndim, index)
        if places:
            return _with_new_dims(self, places)
    if not wants_recording(self):
        part = _short_view(self._data, index)
        if part is not None:
            return view_of(self, part)
    _check_zero_dim(self._data, index)
    items = Items(self._data.shape, as_items(index), optimize=index.__class__ is not slice)
    view = apply_steps(self, items.steps)
    if items.indices:
        return _get_advanced(view, items.indices)
    return ops.alias(self) if view is self else view  # type: ignore[no-any-return]


def _get_under_bits(self: Tensor, index: Any) -> Any:
    """A view gets the bits; what was gathered from memory is changed to what it stands for."""
    with on_memory([self]), reading(among([index])):
        part: Any = __getitem__(self, index)
    if part._root is not None:
        return like(self, part)
    put(part._data, part._data, self._conjugated, self._negated)
    return part


def _short_view(data: np.ndarray, index: Any) -> np.ndarray | None:
    """`x[::2]` where NumPy gives torch's strides, else None."""
    if index.__class__ is slice and index.step.__class__ is int and index.step > 0 and data.ndim:
        part = data[index]
        return part if part.shape[0] > 1 else None
    return None


def _with_new_dims(self: Tensor, places: list[int]) -> Tensor:
    """`unsqueeze` at several places, one after the other."""
    data = self._data
    if data.flags.c_contiguous and data.size and 1 not in data.shape and not wants_recording(self):
        shape = [*data.shape]
        for place in places:
            shape.insert(place, 1)
        return view_of(self, data.reshape(shape))
    result = self
    for place in places:
        result = ops.unsqueeze(result, place)
    return result


def _get_recorded(self: Any, index: tuple[Any, ...]) -> Any:
    """The views that ints and slices make, one by one; None where an index is out of range."""
    result = self
    dim = 0
    if len(index) > self._data.ndim:
        return None
    for item in index:
        size = result._data.shape[dim]
        if item.__class__ is int:
            if not -size <= item < size:
                return None
            result = ops.select(result, dim, item)
            continue
        start, stop, _ = item.indices(size)
        if item.start or stop != size:
            result = ops.slice(result, dim, start, stop)
        dim += 1
    return ops.alias(result) if result is self else result


def _check_zero_dim(data: np.ndarray, index: Any) -> None:
    if data.ndim:
        return
    if isinstance(index, int) and not isinstance(index, bool):
        if index:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size 0")
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
        )
    if index.__class__ is slice:
        index_items.slice_step(index)
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")


def _get_on_device(self: Tensor, key: Any) -> Any:
    """The part of a tensor in a program with tensors on GPUs, where nothing else looks on; None
    where it is recorded, or an error."""
    if (self._requires_grad or rewritten.count) and grad_state.enabled:
        return None
    try:
        return view_of(self, self._data[key])
    except (IndexError, OverflowError, Unresolved, RuntimeError):
        return None


def wants_recording(tensor: Tensor) -> bool:
    """Whether an operator on this tensor is to be recorded, or watched by a mode."""
    if watch.active:
        return True
    return bool((tensor._requires_grad or rewritten.count) and grad_state.enabled)


def apply_steps(tensor: Tensor, steps: list[tuple[Any, ...]]) -> Tensor:
    """The view that `select`, `slice` and `unsqueeze`, one after the other, give."""
    if not steps:
        return tensor
    if tensor._stored is not None or wants_recording(tensor):
        for name, *arguments in steps:
            tensor = getattr(ops, name)(tensor, *arguments)
        return tensor
    return view_of(tensor, apply_to_array(tensor._data, steps))


def apply_to_array(data: np.ndarray, steps: list[tuple[Any, ...]]) -> np.ndarray:
    """The same on an ndarray."""
    for name, *arguments in steps:
        data = BODIES[name](data, *arguments)
    return data


def _get_advanced(part: Tensor, indices: list[Any]) -> Tensor:
    if wants_recording(part):
        return ops.index(part, indices)  # type: ignore[no-any-return]
    arrays = [None if tensor is None else tensor._data for tensor in indices]
    return wrap(advanced.index.body(part._data, arrays))


# ---- writing


LIMITS = {np.dtype(np.float32): 3e38, np.dtype(np.float64): 1e308, np.dtype(np.int64): 1 << 62}
"""Numbers below these go into an array without a check."""


@method
@awaits_bits
def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    """Overwrite the part of a tensor at an index; the value broadcasts and is cast.

    Plain writes are one NumPy assignment (benchmarks/indexing.py, "x[3] = 1.0").
    """
    try:
        data = self._data
    except Unresolved:
        set_general(self, index, value)
        return
    kind = index.__class__
    if kind is int:
        key: Any = (index, ...)
    elif kind is tuple:
        key = _plain_key(index)
    else:
        key = index if kind is slice and index.step is None else None
    if key is not None and not (self._requires_grad or watch.active or rewritten.count):
        plain = _plain_value(self, key, value)
        base = self._base
        if plain is not None and not self._inference and (base is None or not base._requires_grad):
            try:
                data[key] = plain
            except (IndexError, OverflowError, ValueError):
                pass  # the general way has torch's words for it
            else:
                if self._root is None:  # and no node counts the writes: it would require grad
                    self._version_count += 1
                else:
                    bump(self)
                return
    set_general(self, index, value)


def _plain_value(self: Tensor, key: Any, value: Any) -> Any:
    """What NumPy can assign to the part at `key` as torch would, or None."""
    kind, data = value.__class__, self._data
    if 0 in data.strides and data.size:
        return None
    if kind is float or kind is int:
        limit = LIMITS.get(data.dtype)
        return value if limit is not None and -limit < value < limit else None
    if kind is not Tensor or value._requires_grad or value._data.dtype != data.dtype:
        return None
    part = value._data
    alone = value._root is None and value._storage is None
    if (alone and self._root is not value and value is not self) or (
        not np.may_share_memory(data, part)
    ):
        return part
    return part if _is_at(data, key, part) else None


def _is_at(data: np.ndarray, key: Any, part: np.ndarray) -> bool:
    """Whether `part` is what `key` shows of `data`, as when Python writes back `x[1:5] += 1`."""
    try:
        shown = data[key]
    except (IndexError, OverflowError):
        return False
    same = cpu.address(shown) == cpu.address(part)
    return same and shown.shape == part.shape and shown.strides == part.strides


def set_general(self: Tensor, index: Any, value: Any) -> None:
    """Any index and value, recorded or not."""
    if watch.overriding and overriding.asked(__setitem__, (self, index, value), {})[0]:
        return
    if not isinstance(value, Tensor):
        value = wrap(scalar_array(value, memory_of(self).dtype))
    if index is False:
        return
    if index is True:
        index = None
    recorded = pointwise.wants_grad((self, value)) or self._stored is not None
    if watch.active or recorded or self._inference or _needs_check(self):
        _set_recorded(self, index, value)
        return
    _set_plain(self, index, value._data)


def _needs_check(tensor: Tensor) -> bool:
    """Whether grad mode forbids, or has to record, a write to this tensor."""
    if not grad_state.enabled:
        return False
    return tensor._requires_grad or (tensor._base is not None and tensor._base._requires_grad)


def _set_plain(self: Tensor, index: Any, value: np.ndarray) -> None:
    part = self._data
    indices = tensor_indices(part.ndim, index)
    if not indices:
        _check_zero_dim(part, index)
        items = Items(part.shape, as_items(index))
        part, indices = apply_to_array(part, items.steps), items.indices
    if indices:
        arrays = [None if tensor is None else tensor._data for tensor in indices]
        with cpu.quiet():
            advanced.index_put.write(part, arrays, without_leading_ones(value), False)
    else:
        assign_part(part, value)
    bump(self)


def assign_part(part: np.ndarray, value: np.ndarray) -> None:
    """Write a value to a view, broadcasting; torch's errors where shapes do not fit."""
    if value.shape != part.shape:
        value = without_leading_ones(value)
    if value.ndim and value.shape != part.shape:
        value = views.expand.body(value, part.shape)
    if _is_the_same(part, value):
        return
    outputs.check_overlap(part)
    if value.ndim:
        outputs.check_partly_same(part, value)
    if part.__class__ is not np.ndarray and isinstance(part, DeviceArray):
        assigned[0](part, value)
        return
    with cpu.quiet():
        assign(part, value)


def _is_the_same(part: np.ndarray, value: np.ndarray) -> bool:
    """Whether an expanded tensor is written to itself, which torch leaves as it is."""
    if 0 not in part.strides or part.strides != value.strides or part.shape != value.shape:
        return False
    return part.dtype == value.dtype and address(part) == address(value)


def without_leading_ones(value: np.ndarray) -> np.ndarray:
    """Leading dims of size 1 count as broadcasting, however many there are."""
    while value.ndim and value.shape[0] == 1:
        value = value[0, ...]
    return value


def _set_recorded(self: Tensor, index: Any, value: Any) -> None:
    _check_zero_dim(memory_of(self), index)
    items = Items(memory_of(self).shape, as_items(index))
    part: Any = apply_steps(self, items.steps)
    if not items.indices:
        _copy_to(part, value)
        return
    shape = without_leading_ones(value._data).shape
    if shape != value._data.shape:
        value = value.reshape(shape)
    part.index_put_(tuple(items.indices), value)


def _copy_to(part: Any, value: Any) -> None:
    have, wanted = memory_of(value).shape, memory_of(part).shape
    if have == wanted:
        part.copy_(value)
    elif not have:
        check_inplace(part, pointwise.wants_grad((part, value)))
        outputs.check_overlap(memory_of(part))
        _fill_with_tensor()(part, value)
    else:
        shape = without_leading_ones(value._data).shape
        value = value if shape == have else value.reshape(shape)
        part.copy_(ops.expand(value, wanted))


@cache
def _fill_with_tensor() -> Any:
    """`fill_` with a 0-dim tensor, recorded with the value as an input."""
    return make_kernel_inplace(REGISTRY["fill.Tensor"])
