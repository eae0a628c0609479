"""Copies, conversions and choices of large arrays as compiled loops.

Each function writes to its first argument and says whether it did; where it did not (small arrays,
types without a kernel, memory that overlaps), NumPy has to.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.types import OF_NUMPY
from flambeau._runtime import choice

RAW = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
"""Types that elements are moved in where they stay as they are."""
BYTE = np.dtype(np.uint8)
FUSIONS: dict[Any, Any] = {}


def _fusion(title: str, compute: np.dtype[Any], result: np.dtype[Any]) -> Any:
    """The loop of a copy or of a choice, computed in a type."""
    key = (title, compute, result)
    found = FUSIONS.get(key)
    if found is None:
        from flambeau._ops.launching.loop_plans import Fusion

        x, y, c = (E.parameter(name) for name in ("x", "y", "condition"))
        expression = x if title == "copy" else E.where(c, x, y)
        names = ["x"] if title == "copy" else ["condition", "x", "y"]
        found = FUSIONS[key] = Fusion(title, [expression], names, compute, [result])
    return found


def convert(target: np.ndarray, source: np.ndarray) -> bool:
    """Write `source`, broadcast and converted, to `target`."""
    if not choice.compiled("pointwise", target.size):
        return False
    if target.dtype == source.dtype:
        return _move(target, source)
    loop = _conversion(source.dtype, target.dtype)
    if loop is None:
        return False
    if source.dtype.kind == "b":
        source = source.view(BYTE)
    return loop.run((source,), (target,)) is not None


def converted(source: np.ndarray, numpy_dtype: np.dtype[Any]) -> np.ndarray | None:
    """The values of an array in another type, in new row-major memory; None where NumPy has to."""
    if source.dtype == numpy_dtype:
        result = np.empty(source.shape, numpy_dtype)
        return result if _move(result, source) else None
    loop = _conversion(source.dtype, numpy_dtype)
    if loop is None:
        return None
    results = loop.run((source.view(BYTE) if source.dtype.kind == "b" else source,))
    return None if results is None else results[0]  # type: ignore[no-any-return]


@cache
def _conversion(have: np.dtype[Any], want: np.dtype[Any]) -> Any:
    """The loop that converts; None for complex numbers and float8."""
    if want.name not in OF_NUMPY or have.name not in OF_NUMPY:
        return None
    return _fusion("copy", BYTE if have.kind == "b" else have, want)


def _move(target: np.ndarray, source: np.ndarray) -> bool:
    raw = RAW.get(target.itemsize)
    if raw is None:
        return False
    fusion = _fusion("copy", raw, raw)
    return fusion.run((source.view(raw),), (target.view(raw),)) is not None


def choose(target: np.ndarray, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> bool:
    """Write elements of `x` where a condition holds, else of `y`; all of the target's type."""
    if not choice.compiled("pointwise", target.size) or target.itemsize not in RAW:
        return False
    if not target.dtype == x.dtype == y.dtype or condition.dtype.kind != "b":
        return False
    raw = RAW[target.itemsize]
    fusion = _fusion("choose", raw, raw)
    arrays = (condition, x.view(raw), y.view(raw))
    return fusion.run(arrays, (target.view(raw),)) is not None
