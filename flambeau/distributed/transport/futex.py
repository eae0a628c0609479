"""Waiting for a word in shared memory to change."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import time

WAIT, WAKE = 0, 1
EVERYBODY = 2**31 - 1
NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""The system call on each processor."""
NUMBER = NUMBERS.get(platform.machine()) if sys.platform == "linux" else None
POLL = 0.0005
"""Seconds between looks where the system cannot wait for memory."""
BARRIER = threading.Lock()
"""Taking it orders the reads and writes of memory around it."""


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_library = ctypes.CDLL(None) if NUMBER is not None else None
_yield = getattr(os, "sched_yield", lambda: time.sleep(0))


def give_way() -> None:
    """Let another thread or process run."""
    _yield()


def order() -> None:
    """What was written before is seen by others before what is written after."""
    with BARRIER:
        pass


def wait(address: int, value: int, seconds: float) -> None:
    """Wait until the 32-bit word at an address is not `value`, or is woken, or time is over."""
    if _library is None:
        time.sleep(min(POLL, seconds))
        return
    timeout = _Timespec(int(seconds), int(seconds % 1 * 1e9))
    _library.syscall(
        ctypes.c_long(NUMBER or 0), ctypes.c_void_p(address), ctypes.c_int(WAIT),
        ctypes.c_uint(value & 0xFFFFFFFF), ctypes.byref(timeout), None, ctypes.c_int(0),
    )  # fmt: skip


def wake(address: int) -> None:
    """Wake all who wait for a word."""
    if _library is not None:
        _library.syscall(
            ctypes.c_long(NUMBER or 0), ctypes.c_void_p(address), ctypes.c_int(WAKE),
            ctypes.c_int(EVERYBODY), None, None, ctypes.c_int(0),
        )  # fmt: skip
