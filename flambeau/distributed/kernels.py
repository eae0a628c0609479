"""Kernels of collectives: sums of what several processes have, and copies past the caches."""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native


@native
def total_at(sources: pointer(i64), count: i64, at: i64, divisor: i64, T: static, A: static,
             MEAN: static, W: static):  # fmt: skip
    """W sums (or means) over the sources, first to last, computed in the type A."""
    total = A(load(cast(pointer(T), sources[0]) + at, W))
    for r in range(1, count):
        total += A(load(cast(pointer(T), sources[r]) + at, W))
    if MEAN:
        return T(total / A(divisor))
    return T(total)


@native
def sum_sources(sources: pointer(i64), out: pointer(T), also: pointer(T), count: i64, skip: i64,
                n: i64, divisor: i64, T: static, A: static, MEAN: static, TWICE: static,
                STREAM: static, W: static):  # fmt: skip
    """`out`, and `also` with TWICE: n sums over the sources, whose addresses are given.

    From `skip` on, every vector of `out` lies on a border of its own size, as STREAM needs.
    """
    last = skip + (n - skip) // W * W
    for i in range(skip, last, W):
        values = total_at(sources, count, i, divisor, T, A, MEAN, W)
        store(out + i, values, stream=STREAM)
        if TWICE:
            store(also + i, values)
    for k in range(n - last + skip):
        i = k if k < skip else last + k - skip
        value = total_at(sources, count, i, divisor, T, A, MEAN, 1)
        out[i] = value
        if TWICE:
            also[i] = value


@native
def copy_past_caches(source: pointer(u8), out: pointer(u8), skip: i64, n: i64, W: static):
    """`out`: n bytes of `source`; from `skip` on, its vectors lie on borders of their own size."""
    last = skip + (n - skip) // W * W
    for i in range(skip, last, W):
        store(out + i, load(source + i, W), stream=True)
    for k in range(n - last + skip):
        i = k if k < skip else last + k - skip
        out[i] = source[i]
