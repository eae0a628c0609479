"""A pool of native threads, itself a kernel: they spin for a moment after work, then sleep.

Work is a kernel, its packed arguments and a number of tasks. Threads take tasks one by one from a
word that holds the job's ticket and the next task, so that a thread that comes late takes nothing,
and nobody waits for a thread that has nothing to do.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any

import numpy as np

from flambeau._core import settings
from flambeau._runtime.launch import CHECKED, EVERYWHERE, kernel
from flambeau._runtime.pool_kernels import CONDITION, MUTEX, WORDS, run_job, worker


class Pool:
    """The state that threads share, and how many there are."""

    def __init__(self) -> None:
        self.memory = np.zeros(WORDS + 8, np.int64)
        start = self.memory.ctypes.data
        self.state = (start + 63) // 64 * 64
        self.started = 0
        library = ctypes.CDLL(None)
        library.pthread_mutex_init(ctypes.c_void_p(self.state + 8 * MUTEX), None)
        library.pthread_cond_init(ctypes.c_void_p(self.state + 8 * CONDITION), None)
        self.library = library
        self.arguments: list[Any] = []
        job = kernel(run_job)
        self.job = job.entry
        self.pack = struct.Struct("QQQQQqq" if CHECKED else "QQQqq").pack
        self.limits = EVERYWHERE if CHECKED else ()

    def grow(self, wanted: int) -> None:
        """Start threads until there are `wanted`."""
        life = kernel(worker)
        while self.started < wanted:
            self.started += 1
            words = life.packed((self.state, self.started))
            packed = ctypes.create_string_buffer(words, len(words))
            self.arguments.append(packed)
            thread = ctypes.c_void_p()
            failed = self.library.pthread_create(
                ctypes.byref(thread), None, ctypes.c_void_p(life.address), packed
            )
            if failed:  # the system allows no more: the work is done with fewer
                self.started = wanted
                return
            self.library.pthread_detach(thread)


class Shared:
    """The process's pool, once it has one."""

    pool: Pool | None = None


def _forget() -> None:
    Shared.pool = None


os.register_at_fork(after_in_child=_forget)


def run(kernel_: Any, packed: bytes, tasks: int) -> None:
    """Run a kernel's tasks over the pool's threads and the caller."""
    limit = settings.get_num_threads()
    if limit == 1:
        for task in range(tasks):
            kernel_.entry(packed, task, tasks)
        return
    pool = Shared.pool
    if pool is None:
        pool = Shared.pool = Pool()
    if pool.started < limit - 1:
        pool.grow(limit - 1)
    words = (kernel_.address, _address_of(packed), tasks, limit)
    pool.job(pool.pack(pool.state, *pool.limits, *words), 0, 1)


_BYTES = bytes.__basicsize__ - 1


def _address_of(packed: bytes) -> int:
    """Where the contents of a bytes object lie: right behind its header."""
    return id(packed) + _BYTES


def _check_address() -> None:
    probe = b"flambeau"
    if ctypes.string_at(_address_of(probe), 8) != probe:
        raise ImportError("this Python keeps the contents of bytes in an unknown place")


_check_address()
