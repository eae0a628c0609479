"""Tensors on the device "meta": a shape, strides and a type, without memory.

Their arrays lie over pages that read as zeros, may not be written, and take no memory however many
they are: operators can be run on them (`_ops.transforms.meta`). Nobody else gets to see the zeros:
the arrays refuse to be looked at.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.device import META
from flambeau._runtime.cpu import _bytes, element_strides
from flambeau._tensor.numberless import Numberless

NO_DATA = "Cannot copy out of meta tensor; no data!"
NO_ITEM = "Tensor.item() cannot be called on meta tensors"


class Meta(Numberless):
    """The array of a tensor without memory."""

    place = META

    no_numbers, no_memory = NotImplementedError(NO_DATA), NotImplementedError(NO_DATA)
    no_item = no_branch = RuntimeError(NO_ITEM)

    def copy(self, order: Any = "C") -> Any:
        """An array of the same layout, with memory of its own."""
        return like(self)

    def view(self, *args: Any) -> Any:  # type: ignore[override]
        """Another view, also without memory."""
        return np.ndarray.view(self, *args)


SMALL = 1 << 12
"""Bytes up to which zeros are simply there: a mapping takes a page in any case."""


class Pages:
    """The pages under a tensor without memory. While any are there, calls are looked at."""

    is_counted = False
    """Whether `__del__` has to count back: the making may be interrupted."""

    def __init__(self, nbytes: int) -> None:
        modes.watch.active += 1
        modes.watch.results += 1
        self.is_counted = True
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        if nbytes <= SMALL:
            source: Any = bytes(nbytes)
        else:
            source = mmap.mmap(-1, nbytes, flags=flags, prot=mmap.PROT_READ)
        held = np.frombuffer(source, np.uint8) if nbytes else np.empty(0, np.uint8)
        self.held = held
        self.__array_interface__ = held.__array_interface__

    def __del__(self) -> None:
        if self.is_counted:
            modes.watch.active -= 1
            modes.watch.results -= 1


def blank(nbytes: int) -> np.ndarray:
    """So many bytes of a storage without memory."""
    return np.asarray(Pages(max(nbytes, 1)))[:nbytes]


def empty(shape: Any, strides: Any, numpy_dtype: Any) -> Meta:
    """An array without memory; `strides` in elements.

    Raises:
        OSError: there are not so many addresses.
    """
    shape, strides = tuple(shape), tuple(strides)
    length = 0
    if 0 not in shape:
        length = 1 + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])
    size = numpy_dtype.itemsize
    pages = np.asarray(Pages(max(length, 1) * size))
    whole = np.ndarray.__new__(Meta, (length,), numpy_dtype, pages[: length * size])
    if 0 in shape:
        return np.ndarray.__new__(Meta, shape, numpy_dtype, pages, 0, _bytes(strides, size))
    return np.ndarray.__new__(Meta, shape, numpy_dtype, whole, 0, _bytes(strides, size))


def like(data: np.ndarray) -> Meta:
    """An array without memory, laid out as another is."""
    return empty(data.shape, element_strides(data), data.dtype)


def zeros_of(data: np.ndarray) -> np.ndarray:
    """The zeros under an array without memory."""
    return np.ndarray.view(data, np.ndarray)
