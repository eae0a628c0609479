"""Histograms as TensorBoard stores them: counts between limits, without the empty ends."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto


@functools.cache
def geometric_limits() -> list[float]:
    """The limits "tensorflow": from 1e-12 to 1e20, each a tenth more than the last; both signs."""
    limits = []
    limit = 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    return [-limit for limit in reversed(limits)] + [0.0] + limits


def make_histogram(values: np.ndarray, bins: Any, max_bins: int | None = None) -> HistogramProto:
    """The histogram of some numbers.

    bins: limits, or what `numpy.histogram` takes. max_bins: about how many are kept.

    Raises:
        ValueError: there are no numbers.
    """
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1).astype(np.float64)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = _joined(counts, limits, len(counts) // max_bins)
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = filled[0], filled[-1]
    return HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(),
        sum_squares=values.dot(values), bucket_limit=limits[first : last + 2].tolist(),
        bucket=[0, *counts[first : last + 1].tolist()],
    )  # fmt: skip


def _joined(counts: np.ndarray, limits: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Each `size` bins as one."""
    starts = np.arange(0, len(counts), size)
    return np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])
