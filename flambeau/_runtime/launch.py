"""From a kernel's definition to a call: compile or load it once, pack arguments, run it.

    k = kernel(sum_rows, T=f32, W=8)     # from this process, the disk or the compiler
    k(x, out, rows, cols)                # in the caller's thread, by a builtin function
    k.parallel(8, x, out, rows, cols)    # eight tasks over the thread pool

Pointers are given as ndarrays (their first element) or as addresses. With FLAMBEAU_DEBUG=bounds
every access of every kernel is checked, and one outside of its array raises IndexError.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._compiler.types import Pointer
from flambeau._core import forks
from flambeau._runtime import allocator, choice, threads, trampoline
from flambeau._runtime.cpu import _HEADER, _word_at, address
from flambeau._runtime.observed import observers, tell
from flambeau._runtime.pool_kernels import MOST

CHECKED = "bounds" in os.environ.get("FLAMBEAU_DEBUG", "").split("|")
WATCHED = CHECKED or allocator.DEBUG
pool_is_ready: Any = allocator.is_ready
ndarray = np.ndarray
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
EVERYWHERE = (0, (1 << 64) - 1)


class Kernel:
    """Machine code and how to hand it its arguments."""

    __slots__ = ("address", "alone", "direct", "entry", "fault", "letters", "name", "pack",
                 "pointers", "spread", "statics")  # fmt: skip
    alone: Any
    direct: Any
    spread: Any
    """Its builtin functions, see `trampoline.Calls`, or what takes their place."""

    def __init__(self, native: Any, statics: dict[str, Any]) -> None:
        from flambeau._runtime import engine

        allocator.ready()
        found = engine.symbols(native, statics, CHECKED)
        self.name = native.name
        self.statics = statics
        self.address = found["entry"]
        self.entry = ENTRY(self.address)
        self.fault = found.get("fault", 0)
        types = [native.type_of(p, dict(statics)) for p in native.parameters
                 if not p.static and p.name not in ("task", "tasks")]  # fmt: skip
        self.pointers = tuple(isinstance(type, Pointer) for type in types)
        self.letters = letters = "".join(
            ["Q" if isinstance(t, Pointer) else "d" if t.is_float else "q" for t in types]
        )
        self.pack: Callable[..., bytes] = struct.Struct(
            letters.replace("Q", "QQQ") if CHECKED else letters
        ).pack
        calls = None if WATCHED else trampoline.calls(self.address, letters)
        self.direct = self.alone = self._by_ctypes
        self.spread = None
        if calls is not None:
            self.direct, self.alone, self.spread = calls

    def _by_ctypes(self, *arguments: Any) -> None:
        self.entry(self.packed(arguments), 0, 1)
        if WATCHED:
            self.raise_fault()

    def __call__(self, *arguments: Any) -> None:
        """Run as one task in the caller's thread."""
        if observers:
            tell(self, 1, arguments)
        self.alone(*arguments)

    def once(self, *arguments: Any) -> None:
        """Run as one task that takes no longer than some microseconds: what small operators cost
        (benchmarks/op_overhead.py) is the way to here."""
        if not pool_is_ready():
            allocator.ready()
        if observers:
            tell(self, 1, arguments)
        self.direct(*arguments)

    def parallel(self, tasks: int, *arguments: Any, worth: int = MOST) -> None:
        """Run `tasks` tasks by `worth` threads at most; each is told its number and how many there
        are."""
        if not pool_is_ready():
            allocator.ready()  # the first large work of a thread
        if observers:
            tell(self, tasks, arguments)
        if tasks == 1:
            self.alone(*arguments)
            return
        threads.run(self, arguments, tasks, worth)
        if WATCHED:
            self.raise_fault()

    def packed(self, arguments: Any) -> bytes:
        """The arguments in 64-bit slots."""
        if CHECKED:
            return self._packed_with_limits(arguments)
        # `address`, written out: three calls fewer for a sum (benchmarks/op_overhead.py)
        return self.pack(*[
            _word_at(id(value) + _HEADER).value if value.__class__ is ndarray else value
            for value in arguments
        ])  # fmt: skip

    def _packed_with_limits(self, arguments: Any) -> bytes:
        values: list[Any] = []
        for is_pointer, value in zip(self.pointers, arguments, strict=True):
            if not is_pointer:
                values.append(value)
            elif value.__class__ is ndarray:
                values += [address(value), *limits_of(value)]
            else:  # an address; arrays without numbers of their own refuse to be one
                values += [int(value), *EVERYWHERE]
        return self.pack(*values)

    def raise_fault(self) -> None:
        """IndexError if a checked access has been outside of its array since the last look."""
        allocator.check()
        if not self.fault:
            return
        place = (ctypes.c_int64 * 4).from_address(self.fault)
        if place[0]:
            line = place[1]
            place[0] = 0
            raise IndexError(f"kernel {self.name} {self.statics}: access outside of its array, "
                             f"line {line}")  # fmt: skip


class LibraryKernel(Kernel):
    """A kernel where all are from a library: its launches are counted (`choice.guarded`)."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> None:
        """Run as one task in the caller's thread."""
        choice.thread.launches += 1
        super().__call__(*arguments)

    def once(self, *arguments: Any) -> None:
        """Run as one short task."""
        choice.thread.launches += 1
        super().once(*arguments)

    def parallel(self, tasks: int, *arguments: Any, worth: int = MOST) -> None:
        """Run `tasks` tasks over the thread pool."""
        choice.thread.launches += 1
        super().parallel(tasks, *arguments, worth=worth)


def limits_of(array: np.ndarray) -> tuple[int, int]:
    """The address of the first byte that an array reaches, and the one behind the last."""
    start = address(array)
    if not array.size:
        return start, start
    reach = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    low = start + sum(step for step in reach if step < 0)
    high = start + sum(step for step in reach if step > 0) + array.itemsize
    return low, high


KERNELS: dict[Any, Kernel] = {}
KIND = LibraryKernel if choice.FROM_LIBRARY else Kernel
LOCK = threading.RLock()


def kernel(native: Any, **statics: Any) -> Kernel:
    """The kernel for these constants, compiled when first asked for."""
    key = (native, *statics.items())
    found = KERNELS.get(key)
    if found is None:
        with forks.held_off(), LOCK:  # nobody holds the lock when a child is made
            found = KERNELS.get(key)
            if found is None:
                found = KERNELS[key] = KIND(native, statics)
    return found
