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
    "pointwise": 32768,
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


def compiled(work: str, size: int) -> bool:
    """Whether work of this kind and size runs as a compiled kernel."""
    return size >= LIMITS[work] and available()
