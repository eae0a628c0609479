"""Linear maps along one dim as tables: which elements each new one is made of, and their weights.

Resizing, adaptive means and pads by copied elements are such maps, one for each dim; the gradient
is the transposed table. `resample` applies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flambeau._ops.launching.precision import Array

PLAIN, TIMES, OVER, MEAN, BYTES, COPIES = range(6)
"""What a sum is of: numbers, their products with weights, their quotients by weights; numbers, and
it is divided by the first one's weight; products of bytes with integers, rounded to bytes; or it is
no sum, but the one element as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """New element `o` is made of `places[starts[o]:starts[o + 1]]` of `size` old ones.

    `weights` has one number for each of the places; `shift` says how many of the bits of integer
    weights are a fraction.
    """

    size: int
    starts: Array
    places: Array
    weights: Array
    shift: int = 0

    @property
    def count(self) -> int:
        """How many new elements there are."""
        return len(self.starts) - 1

    @property
    def is_copy(self) -> bool:
        """Whether each new element is made of one."""
        return len(self.places) == self.count and bool((np.diff(self.starts) == 1).all())


def of_places(places: Array, size: int) -> Table:
    """Each new element copies the old one at its place."""
    starts = np.arange(len(places) + 1, dtype=np.int64)
    return Table(size, starts, places.astype(np.int64), np.ones(len(places)))


def of_taps(positions: Array, weights: Array, size: int, kept: Array | None = None,
            shift: int = 0) -> Table:  # fmt: skip
    """`new[o] = sum over t of old[positions[t, o]] * weights[t, o]`: of those with `kept[t, o]`, if
    it is told."""
    kept = np.ones(weights.T.shape, bool) if kept is None else kept.T
    starts = np.concatenate([[0], kept.sum(1).cumsum()]).astype(np.int64)
    return Table(size, starts, positions.T[kept].astype(np.int64), weights.T[kept], shift)


def of_segments(segments: Sequence[tuple[int, int]], size: int) -> Table:
    """Each new element is made of the old ones from a start to an end; weights are their number."""
    lengths = np.array([end - start for start, end in segments], np.int64)
    starts = np.concatenate([[0], lengths.cumsum()]).astype(np.int64)
    places = np.concatenate([np.arange(start, end) for start, end in segments]).astype(np.int64)
    return Table(size, starts, places, np.repeat(lengths, lengths).astype(np.float64))


def transposed(table: Table) -> Table:
    """The map of the gradients: each old element is made of the new ones that it is part of."""
    order = np.argsort(table.places, kind="stable")
    counts = np.bincount(table.places, minlength=table.size)
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int64)
    news = np.repeat(np.arange(table.count), np.diff(table.starts))
    return Table(table.count, starts, news[order], table.weights[order], table.shift)
