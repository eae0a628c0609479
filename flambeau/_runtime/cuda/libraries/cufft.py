"""Fourier transforms through cuFFT: batches of transforms over one to three contiguous dims."""

from __future__ import annotations

import threading
from ctypes import byref, c_int, c_void_p
from functools import cache
from typing import Any

from flambeau._runtime.cuda.libraries.foreign import opened
from flambeau._runtime.cuda.memory import Current

LOCK = threading.Lock()
"""A plan holds its stream."""
RANK = 3
"""Dims that one transform goes over, at most."""
FORWARD, INVERSE = -1, 1
KINDS = {
    ("complex64", "complex64"): (0x29, "C2C"), ("float32", "complex64"): (0x2A, "R2C"),
    ("complex64", "float32"): (0x2C, "C2R"), ("complex128", "complex128"): (0x69, "Z2Z"),
    ("float64", "complex128"): (0x6A, "D2Z"), ("complex128", "float64"): (0x6C, "Z2D"),
}  # fmt: skip
"""Types of input and result -> cuFFT's number, and what its function is called."""
WORDS = {
    1: "CUFFT_INVALID_PLAN", 2: "CUFFT_ALLOC_FAILED", 3: "CUFFT_INVALID_TYPE",
    4: "CUFFT_INVALID_VALUE", 5: "CUFFT_INTERNAL_ERROR", 6: "CUFFT_EXEC_FAILED",
    7: "CUFFT_SETUP_FAILED", 8: "CUFFT_INVALID_SIZE",
}  # fmt: skip
_EXECUTE = (c_int, c_void_p, c_void_p)
SIGNATURES: dict[str, tuple[Any, ...]] = {
    # plan, rank, sizes, layout, step and distance of the input, then of the result, type, batch
    "cufftPlanMany": (c_void_p, c_int, c_void_p, c_void_p, c_int, c_int, c_void_p, c_int, c_int,
                      c_int, c_int),
    "cufftSetStream": (c_int, c_void_p),
    "cufftExecC2C": (*_EXECUTE, c_int), "cufftExecZ2Z": (*_EXECUTE, c_int),
    "cufftExecR2C": _EXECUTE, "cufftExecC2R": _EXECUTE, "cufftExecD2Z": _EXECUTE,
    "cufftExecZ2D": _EXECUTE,
}  # fmt: skip


@cache
def library() -> Any:
    """The library.

    Raises:
        MissingLibrary: it is not installed.
    """
    from flambeau._runtime.cuda.libraries.stand_in.cufft import StandIn

    return opened("cuFFT", StandIn, SIGNATURES, WORDS)


class Transform:
    """`batch` transforms over `sizes`, those of the real side, in row-major memory."""

    def __init__(self, given: str, result: str, sizes: tuple[int, ...], batch: int) -> None:
        number, self.name = KINDS[given, result]
        held = c_int()
        library().call("cufftPlanMany", byref(held), len(sizes), (c_int * len(sizes))(*sizes), None,
                       1, 0, None, 1, 0, number, batch)  # fmt: skip
        self.plan = held.value

    def run(self, given: int, result: int, forward: bool) -> None:
        """From one address to another, which may be the same for complex ones; the input of a
        transform to real numbers is overwritten."""
        foreign = library()
        direction = (FORWARD if forward else INVERSE,) if self.name in ("C2C", "Z2Z") else ()
        with LOCK:
            foreign.call("cufftSetStream", self.plan, Current.stream)
            foreign.call(f"cufftExec{self.name}", self.plan, given, result, *direction)


@cache
def transform(
    device: int, given: str, result: str, sizes: tuple[int, ...], batch: int
) -> Transform:
    """The plan of transforms on a device, which is the current one."""
    return Transform(given, result, sizes, batch)
