"""Scatter and gather between values and the flat positions of spatial planes.

Pools hand out int64 indices into the flattened spatial dims of each image and channel. Those of
windows that hold no element may lie behind the plane, where nothing is written, and 0 is read.
"""

from __future__ import annotations

from math import prod

import numpy as np

from flambeau._ops.launching.precision import Array, widen
from flambeau._ops.launching.windows import Ints
from flambeau._runtime.cpu import quietly

# benchmarks/pool_kernels.py: planes are filled in blocks that stay in the cache.
BLOCK_ELEMENTS = 1 << 16


def _flat_positions(indices: Array, rank: int, plane: int) -> Array:
    """Positions in all planes put one behind the other."""
    count = prod(indices.shape[: indices.ndim - rank])
    flat = indices.reshape(count, prod(indices.shape[indices.ndim - rank :]))
    return (flat + np.arange(count)[:, None] * plane).reshape(-1)


@quietly
def scatter_planes(values: Array, indices: Array, spatial: Ints, unique: bool = False) -> Array:
    """Add values `(..., *output)` into zero planes `(..., *spatial)` at their flat indices.

    With `unique` no position occurs twice and a plain write does; otherwise sums are taken in
    float64 and rounded once.
    """
    rank, plane = len(spatial), prod(spatial)
    lead = values.shape[: values.ndim - rank]
    count = prod(lead)
    total = np.zeros((count, plane), values.dtype)
    if values.size == 0:
        return total.reshape(*lead, *spatial)
    rows, places = values.reshape(count, -1), indices.reshape(count, -1)
    if places.max() >= plane:
        inside = places < plane
        rows, places = np.where(inside, rows, 0), np.where(inside, places, 0)
        unique = False
    step = max(1, BLOCK_ELEMENTS // max(1, plane))
    for start in range(0, count, step):
        part = total[start : start + step]
        flat = (places[start : start + step] + np.arange(len(part))[:, None] * plane).reshape(-1)
        source = rows[start : start + step].reshape(-1)
        if unique:
            part.reshape(-1)[flat] = source
        else:
            part[...] = np.bincount(flat, widen(source), part.size).reshape(part.shape)
    return total.reshape(*lead, *spatial)


def gather_planes(values: Array, indices: Array, rank: int) -> Array:
    """The values of planes `(..., *spatial)` at flat indices `(..., *output)`.

    The backward of `max_unpool`, and of the backward of every max pool.
    """
    plane = prod(values.shape[values.ndim - rank :])
    outside = indices >= plane
    if outside.any():
        found = gather_planes(values, np.where(outside, 0, indices), rank)
        found[outside] = 0
        return found
    return values.reshape(-1)[_flat_positions(indices, rank, plane)].reshape(indices.shape)


def max_unpool(values: Array, indices: Array, spatial: Ints) -> Array:
    """Write values into zero planes `(..., *spatial)`; of repeated indices the last one stays.

    Raises RuntimeError in torch's words for an index outside of the plane.
    """
    outside = (indices < 0) | (indices >= prod(spatial))
    if outside.any():
        sizes = "x".join(map(str, spatial))
        raise RuntimeError(
            f"Found an invalid max index: {indices[outside][0]} "
            f"(output volumes are of size {sizes})"
        )
    return scatter_planes(values, indices, spatial, unique=True)
