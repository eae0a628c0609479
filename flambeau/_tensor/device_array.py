"""Arrays in the memory of GPUs: ndarrays over device addresses, which the host may not read.

Shape, strides, type and views are an ndarray's. Whoever wants the numbers on the host copies them
(`to_host`); all else that would read them is refused, or ends the process: on the fake driver, too.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from flambeau._core.allocation import overflowed
from flambeau._core.device import CUDA, Cuda, Defaults, device
from flambeau._core.layout import contiguous_strides, is_dense
from flambeau._runtime.cpu import _bytes, address, element_strides
from flambeau._runtime.cuda import constants, memory, new_arrays, pinned
from flambeau._runtime.cuda.driver import driver
from flambeau._tensor.numberless import Numberless

BASIC = (int, slice, np.integer)
BYTE = np.dtype(np.uint8)
window: Any = ctypes.pythonapi.PyMemoryView_FromMemory
window.restype = ctypes.py_object
window.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
WRITABLE = 0x200
new = np.ndarray.__new__
MOST = 2**63 - 1
"""More bytes have no number."""
WIDEST = 16
"""Bytes of the widest access of kernels."""
ALIGNED = 256
"""Bytes of which memory begins at a multiple: libraries choose algorithms by what they are told."""
WORD = 4
"""Bytes of the widest pattern that the driver fills memory with."""
NOT_HERE = "the host was asked to compute with the memory of a GPU: a fault of flambeau's"


class DeviceArray(Numberless):
    """An array in the memory of a GPU; each device has a class of its own."""

    place: device = CUDA[0]
    layout: int | None = None
    """What arrays of one class, type, shape, strides and low bits of the address have in common,
    once somebody has asked (`layout_of`)."""
    held: Any = None
    """The memory, of arrays that were made in Python."""
    no_numbers = no_item = no_branch = no_memory = RuntimeError(NOT_HERE)

    @property
    def block(self) -> memory.Block:
        """The memory, where this array is the first over it: it goes back to the pool with the last
        of the arrays."""
        base: Any = self.base
        return base if base.__class__ is memory.Block else self.held  # type: ignore[no-any-return]

    @property
    def is_view(self) -> bool:
        """Whether others may look at this memory."""
        return isinstance(self.base, DeviceArray)

    def __getitem__(self, index: Any) -> Any:
        """A view: also of a single element, which ndarray would read."""
        parts = index if isinstance(index, tuple) else (index,)
        if not all(part is None or part is ... or isinstance(part, BASIC) for part in parts):
            raise RuntimeError(NOT_HERE)
        return super().__getitem__(parts if ... in parts else (*parts, ...))

    def __iter__(self) -> Any:
        return (self[place] for place in range(len(self)))

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:  # type: ignore[override]
        """A view where the memory allows it, else a copy on the device."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        try:
            return np.ndarray.reshape(self, sizes, order=order, copy=False)  # type: ignore[call-overload]
        except ValueError:
            if copy is False or order != "C":
                raise
            return contiguous(self).reshape(sizes)

    def item(self, *args: Any) -> Any:  # type: ignore[override]
        """The single number, copied to the host."""
        return to_host(self).item(*args)

    def tolist(self) -> Any:  # type: ignore[override]
        """The numbers, copied to the host."""
        return to_host(self).tolist()

    def copy(self, order: Any = "K") -> Any:
        """The same elements in new memory, laid out as here where that is dense."""
        strides = element_strides(self)
        if not is_dense(self.shape, strides) or order == "C":
            return contiguous(self)
        result = empty(self.shape, strides, self.dtype, self.place.index)
        assigned[0](result, self)
        return result

    def view(self, *args: Any) -> Any:  # type: ignore[override]
        """Another view of the same memory."""
        return np.ndarray.view(self, *args)

    def __bool__(self) -> bool:  # type: ignore[override]
        return bool(to_host(self))

    def __float__(self) -> float:  # type: ignore[override]
        return float(self.item())

    def __int__(self) -> int:  # type: ignore[override]
        return int(self.item())

    def __complex__(self) -> complex:  # type: ignore[override]
        return complex(self.item())


@cache
def class_of(index: int) -> type[DeviceArray]:
    """The class of the arrays of a device."""
    return type(f"Cuda{index}Array", (DeviceArray,), {"place": CUDA[index]})


def contiguous(data: DeviceArray) -> Any:
    """The same elements in row-major memory of their own."""
    result = empty(data.shape, contiguous_strides(data.shape), data.dtype, data.place.index)
    assigned[0](result, data)
    return result


