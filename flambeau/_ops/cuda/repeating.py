"""Operators of several launches, done again: what they allocate and launch is kept by the layout of
their arguments, and the next call with such arguments only fills in addresses.

    @repeated
    def layer_norm(data, shape, weight, bias, eps): ...

holds for functions that look at shapes, strides, types and numbers alone, allocate by
`elementwise`'s and `fills`' means, and launch kernels.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from flambeau._core.settings import Determinism
from flambeau._ops.cuda.straight import reader, replay, same
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda import launch
from flambeau._runtime.cuda.memory import Current
from flambeau._tensor import device_array
from flambeau._tensor.device_array import (
    ALIGNED,
    DeviceArray,
    class_of,
    layout_of,
    maker_of,
    over_block,
)

MOST = 512
"""Layouts of arguments that are kept of an operator."""


class Result(NamedTuple):
    """An array that a call gives: in which memory, from which byte on, and how it lies there."""

    room: int
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    steps: tuple[int, ...]
    make: Any
    """What makes it, where a row of 16 bytes may begin at it."""
    over: tuple[int, Any] | None
    """The array that it is a view of: where that begins, and what makes it. None where it is dense:
    it is the first array over its part of the memory."""

    def odd(self, block: Any, device: int) -> Any:
        """The array where `make` cannot make it."""
        kind = class_of(device)
        whole = over_block(block, kind, (block.nbytes,), np.dtype(np.uint8), (1,))
        return np.ndarray.__new__(kind, self.shape, self.dtype, whole, self.offset, self.steps)


class Recording:
    """What one call does."""

    now: Recording | None = None

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = list(arrays)
        self.thread = threading.get_ident()
        self.rooms: list[Any] = []
        self.launches: list[tuple[Any, tuple[Any, ...], bool]] = []
        """What gives a launching function for a device, its arguments, and whether it takes
        addresses alone."""
        self.constants: set[int] = set()
        """Where arrays begin that every call uses."""
        self.is_whole = True
        """Whether every address is that of an argument, or of memory allocated here."""

    def place(self, array: Any) -> tuple[int, int] | None:
        """Where an array begins: the number of an argument or of memory behind them, and a byte."""
        start = address(array)
        for number, room in enumerate(self.rooms):
            block = room.block
            if block.address <= start < block.address + max(block.nbytes, 1):
                return len(self.arrays) + number, start - block.address
        starts = [address(given) for given in self.arrays]
        if start in starts:
            return starts.index(start), 0
        found = [number for number, given in enumerate(self.arrays) if _holds(given, start)]
        return (found[0], start - starts[found[0]]) if len(found) == 1 else None

    def allocated(self, array: Any) -> None:
        """Keep new memory, if this thread asked for it; it stays as long as this."""
        if threading.get_ident() == self.thread:
            self.rooms.append(array)

    def launched(self, kernel: Any, blocks: int, arguments: tuple[Any, ...]) -> None:
        """Keep a launch."""
        self.called(lambda device: kernel.devices[device], (blocks, *arguments))

    def called(self, function_on: Callable[[int], Any], arguments: tuple[Any, ...],
               by_addresses: bool = False) -> None:  # fmt: skip
        """Keep a call of what puts work into a stream, if this thread makes it.

        `function_on`: gives for a device the function of (stream, *arguments); of the arguments
        alone, addresses in place of arrays, where it is called `by_addresses`.
        """
        if threading.get_ident() != self.thread:
            return
        found: list[Any] = []
        for value in arguments:
            place = None
            if isinstance(value, np.ndarray) and address(value) not in self.constants:
                place = self.place(value)
                self.is_whole = self.is_whole and place is not None
            found.append((True, *place) if place is not None else (False, value, 0))
        self.launches.append((function_on, tuple(found), by_addresses))


def _holds(array: Any, place: int) -> bool:
    """Whether an address lies among the elements of an array."""
    low, high = device_array.extent(array)
    return address(array) - low <= place < address(array) + max(high, 1)  # type: ignore[no-any-return]


class Known:
    """What is known of calls whose arguments are of certain classes."""

    __slots__ = ("read", "replays")

    def __init__(self, read: Any) -> None:
        self.read = read
        """See `straight.reader`; None where classes do not tell what a call depends on."""
        self.replays: dict[Any, tuple[Any, int]] = {}
        """What a call depends on -> what does it again, and on which device; (None, 0) where
        nothing does."""


def repeated(function: Callable[..., Any], state: Callable[[], Any] | None = None) -> Any:
    """Keep what a function allocates and launches.

    `state`: what settings it depends on, besides that of deterministic algorithms.
    """
    known_by: dict[tuple[type, ...], Known] = {}

    @functools.wraps(function)
    def call(*values: Any) -> Any:
        if Recording.now is not None:
            return function(*values)
        kinds = tuple(map(type, values))
        known = known_by.get(kinds)
        if known is None:
            if len(known_by) >= MOST:
                known_by.clear()
            known = known_by[kinds] = Known(reader(kinds, state))
        read = known.read
        found = None if read is None else read(*values)
        if found is None:
            found = described(values, state)
            if found is None:
                return function(*values)
        key, arrays = found
        try:
            again, device = known.replays[key]
        except KeyError:
            if len(known.replays) >= MOST:
                known.replays.clear()
            result, known.replays[key] = _first(function, values, arrays)
            return result
        except TypeError:
            return function(*values)
        if again is None or device != Current.device:
            return function(*values)
        return again(*arrays)

    return call


def described(values: Any, state: Callable[[], Any] | None) -> tuple[Any, list[Any]] | None:
    """What functions of `reader` find, for arguments of any classes; lists may hold arrays."""
    key: list[Any] = [Determinism.enabled]
    arrays: list[Any] = []
    if state is not None:
        key.append(state())
    if not all(_describe(value, key, arrays) for value in values):
        return None
    return (*key, same(arrays)), arrays


def kept(make: Callable[[], Any]) -> Any:
    """An array that is made once and kept: calls that are repeated use it, and do not make it."""
    recording = Recording.now
    Recording.now = device_array.watching = launch.watching = None
    try:
        result = make()
    finally:
        Recording.now = device_array.watching = launch.watching = recording
    if recording is not None:
        recording.constants.add(address(result))
    return result


def told(run: Callable[..., Any], arrays: Sequence[Any], *numbers: Any) -> None:
    """Call a function of addresses, and then numbers, that puts work into the current stream: calls
    that are repeated call it again."""
    recording = Recording.now
    whole = recording is None or recording.is_whole
    run(*map(address, arrays), *numbers)
    if recording is not None:
        recording.is_whole = whole
        recording.called(lambda device: run, (*arrays, *numbers), by_addresses=True)


def _describe(value: Any, key: list[Any], arrays: list[Any]) -> bool:
    """Say what a call depends on; False where that cannot be told."""
    if isinstance(value, DeviceArray):
        key.append(layout_of(value))
        arrays.append(value)
    elif isinstance(value, (list, tuple)):
        key.append(len(value))
        return all(_describe(part, key, arrays) for part in value)
    elif isinstance(value, (np.ndarray, np.generic)):
        return False
    else:
        key += (value.__class__, value)
    return True


def _first(function: Any, values: Any, arrays: Sequence[Any]) -> tuple[Any, tuple[Any, int]]:
    recording = Recording.now = Recording(arrays)
    device_array.watching = launch.watching = recording
    try:
        result = function(*values)
    finally:
        Recording.now = device_array.watching = launch.watching = None
    return result, _replay(recording, result)


NOTHING = None, 0


def _replay(recording: Recording, result: Any) -> tuple[Any, int]:
    """What does a call again, and on which device; NOTHING where that cannot be."""
    results = _results(recording, result)
    arrays = recording.arrays
    if not recording.is_whole or results is None or not arrays:
        return NOTHING
    if not _are_disjoint(results):
        return NOTHING
    if not _are_apart(arrays) or any(not room.block.address for room in recording.rooms):
        return NOTHING
    results = _without_unused(recording, results)
    index = arrays[0].place.index
    rooms = [room.block.nbytes for room in recording.rooms]
    launches = [(function_on(index), *rest) for function_on, *rest in recording.launches]
    return replay(len(arrays), rooms, launches, results, index), index


def _without_unused(recording: Recording, results: Any) -> Any:
    """Forget memory that is neither given to a launch nor part of a result, which are renumbered:
    that of ways that were tried in vain."""
    first = len(recording.arrays)
    parts = results if results.__class__ is list else [results]
    used = {value - first for _, arguments, _ in recording.launches
            for at, value, _ in arguments if at and value >= first}  # fmt: skip
    used |= {part.room for part in parts if isinstance(part, Result)}
    order = sorted(used)
    if len(order) == len(recording.rooms):
        return results
    number = {old: new for new, old in enumerate(order)}
    recording.rooms = [recording.rooms[old] for old in order]
    recording.launches = [
        (function_on, tuple([
            (at, first + number[value - first] if at and value >= first else value, more)
            for at, value, more in arguments
        ]), by_addresses)
        for function_on, arguments, by_addresses in recording.launches
    ]  # fmt: skip
    parts = [part._replace(room=number[part.room]) if isinstance(part, Result) else part
             for part in parts]  # fmt: skip
    return parts if results.__class__ is list else parts[0]


def _are_apart(arrays: list[Any]) -> bool:
    """Whether different arrays begin at different places: it is known then which of them a launch
    was given."""
    different = {id(array): address(array) for array in arrays}
    return len(set(different.values())) == len(different)


def _results(recording: Recording, result: Any) -> Any:
    """The results as parts of memory allocated here, or the numbers of arguments; None where they
    are something else."""
    if isinstance(result, tuple):
        found = [_results(recording, part) if part is not None else () for part in result]
        return None if None in found else found
    if not isinstance(result, DeviceArray):
        return None
    given = next((k for k, array in enumerate(recording.arrays) if array is result), None)
    if given is not None:
        return given
    place = recording.place(result)
    if place is None or place[0] < len(recording.arrays):
        return None
    room, offset = place[0] - len(recording.arrays), place[1]
    make = over = None
    base: Any = result.base
    dense = sum(device_array.extent(result)) == result.nbytes
    if not offset % ALIGNED and (dense or isinstance(base, DeviceArray)):
        make = maker_of(result.__class__, result.shape, result.dtype, result.strides)
    if make is not None and not dense:
        begin = offset - (address(result) - address(base))
        over = begin, maker_of(base.__class__, base.shape, base.dtype, base.strides)
    return Result(room, offset, result.shape, result.dtype, result.strides, make, over)


def _are_disjoint(results: Any) -> bool:
    """Whether no two results that are the first over their memory lie in the same bytes."""
    found = [part for part in (results if results.__class__ is list else [results])
             if isinstance(part, Result) and part.over is None]  # fmt: skip
    spans = sorted((part.room, part.offset, part.offset + _bytes(part)) for part in found)
    return all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(spans))


def _bytes(result: Result) -> int:
    return math.prod(result.shape) * result.dtype.itemsize
