"""Tensors of classes with `__torch_dispatch__`: those over memory, and wrappers without any.

A wrapper has a shape, strides, a type and a device, and no numbers: what operators make of it, its
class says. While there are such tensors, calls are looked at (`_ops/transforms/dispatching.py`).
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.device import CPU
from flambeau._core.device import device as device_
from flambeau._core.layout import contiguous_strides
from flambeau._runtime.cpu import over
from flambeau._tensor import meta
from flambeau._tensor.numberless import Numberless
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor, constructors, new

NO_STORAGE = (
    "Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor). If you're using "
    "torch.compile/export/fx, it is likely that we are erroneously tracing into a custom kernel. "
    "To fix this, please wrap the custom kernel into an opaque custom op. Please see the following "
    "for details: https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
)


class Wrapped(Numberless):
    """The array of a wrapper."""

    no_numbers = no_memory = no_item = no_branch = RuntimeError(NO_STORAGE)

    def __array_finalize__(self, source: Any) -> None:
        self.place = getattr(source, "place", CPU)

    def view(self, *args: Any) -> Any:  # type: ignore[override]
        """Another view, also without numbers."""
        return np.ndarray.view(self, *args)


def note(tensor: Tensor) -> Tensor:
    """Let calls be looked at for as long as a tensor is there, if its class wants to see them."""
    if hasattr(type(tensor), "__torch_dispatch__"):
        constructors["expect_dispatch"]()
        modes.watch.active += 1
        modes.watch.results += 1
        weakref.finalize(tensor, _gone)
    return tensor


def _gone() -> None:
    modes.watch.active -= 1
    modes.watch.results -= 1


def has_numbers(data: np.ndarray) -> bool:
    """Whether there is memory behind an array, the host's or a GPU's, that can be filled."""
    return not isinstance(data, (meta.Meta, Wrapped))


def make_wrapper(cls: Any, size: Any, strides: Any = None, storage_offset: Any = None,
                           memory_format: Any = None, dtype: Any = None, layout: Any = None,
                           device: Any = None, pin_memory: bool = False,
                           requires_grad: bool = False, dispatch_sizes_strides_policy: Any = None,
                           dispatch_device: bool = False, dispatch_layout: bool = False,
                           **words: Any) -> Any:  # fmt: skip
    """A tensor of a class with `__torch_dispatch__`, without memory.

    Args:
        cls: the class.
        size, strides: sizes, and steps in elements; contiguous by default.
        storage_offset: how many elements into its storage it starts; beside `strides` only.
        dtype, device: what it says it has.
        requires_grad: whether it is a leaf that gradients go to.

    Raises:
        TypeError: the class has no `__torch_dispatch__`.
        NotImplementedError: an argument asks for what a wrapper here cannot have.
    """
    if not hasattr(cls, "__torch_dispatch__"):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if storage_offset is not None and strides is None:
        raise RuntimeError("setting storage offset without stride not supported")
    told = {"memory_format": memory_format,
            "dispatch_device": dispatch_device, "dispatch_layout": dispatch_layout,
            "dispatch_sizes_strides_policy": dispatch_sizes_strides_policy, **words}  # fmt: skip
    for name, value in told.items():
        if value:
            raise NotImplementedError(f"_make_wrapper_subclass: {name} is not there yet")
    sizes = tuple(map(int, size))
    steps = contiguous_strides(sizes) if strides is None else tuple(map(int, strides))
    kind = dt.default_dtype() if dtype is None else dtype
    result: Any = new(cls)
    result._data = wrapped(sizes, steps, kind.numpy_dtype, device)
    if storage_offset:
        _start_at(result, int(storage_offset))
    result._requires_grad = bool(requires_grad)
    return note(result)


def _start_at(wrapper: Any, offset: int) -> None:
    """Let a wrapper say that it starts so many elements into its storage."""
    part = wrapper._data
    reach = sum([(n - 1) * step for n, step in zip(part.shape, part.strides, strict=True)])
    count = offset + (reach // part.itemsize + 1 if part.size else 0)
    whole = wrapped((count,), (1,), part.dtype, part.place)
    data = over(whole, part.shape, part.dtype, offset * part.itemsize, part.strides)
    wrapper._data = with_place(data, part.place)
    wrapper._storage = UntypedStorage.under(whole)


def over_meta(cls: Any, data: meta.Meta, place: Any) -> Any:
    """A tensor of a class with `__torch_dispatch__` that has the layout of an array without memory;
    views of that array are views of it."""
    result: Any = new(cls)
    result._data = with_place(np.ndarray.view(data, Wrapped), place)
    return note(result)


def wrapped(sizes: tuple[int, ...], steps: tuple[int, ...], numpy_dtype: Any,
            place: Any) -> np.ndarray:  # fmt: skip
    """An array without numbers."""
    return with_place(np.ndarray.view(meta.empty(sizes, steps, numpy_dtype), Wrapped), place)


def with_place(data: Any, place: Any) -> np.ndarray:
    """The array of a wrapper, that says it is on a device."""
    data.place = CPU if place is None else device_(place)
    if data.place == CPU:
        data.place = CPU  # the one object that others compare with
    return data
