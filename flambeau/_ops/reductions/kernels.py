"""Kernels of counts."""

from __future__ import annotations

from flambeau._compiler.language import i64, pointer, select, smaller, static
from flambeau._compiler.native import native


@native
def even_places(values: pointer(T), edges: pointer(T), out: pointer(i64), n: i64, step: i64,
                bins: i64, task: i64, tasks: i64, T: static):  # fmt: skip
    """The bin of each of n values, `step` apart, between evenly spaced edges: a guess, corrected by
    the edges beside; -1 outside and for nan. The last bin holds its upper edge."""
    first = edges[0]
    end = edges[bins]
    scale = T(bins) / (end - first)
    last = bins - 1
    for i in range(n * task // tasks, n * (task + 1) // tasks):
        value = values[i * step]
        place = i64(-1)
        if (value >= first) & (value <= end):
            guess = (value - first) * scale
            inside = select(guess > 0, guess, T(0))
            place = smaller(i64(select(inside < T(last), inside, T(last))), last)
            place = select(value < edges[place], place - 1, place)
            place = select(value >= edges[place + 1], place + 1, place)
            place = smaller(place, last)
        out[i] = place
