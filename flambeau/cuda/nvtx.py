"""`torch.cuda.nvtx`: names for stretches of a program, for NVIDIA's profilers.

They are heard where NVIDIA's tools library is installed. Without a GPU they raise RuntimeError.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from flambeau._core.device import Cuda

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

NOT_INSTALLED = "NVTX functions not installed. Are you sure you have a CUDA build?"
NOT_HEARD = -2
"""What NVIDIA's functions answer when no profiler listens."""


def _library() -> Any:
    if not Cuda.devices():
        raise RuntimeError(NOT_INSTALLED)
    return _found()


@cache
def _found() -> Any:
    try:
        library = ctypes.CDLL("libnvToolsExt.so.1")
    except OSError:
        return None
    for name in ("nvtxRangePushA", "nvtxMarkA", "nvtxRangeStartA"):
        getattr(library, name).argtypes = (ctypes.c_char_p,)
    library.nvtxRangeStartA.restype = ctypes.c_uint64
    library.nvtxRangeEnd.argtypes = (ctypes.c_uint64,)
    return library


def range_push(msg: str) -> int:
    """Begin a stretch inside the one that is open; its depth."""
    return int(_library().nvtxRangePushA(msg.encode())) if _library() else NOT_HEARD


def range_pop() -> int:
    """End the innermost stretch; its depth."""
    return int(_library().nvtxRangePop()) if _library() else NOT_HEARD


def range_start(msg: str) -> int:
    """Begin a stretch that may overlap others; its number."""
    return int(_library().nvtxRangeStartA(msg.encode())) if _library() else 0


def range_end(range_id: int) -> None:
    """End the stretch of a number."""
    if _library():
        _library().nvtxRangeEnd(range_id)


def mark(msg: str) -> None:
    """A moment."""
    if _library():
        _library().nvtxMarkA(msg.encode())


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """`with torch.cuda.nvtx.range("name"):`; the other arguments are put into the text."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
