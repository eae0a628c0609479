"""NumPy or a compiled kernel? One table of the sizes from which the kernel is the faster one.

`FLAMBEAU_ENGINE` decides: `auto` (the table), `numpy` (never a kernel), `llvm` (a kernel wherever
there is one, whatever the size: for tests). `FLAMBEAU_FUSION=0` keeps operators from being joined.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache

NEVER = 1 << 62

LIMITS: dict[str, int] = {
    "sort": 128,
    "scan": 512,
    "gather": 4096,
    "scatter": 1024,
    "random": 512,
    "random_normal": 16,
    "pointwise": 32768,  # one addition or comparison for each element
    "pointwise function": 8192,  # one exponential or logarithm
    "pointwise chain": 2048,  # several NumPy calls
    "reduction": 16384,
    "variance": 1024,
    "softmax": 512,
    "norm": 256,
    "loss": 16384,
    "conv": 131072,
    "depthwise": 512,
    "pool": 8192,
    "pool places": 256,  # the positions of maxima too
    "channel_sums": 8192,
    "recurrent": 4096,
    "optimizer": 8192,
    "optimizer of matrices": 256,
    "gemm": (1 << 18) + 1,  # up to there OpenBLAS multiplies in one thread
    "gemm thin": NEVER,
    "gemm halves": 4096,
    "attention": 65536,
}
"""Kind of work -> elements (or multiply-adds) from which on its kernel is faster than NumPy."""

ENGINES = ("auto", "numpy", "llvm")
ENGINE = os.environ.get("FLAMBEAU_ENGINE", "auto")
FUSION = os.environ.get("FLAMBEAU_FUSION", "1") != "0"

if ENGINE not in ENGINES:
    raise ValueError(f"FLAMBEAU_ENGINE is {ENGINE!r}; it can be {', '.join(ENGINES)}")
if ENGINE != "auto":
    LIMITS = dict.fromkeys(LIMITS, 0 if ENGINE == "llvm" else NEVER)


@cache
def available() -> bool:
    """Whether llvmlite is installed."""
    return importlib.util.find_spec("llvmlite") is not None


def limit(work: str) -> int:
    """The number of elements from which on `compiled` holds."""
    return LIMITS[work] if available() else NEVER


def compiled(work: str, size: int) -> bool:
    """Whether work of this kind and size runs as a compiled kernel."""
    return size >= LIMITS[work] and available()
