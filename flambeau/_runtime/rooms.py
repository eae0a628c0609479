"""The key under which every thread keeps the memory of kernels that is too large for its stack.

`flambeau._compiler.rooms` says what it is for.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

from flambeau._compiler.rooms import KEY
from flambeau._compiler.types import Scalar, i32, i64

KINDS = {"linux": i32, "darwin": i64}
"""The type of pthread's keys."""


def kind() -> Scalar | None:
    """The type of the key, or None where threads keep nothing."""
    return KINDS.get(sys.platform) if _library() is not None else None


@cache
def symbols() -> dict[str, int]:
    """What machine code may name besides the functions of the process, and where it lies."""
    found = kind()
    if found is None:
        return {}
    library = _library()
    key = (ctypes.c_int64 if found is i64 else ctypes.c_int32)()
    free = ctypes.cast(library.free, ctypes.c_void_p)
    failed = library.pthread_key_create(ctypes.byref(key), free)
    if failed:
        raise OSError(failed, "no key for the memory that kernels need in each thread")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(key))  # threads end after this module is gone
    return {KEY: ctypes.addressof(key)}


@cache
def _library() -> Any:
    try:
        library = ctypes.CDLL(None)
    except (TypeError, OSError):  # Windows
        return None
    return library if hasattr(library, "pthread_getspecific") else None
