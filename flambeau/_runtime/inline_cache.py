"""Inline caches: what calls with arguments of these kinds did before, done again by machine code.

    cache = InlineCache(learn)
    data = cache(a, b)         # a new array, or None: then the caller computes

An operator on small tensors costs what surrounds its loop: which kernel serves these types and
layouts, new memory, the launch. All of it follows from the arguments' types, shapes and strides,
and from the objects beside them (dims, flags), so that a call that has been described once is done
again without asking: 0.3 us where the same through Python takes 1 to 4 (benchmarks/op_overhead.py,
benchmarks/small_calls.py). The name is the field's for caches beside a place that calls (Deutsch
and Schiffman, 1984).

`learn(cache, *arguments)` is told of calls that no entry fits, and may describe them by `keep`.
What it describes must hold for all arrays of that description, whatever their numbers: bodies that
look at numbers have no entries.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache as cache_once
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakSet, proxy

import numpy as np

from flambeau._core import dtype as dt
from flambeau._runtime import inline_cache_kernels as layout
from flambeau._runtime.cpu import NEW_FROM_DESCRIPTION, numpy_function
from flambeau._runtime.trampoline import builtin, method

ndarray = np.ndarray
MOST = 1 << 15
"""Elements of a call that is described: meanwhile no other thread of Python goes on."""


@cache_once
def _code() -> int:
    """The address of the machine code; 0 where it cannot be loaded."""
    from flambeau._runtime import engine

    try:
        return engine.functions((layout.inline_call,))["inline_call"]
    except RuntimeError:  # a library of kernels is without it
        return 0


class Argument:
    """A slot that holds an address in an argument, so many bytes behind its first element."""

    def __init__(self, position: int, offset: int = 0) -> None:
        self.words = (layout.ARGUMENT, position | offset << layout.OFFSET)


class Result:
    """A slot that holds an address in a result."""

    def __init__(self, position: int, offset: int = 0) -> None:
        self.position = position
        self.words = (layout.RESULT, position | offset << layout.OFFSET)


class Loop(NamedTuple):
    """How a ufunc's loop goes over its operands: `outer` rows of `length` elements."""

    state: int
    """What it is told besides."""
    length: int
    steps: Sequence[int]
    """Bytes from element to element, for each operand."""
    outer: int
    outer_steps: Sequence[int]


class InlineCache:
    """Some calls of one function, each described once."""

    caches: WeakSet[InlineCache] = WeakSet()
    """Those that a function holds."""
    refused: deque[str] = deque(maxlen=100)
    """Calls that were described wrongly, which are not kept; see `confirm`."""

    def __init__(self, learn: Callable[..., None]) -> None:
        self.learn = partial(learn, proxy(self))
        self.kept: list[Any] = [None] * layout.PLACES
        self.next = 0
        self.table = table = np.zeros(layout.WORDS, np.int64)
        table[layout.LEARN], table[layout.NONE] = id(self.learn), id(None)
        table[layout.ARRAYS] = id(ndarray)
        table[layout.CREATE] = numpy_function(NEW_FROM_DESCRIPTION)
        self.caches.add(self)

    def function(self) -> Callable[..., Any] | None:
        """The builtin function that looks into the cache; None where there is none."""
        code = _code()
        if not code:
            return None
        record = struct.pack("q", self.table.ctypes.data)
        self.call = builtin(method(b"inline_call", code), record, self)
        return self.call  # type: ignore[no-any-return]

    def keep(self, arguments: Sequence[Any], results: Sequence[Any], slots: Sequence[Any],
             code: int, loop: Loop | None = None, returned: int = 0, flag: int = 0,
             given: int | None = None, alive: Any = None) -> None:  # fmt: skip
        """Describe a call.

        Args:
            arguments: arrays, and objects that later calls must be given, too.
            results: (dtype, shape) for a new row-major array; for one that is written to, the
                position of that argument.
            slots: `Argument`, `Result` and numbers: what the kernel at `code` is given.
            loop: where `code` is the loop of a ufunc, whose slots are addresses.
            returned: how many results the call has, if not all; the others are memory that only
                the kernel needs.
            flag: which result, counted from 1, is a number that is not 0 where the kernel refuses
                the arguments: then the call is as one that no entry fits.
            given: from this position on arrays have to be the same ones in later calls.
            alive: what must live as long as the entry.
        """
        if len(slots) > layout.MOST_SLOTS or len(results) > layout.MOST_RESULTS:
            return
        described = len(arguments) if given is None else given
        written = [result for result in results if isinstance(result, int)]
        entry = [len(arguments)]
        for k, value in enumerate(arguments):
            if value.__class__ is ndarray and k < described:
                kind = layout.WRITTEN if k in written else layout.READ
                entry += [kind, id(value.dtype), value.ndim, *value.shape, *value.strides]
            else:
                entry.append(id(value))
        kind = layout.KERNEL if loop is None else layout.LOOP
        state, count, outer = (0, 0, 0) if loop is None else (loop.state, loop.length, loop.outer)
        entry += [code, kind, state, count, outer, len(results), returned or len(results), flag,
                  len(slots)]  # fmt: skip
        for result in results:
            if isinstance(result, int):
                entry += [0, result]
            else:
                dtype, shape = result
                entry += [id(dtype), len(shape), *shape]
        for slot in slots:
            entry += slot.words if isinstance(slot, (Argument, Result)) else (layout.NUMBER, slot)
        if loop is not None:
            entry += [*loop.steps, *loop.outer_steps]
        words = np.array(entry, np.int64)
        objects = [v for k, v in enumerate(arguments)
                   if v.__class__ is not ndarray or k >= described]  # fmt: skip
        types = [value.dtype for value in arguments if value.__class__ is ndarray]
        place, self.next = self.next, (self.next + 1) % layout.PLACES
        address = words.ctypes.data
        self.table[place] = 0  # a signal's error in between leaves no address of freed memory
        self.kept[place] = words, objects, types, results, alive
        self.table[place] = address

    def confirm(self, arguments: Sequence[Any], results: Sequence[np.ndarray]) -> None:
        """Do the call that was described last, and forget it unless its results have the bits of
        those that are known."""
        again = self.call(*arguments)
        found = again if isinstance(again, tuple) else (again,)
        if again is None or not all(map(_are_same, found, results)):
            last = (self.next - 1) % layout.PLACES
            self.table[last] = 0
            told = [f"{a.dtype}{a.shape}" if isinstance(a, ndarray) else repr(a) for a in arguments]
            self.refused.append(f"{self.learn.args[1:]}({', '.join(told)})")

    def forget(self) -> None:
        """Forget all calls: what they depend on has changed."""
        self.table[: layout.PLACES] = 0
        self.table[layout.MISSES] = 0

    @classmethod
    def forget_all(cls) -> None:
        """Forget the calls of all caches."""
        for cache in cls.caches:
            cache.forget()


def _are_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays lie alike and have the same bits."""
    alike = a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
    return alike and a.tobytes() == b.tobytes()


dt.on_default_change.append(InlineCache.forget_all)
