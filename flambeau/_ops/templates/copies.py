"""Copies, conversions and choices of large arrays as compiled loops.

Each function writes to its first argument and says whether it did; where it did not (small arrays,
types without a kernel, memory that overlaps), NumPy has to.
"""

from __future__ import annotations

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
        from flambeau._ops.templates.loop_plans import Fusion

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
    if target.dtype.name not in OF_NUMPY or source.dtype.name not in OF_NUMPY:  # complex, float8
        return False
    if source.dtype.kind == "b":
        source = source.view(BYTE)
    fusion = _fusion("copy", source.dtype, target.dtype)
    return fusion.run((source,), (target,)) is not None


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