def laid_out(data: DeviceArray, strides: tuple[int, ...]) -> Any:
    """The array itself if its elements lie so, else a copy that does; strides in elements."""
    steps = _bytes(strides, data.itemsize)
    if data.strides == steps or not data.size:
        return data
    result = empty(data.shape, strides, data.dtype, data.place.index)
    assigned[0](result, data)
    return result


assigned: list[Any] = []
"""What copies arrays on devices: `_ops.cuda.copies.assign`, once there are any."""


def extent(data: np.ndarray) -> tuple[int, int]:
    """How many bytes before its first element, and how many from there on, an array reaches."""
    if not data.size:
        return 0, 0
    reach = [(n - 1) * step for n, step in zip(data.shape, data.strides, strict=True)]
    low = -sum([step for step in reach if step < 0])
    return low, sum([step for step in reach if step > 0]) + data.itemsize


def empty(shape: Any, strides: Any, numpy_dtype: Any, index: Any) -> Any:
    """A new array on a device; `strides` in elements.

    Raises:
        torch.OutOfMemoryError: the device has not so much.
        RuntimeError: nobody has.
    """
    key = shape, strides, numpy_dtype, index
    try:
        nbytes, make = ROOMS[key]
    except (KeyError, TypeError):  # not met yet; or lists
        nbytes, make = _room(tuple(shape), tuple(strides), numpy_dtype, index)
    block = memory.Block(nbytes, index)
    result = make(block, block.address)
    if watching is not None:
        watching.allocated(result)
    return result


ROOMS: dict[Any, tuple[int, Any]] = {}
"""Shape, strides, type and device of new arrays -> their bytes, and what makes them."""


def _room(shape: tuple[int, ...], strides: tuple[int, ...], numpy_dtype: Any, index: Any) -> Any:
    """Bytes and maker of new arrays."""
    steps = _bytes(strides, numpy_dtype.itemsize)
    nbytes = 0
    if 0 not in shape:
        nbytes = numpy_dtype.itemsize
        nbytes += sum([(n - 1) * step for n, step in zip(shape, steps, strict=True)])
    if nbytes > MOST:
        raise overflowed(shape)
    kind = class_of(index)
    if not nbytes:
        return 0, lambda block, _: over_block(block, kind, shape, numpy_dtype, steps)
    if len(ROOMS) >= MOST_LAYOUTS:
        ROOMS.clear()
    key = shape, strides, numpy_dtype, index
    found = ROOMS[key] = nbytes, maker_of(kind, shape, numpy_dtype, steps)
    return found


watching: Any = None
"""What is told of new arrays (`_ops.cuda.repeating`), if something is."""


def unseen() -> None:
    """Say that work is put into a stream of which nothing else is told: it cannot be repeated."""
    if watching is not None:
        watching.is_whole = False


def over_block(block: Any, kind: Any, shape: Any, numpy_dtype: Any, steps: Any) -> Any:
    """An array at the beginning of a block, which it holds; `steps` in bytes."""
    if not block.address:
        result = new(kind, shape, numpy_dtype, window(0, 0, WRITABLE), 0, steps)
        result.held = block
        return result
    return maker_of(kind, shape, numpy_dtype, steps)(block, block.address)


MAKERS: dict[Any, Any] = {}
LAYOUTS: dict[Any, int] = {}
MOST_LAYOUTS = 1 << 14
"""Layouts that are remembered; of those forgotten, a number is never given again."""
numbers = count(1)


def maker_of(kind: Any, shape: Any, numpy_dtype: Any, steps: Any) -> Any:
    """What makes arrays of a layout: a function (block, address) -> array."""
    key = kind, shape, numpy_dtype, steps
    found = MAKERS.get(key)
    if found is None:
        if len(MAKERS) >= MOST_LAYOUTS:
            MAKERS.clear()
        layout = _number(kind, shape, steps, numpy_dtype, 0)
        found = MAKERS[key] = new_arrays.maker(kind, shape, numpy_dtype, steps, layout)
    return found


def _number(kind: Any, shape: Any, steps: Any, numpy_dtype: Any, low: int) -> int:
    """The number of a layout."""
    if len(LAYOUTS) >= MOST_LAYOUTS:
        LAYOUTS.clear()
    key = kind, shape, steps, numpy_dtype, low
    found = LAYOUTS.get(key)
    return LAYOUTS.setdefault(key, next(numbers)) if found is None else found


def layout_of(data: Any) -> int:
    """The number that tells an array's class, type, shape, strides, and where its address lies
    between two multiples of WIDEST, or of which power of two up to ALIGNED it is a multiple."""
    found = data.layout
    if found is None:
        low = address(data) % ALIGNED
        low = low % WIDEST or low & -low
        found = data.layout = _number(data.__class__, data.shape, data.strides, data.dtype, low)
    return found  # type: ignore[no-any-return]


