"""`torch.set_flush_denormal`: whether numbers too small for full precision are taken for zero.

It is a mode of the processor that each thread has for itself. NumPy's loops and kernels obey it
alike; threads of the pool take over that of the thread whose work they do (`pool_kernels.py`), and
threads begin with that of the thread that starts them.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from flambeau._runtime import choice, threads
from flambeau._runtime import pool_kernels as kernels


def set_flush_denormal(mode: bool, /) -> bool:
    """Take denormal numbers for zero in this thread, as operands and as results, or do not.

    True where that can be set: on x86 with llvmlite.

    >>> import flambeau as torch
    >>> torch.set_flush_denormal(False) in (True, False)
    True
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    if not _can_be_set():
        return False
    _setter()(kernels.FLUSH_RESULTS | kernels.FLUSH_OPERANDS if mode else 0)
    return True


@cache
def _can_be_set() -> bool:
    return kernels.X86 and choice.available() and threads.has_native_threads()


@cache
def _setter() -> Any:
    from flambeau._runtime import engine

    address = engine.functions((kernels.flush_denormals,))["flush_denormals"]
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(address)
