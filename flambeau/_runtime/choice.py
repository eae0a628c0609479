"""NumPy or a compiled kernel? One table of the sizes from which the kernel is the faster one.

`FLAMBEAU_ENGINE` decides: `auto` (the table), `numpy` (never a kernel), `llvm` (a kernel wherever
there is one, whatever the size: for tests). `FLAMBEAU_FUSION=0` keeps operators from being joined.
What processor kernels are made for is `processor`'s, which is imported here: a wrong FLAMBEAU_CPU
is an error from the start, not at the first kernel. `FLAMBEAU_LIBRARY` names a library of kernels
(`library`), which is all there is without llvmlite: what it lacks, NumPy computes (`guarded`).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from flambeau._runtime import processor  # noqa: F401

NEVER = 1 << 62

LIMITS: dict[str, int] = {
    "sort": 128,
    "scan": 64,
    "gather": 512,
    "gather rows": 1 << 17,  # which NumPy copies as fast, in one thread
    "scatter": 64,
    "bags": 64,  # of rows
    "distances": 256,  # of pairs: differences
    "linalg": 256,  # triangles and eliminations
    "scatter rows": 8192,  # rows that are written, not added up
    "random": 8,
    "random of cuda": 1 << 14,
    "random units": 256,  # of [0, 1), which the generator has at hand
    "random_normal": 16,
    "random slopes": 32,  # integrals of 127 terms
    "random samplers": 16,  # a number takes Python some microseconds
    "pointwise": 32768,  # one addition or comparison for each element
    "pointwise float16": 1024,  # a conversion to or from float16
    "pointwise function": 3072,  # one exponential or logarithm, which NumPy vectorises
    "pointwise element": 768,  # one function that NumPy takes element by element
    "pointwise chain": 2048,  # several NumPy calls
    "pointwise long chain": 64,  # five and more
    "pointwise special": 64,  # a special function, which is many
    "formula": 8192,  # the gradients of one row
    "reduction": 16384,
    "sum": 256,
    "bins": 2048,
    "variance": 64,
    "softmax": 64,
    "norm": 64,
    "loss": 16384,
    "loss function": 512,  # with an exponential and a logarithm
    "conv": 32768,
    "depthwise": 512,
    "pool": 512,
    "pool places": 256,  # the positions of maxima too
    "grid": 64,  # numbers read at any positions
    "resample": 512,
    "channel_sums": 8192,
    "recurrent": 4096,  # without gates
    "recurrent steps": 8,  # steps of a layer without gates
    "recurrent gates": 16,
    "optimizer": 8192,
    "optimizer of matrices": 256,
    "gemm": (1 << 18) + 1,  # up to there OpenBLAS multiplies in one thread
    "gemm thin": 1 << 25,  # times the threads that can help; one of BLAS's is faster than ours
    "gemm few rows": 1 << 20,  # beside a large matrix, which BLAS reads at half the speed
    "gemm halves": 4096,
    "gemv": 200_000,  # OpenBLAS is as fast: see _ops/products/gemv.py
    "attention": 65536,
    "sum of ranks": 1 << 16,  # of a round
    "copy past caches": 1 << 18,  # bytes
}
"""Kind of work -> elements (or multiply-adds) from which on its kernel is faster than NumPy."""

ENGINES = ("auto", "numpy", "llvm")
ENGINE = os.environ.get("FLAMBEAU_ENGINE", "auto")
FUSION = os.environ.get("FLAMBEAU_FUSION", "1") != "0"

if ENGINE not in ENGINES:
    raise ValueError(f"FLAMBEAU_ENGINE is {ENGINE!r}; it can be {', '.join(ENGINES)}")
if ENGINE != "auto":
    LIMITS = dict.fromkeys(LIMITS, 0 if ENGINE == "llvm" else NEVER)

LIBRARY = os.environ.get("FLAMBEAU_LIBRARY", "")
"""The library of kernels to look into first."""
FROM_LIBRARY = bool(LIBRARY) and importlib.util.find_spec("llvmlite") is None
"""Whether there are kernels of the library and no others."""


class KernelMissing(RuntimeError):
    """A kernel that the library has not, where nothing can compile it."""


class Thread(threading.local):
    """Whether NumPy computes everything now, and how many kernels of the library have run."""

    by_numpy = False
    launches = 0


thread = Thread()


class LibraryLimits(dict[str, int]):
    """The table, without a kernel of any kind while NumPy computes what the library lacks."""

    def __getitem__(self, work: str) -> int:
        return NEVER if thread.by_numpy else super().__getitem__(work)


if FROM_LIBRARY:
    LIMITS = LibraryLimits(LIMITS)


class Learning:
    """The thread that looks at a call that is to come into an inline cache, and that NumPy and
    kernels answer alike; 0: none does."""

    thread = 0


def learns() -> bool:
    """Whether this thread looks at such a call: then a kernel computes it whatever its size, since
    a cached launch is the shorter one. Callers ask `Learning.thread` first, which costs nothing."""
    return Learning.thread == threading.get_ident()


@cache
def available() -> bool:
    """Whether there are kernels: llvmlite is installed, or there is a library of them."""
    if importlib.util.find_spec("llvmlite") is not None:
        return True
    if not LIBRARY:
        return False
    from flambeau._runtime import library

    return library.opened() is not None


def limit(work: str) -> int:
    """The number of elements from which on `compiled` holds."""
    return LIMITS[work] if available() else NEVER


def compiled(work: str, size: int) -> bool:
    """Whether work of this kind and size runs as a compiled kernel."""
    return (size >= LIMITS[work] or (Learning.thread != 0 and learns())) and available()


def guarded(body: Callable[..., Any], writes: bool,
            restored: Callable[..., Any] | None = None) -> Callable[..., Any]:  # fmt: skip
    """What computes a row from arrays, which NumPy does where the library lacks a kernel.

    If it `writes` to its arguments, KernelMissing goes on to the caller where kernels have run
    before the missing one: what they did must not be done again. `restored(*args)` makes a function
    that takes back what cannot be done twice.
    """
    if not FROM_LIBRARY:
        return body

    @functools.wraps(body)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = thread.launches
        restore = restored and restored(*args)
        try:
            return body(*args, **kwargs)
        except KernelMissing:
            if thread.by_numpy or (writes and thread.launches != before):
                raise
        if restore:
            restore()
        thread.by_numpy = True
        try:
            return body(*args, **kwargs)
        finally:
            thread.by_numpy = False

    return call


def guard(launcher: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a function that leaves to NumPy what `compiled` leaves to it."""
    return guarded(launcher, writes=True)