def alone(data: Any, shape: tuple[int, ...]) -> Any:
    """An array that is the only one over its memory, row-major, in another shape."""
    steps = _bytes(contiguous_strides(shape), data.itemsize)
    return over_block(data.block, data.__class__, shape, data.dtype, steps)


def block_of(data: DeviceArray) -> memory.Block:
    """The memory that an array lies in."""
    while isinstance(data.base, DeviceArray):
        data = data.base
    return data.block


def filled(shape: Any, strides: Any, numpy_dtype: Any, index: Any, number: Any) -> Any:
    """A new dense array on a device whose elements are one number (an ndarray of no dims, or what
    NumPy makes one of); None leaves them undefined."""
    result = empty(shape, strides, numpy_dtype, index)
    if number is None or not result.size:
        return result
    pattern = np.asarray(number, numpy_dtype).tobytes()
    while len(pattern) > WORD and pattern[: len(pattern) // 2] == pattern[len(pattern) // 2 :]:
        pattern = pattern[: len(pattern) // 2]
    if len(pattern) > WORD:
        return _filled_from_host(result, number)
    unseen()
    low, high = extent(result)
    word = int.from_bytes(pattern, sys.byteorder)
    with memory.there(index):
        memory.running().fill(address(result) - low, word, len(pattern),
                              (low + high) // len(pattern), memory.Current.stream)  # fmt: skip
    return result


def _filled_from_host(result: Any, number: Any) -> Any:
    """The same for numbers of which the driver knows no pattern."""
    numbers = np.ndarray(result.shape, result.dtype, np.empty(sum(extent(result)), BYTE).data, 0,
                         result.strides)  # fmt: skip
    numbers[...] = number
    overwrite(result, numbers)
    return result


def like(data: np.ndarray, index: int) -> Any:
    """A new array on a device, with the layout of another."""
    return empty(data.shape, element_strides(data), data.dtype, index)


def to_host(data: DeviceArray) -> np.ndarray:
    """The same elements on the host, with the same strides."""
    if not data.size:
        return np.ndarray(data.shape, data.dtype, np.empty(1, np.uint8).data, 0, data.strides)
    unseen()
    low, high = extent(data)
    taken = np.empty(low + high, np.uint8)
    with memory.there(data.place.index):
        memory.running().to_host(address(taken), address(data) - low, low + high,
                                 memory.Current.stream)  # fmt: skip
    return np.ndarray(data.shape, data.dtype, taken.data, low, data.strides)


def from_host(data: np.ndarray, place: device) -> Any:
    """The same elements on a device, with the same strides where they lie side by side, else in
    row-major order."""
    low, high = extent(data)
    if low or high != data.nbytes:
        data = np.ascontiguousarray(data).reshape(data.shape)
    unseen()
    result = like(data, place.index or 0)
    if data.size:
        with memory.there(place.index):
            stream = memory.Current.stream
            memory.running().to_device(address(result), address(data), data.nbytes, stream)
            if pinned.starts:
                pinned.used_by(address(data), result.place.index, stream)
    return result


def constant(data: np.ndarray, place: device) -> Any:
    """The same for numbers that no program has given: they may go into graphs (`constants`)."""
    unseen()
    result = like(data, place.index or 0)
    if data.size:
        with memory.there(place.index):
            constants.copied(address(result), address(data), data.nbytes)
    return result


def overwrite(target: DeviceArray, numbers: np.ndarray) -> None:
    """Write the elements of an array with the same shape and strides back to a device, as `to_host`
    gave it: the bytes between them are taken along."""
    unseen()
    if target.size:
        low, high = extent(target)
        with memory.there(target.place.index):
            memory.running().to_device(address(target) - low, address(numbers) - low, low + high,
                                       memory.Current.stream)  # fmt: skip


def written(target: DeviceArray, write: Callable[[np.ndarray], object]) -> None:
    """Let the host write to a copy of an array, and copy that back."""
    numbers = to_host(target)
    write(numbers)
    overwrite(target, numbers)


ready: list[Any] = []
"""What gets upper layers ready for devices, once there are any."""


def look() -> None:
    """Find the devices of this process."""
    found = driver()
    if found is None:
        return
    Cuda.count = found.device_count()
    Defaults.elsewhere = True
    version = found.version()
    Cuda.version = f"{version // 1000}.{version % 1000 // 10}"
    from flambeau._tensor.tensor import constructors

    constructors["expect_cuda"]()
    for function in ready:
        function()


Cuda.look = look
