"""Sums, means and maxima of bags of rows: compiled kernels, or NumPy.

Arrays: weight [V, D]; the positions of rows, [K], of which each bag has a run; `starts` [B], where
the bags begin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flambeau._ops.launching.modules import launcher
from flambeau._ops.launching.precision import narrow, widen
from flambeau._runtime import choice


class Bags(NamedTuple):
    """What `reduce` finds."""

    values: np.ndarray
    """[B, D]."""
    bags: np.ndarray
    """[K]: the bag of each position."""
    sizes: np.ndarray
    """[B]: how many rows count in each bag."""
    positions: np.ndarray
    """[B, D]: the row of each maximum."""


def reduce(weight: np.ndarray, indices: np.ndarray, starts: np.ndarray, mode: str,
           samples: np.ndarray | None, padding: int) -> Bags:  # fmt: skip
    """The "sum", "mean" or "max" of each bag, but for rows at `padding`; the rows of a sum are
    multiplied by `samples` [K]."""
    size = indices.size * weight.shape[1] if starts.size else 0
    if size and choice.compiled("bags", size) and not (starts[1:] < starts[:-1]).any():
        kernels = launcher("indexing.bag_launch")
        return Bags(*kernels.reduce(weight, indices, starts, mode, samples, padding))
    return by_numpy(weight, indices, starts, mode, samples, padding)


def by_numpy(weight: np.ndarray, indices: np.ndarray, starts: np.ndarray, mode: str,
             samples: np.ndarray | None, padding: int) -> Bags:  # fmt: skip
    """The same without a kernel."""
    bags = np.searchsorted(starts, np.arange(indices.size), side="right") - 1
    bags = bags.astype(indices.dtype)
    kept = np.ones(indices.shape, bool) if padding < 0 else indices != padding
    count = len(starts)
    sizes = np.bincount(bags[kept], minlength=count).astype(indices.dtype)
    rows = widen(weight)[indices]
    if samples is not None:
        rows = rows * widen(samples)[:, None]
    positions = np.zeros((count, weight.shape[1]), indices.dtype)
    if mode == "max":
        result = _maxima(rows[kept], bags[kept], indices[kept], positions)
    else:
        result = sum_rows(rows[kept], bags[kept], count, mean=mode == "mean")
    return Bags(narrow(result, weight.dtype), bags, sizes, positions)


def sum_rows(rows: np.ndarray, indices: np.ndarray, count: int, mean: bool = False) -> np.ndarray:
    """[count, D]: at each index the sum (or mean) of its rows, in order of appearance."""
    result = np.zeros((count, rows.shape[1]), rows.dtype)
    if not indices.size:
        return result
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sums = np.add.reduceat(rows[order], starts, axis=0)
    if mean:
        sums /= np.diff(np.r_[starts, len(ordered)])[:, None]
    result[ordered[starts]] = sums
    return result


def _maxima(rows: np.ndarray, bags: np.ndarray, indices: np.ndarray,
            positions: np.ndarray) -> np.ndarray:  # fmt: skip
    """The first greatest value of each column of each bag; empty bags give 0."""
    result = np.zeros(positions.shape, rows.dtype)
    for bag in np.unique(bags):
        members = np.flatnonzero(bags == bag)
        best = rows[members].argmax(0)
        result[bag] = rows[members].max(0)
        positions[bag] = indices[members][best]
    return result
