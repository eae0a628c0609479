"""A pool of native threads, itself a kernel: they spin for a moment after work, then sleep.

There are no threads before the first parallel work, and never more than `set_num_threads` allows
(the caller is one of them). Python threads may launch at the same time: one gets the pool, the
others work alone. A forked child makes a pool of its own. Where the system has no POSIX threads,
Python's take their place.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from typing import Any

from flambeau._core import processors, settings, signals
from flambeau._runtime import pool_kernels as layout

SPIN = 1_000_000
"""Nanoseconds that a thread waits for more work before it sleeps: longer than the way from one
operator to the next, short enough not to be noticed."""
CROWDED = 50_000
"""The same for threads beyond the number of processors: who waits keeps another from working."""


def _lines(words: int) -> int:
    """The address of zeros, whole cache lines, that are never freed: threads look at theirs until
    the process is gone, also while the interpreter takes its modules apart."""
    memory = (ctypes.c_char * (8 * words + 64))()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    return (ctypes.addressof(memory) + 63) // 64 * 64


class NativePool:
    """The state that threads share, and how many there are."""

    def __init__(self) -> None:
        from flambeau._runtime import engine

        code = engine.functions((layout.pool_run, layout.pool_worker))
        self.state = _lines(layout.WORDS)
        self.places = _lines(layout.PLACE * layout.MOST)  # pages that nobody touches cost nothing
        words = (ctypes.c_int64 * layout.WORDS).from_address(self.state)
        words[layout.PLACES] = self.places
        self.library = ctypes.CDLL(None)
        self.life = ctypes.c_void_p(code["pool_worker"])
        self.started = 0
        number = ctypes.c_int64
        self.entry = code["pool_run"]
        self.work: Any = ctypes.CFUNCTYPE(None, *[number] * 5)(self.entry)

    def run(self, kernel: Any, arguments: Any, tasks: int, limit: int) -> None:
        """Run a kernel's tasks with up to `limit` threads."""
        limit = self.ready(tasks, limit)
        if kernel.spread is not None:
            kernel.spread(self.entry, self.state, tasks, limit, *arguments)
        else:
            packed = kernel.packed(arguments)
            self.work(self.state, kernel.address, contents(packed), tasks, limit)

    def ready(self, tasks: int, limit: int) -> int:
        """How many threads will work on so many tasks; they are started."""
        limit = min(limit, tasks, layout.MOST)
        if self.started < limit - 1:
            self.grow(limit - 1)
        return limit

    def grow(self, wanted: int) -> None:
        """Start threads until there are `wanted`; signals stay with Python's own threads.

        A place counts as taken before its thread is started: no second one gets it, whatever a
        signal's handler raises meanwhile. Where the system allows no more threads, and in a place
        without one, the work is done with fewer.
        """
        with Shared.lock, signals.blocked(signal.valid_signals()):
            cores = processors.usable()
            while self.started < wanted:
                self.started += 1
                if not self._start(self.started, SPIN if self.started < cores else CROWDED):
                    self.started = wanted

    def _start(self, number: int, spin: int) -> bool:
        place = self.places + 8 * layout.PLACE * (number - 1)
        words = (ctypes.c_int64 * layout.PLACE).from_address(place)
        words[layout.STATE], words[layout.NUMBER] = self.state, number
        words[layout.SPIN] = spin
        for name, lock in (("mutex", layout.MUTEX), ("cond", layout.CONDITION)):
            begin = getattr(self.library, f"pthread_{name}_init")
            begin(ctypes.c_void_p(place + 8 * lock), None)
        thread = ctypes.c_void_p()
        failed = self.library.pthread_create(
            ctypes.byref(thread), None, self.life, ctypes.c_void_p(place)
        )
        if failed:
            return False
        self.library.pthread_detach(thread)
        return True


class PythonPool:
    """The same with Python's threads, which are slower to hand work to (some 50 us)."""

    def __init__(self) -> None:
        self.executor: Any = None
        self.size = 0

    def run(self, kernel: Any, arguments: Any, tasks: int, limit: int) -> None:
        """Run a kernel's tasks with up to `limit` threads."""
        from concurrent.futures import ThreadPoolExecutor

        if self.executor is None or self.size < limit - 1:
            if self.executor is not None:
                self.executor.shutdown(wait=False)
            self.executor, self.size = ThreadPoolExecutor(limit - 1), limit - 1
        packed = kernel.packed(arguments)
        todo = iter(range(tasks))  # next() on it is atomic

        def take() -> None:
            for task in todo:
                kernel.entry(packed, task, tasks)

        helpers = [self.executor.submit(take) for _ in range(min(limit, tasks) - 1)]
        take()
        for helper in helpers:
            helper.result()


class Shared:
    """The process's pool, once it has one."""

    pool: NativePool | PythonPool | None = None
    lock = threading.RLock()


def _forget() -> None:
    """The child of a fork has none of its parent's threads."""
    Shared.pool = None
    Shared.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def has_native_threads() -> bool:
    """Whether the process has POSIX threads under their names."""
    try:
        return hasattr(ctypes.CDLL(None), "pthread_create")
    except (TypeError, OSError):  # Windows
        return False


def the_pool() -> NativePool | PythonPool:
    """The process's pool, made when first needed."""
    with Shared.lock:
        if Shared.pool is None:
            Shared.pool = NativePool() if has_native_threads() else PythonPool()
        return Shared.pool


def run(kernel: Any, arguments: Any, tasks: int, worth: int) -> None:
    """Run a kernel's tasks over the pool's threads and the caller, `worth` threads at most."""
    limit = min(settings.get_num_threads(), worth)
    if limit > 1:
        pool = Shared.pool or the_pool()
        pool.run(kernel, arguments, tasks, limit)
    elif kernel.spread is not None:
        kernel.spread(0, 0, tasks, 1, *arguments)
    else:
        packed = kernel.packed(arguments)
        for task in range(tasks):
            kernel.entry(packed, task, tasks)


_BYTES = bytes.__basicsize__ - 1


def contents(packed: bytes) -> int:
    """Where the contents of a bytes object lie: right behind its header."""
    return id(packed) + _BYTES


def _check_address() -> None:
    probe = b"flambeau"
    if ctypes.string_at(contents(probe), 8) != probe:
        raise ImportError("this Python keeps the contents of bytes in an unknown place")


_check_address()
