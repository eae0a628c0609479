"""Sorting by a bitonic network (K. Batcher, Sorting networks and their applications, 1968).

An element is a word of 64 bits: its order as a whole number, then its place, so that equal elements
stay in order. Rows are filled up to N words, a power of two, by what is greater than all.
"""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native

NOTHING = (1 << 64) - 1
GREATEST = (1 << 32) - 1


@native
def order_of(x):
    """A u32 that is ordered as x is; nan is the greatest, 0.0 and -0.0 are equal."""
    if x.type.is_float:
        number = f32(x)
        bits = cast(u32, number + 0.0)
        negative = bits >> 31 != 0
        ordered = select(negative, ~bits, bits | 1 << 31)
        return select(number != number, u32(GREATEST), ordered)
    return u32(i64(x) + (1 << 31))


@native
def words(x: pointer(T), keys: pointer(u64), units: i64, n: i64, inner: i64, T: static, N: static,
          DOWN: static, THREADS: static):  # fmt: skip
    """The words of all rows. A row's places are `inner` elements apart."""
    unit = block() * THREADS + thread()
    if unit < units:
        row = unit // N
        place = unit % N
        word = u64(NOTHING)
        if place < n:
            order = order_of(x[(row // inner * n + place) * inner + row % inner])
            if DOWN:
                order = ~order
            word = u64(order) << 32 | u64(place)
        keys[unit] = word


@native
def exchange(keys, low: i64, high: i64, up):
    """Two words in order, or in the opposite one."""
    a = keys[low]
    b = keys[high]
    if (a > b) == up:
        keys[low] = b
        keys[high] = a


@native
def steps_of(cells, begin: i64, size: i64, first: i64, B: static, THREADS: static):
    """The steps of one stage from a distance on, among the B words of a block, which is at `begin`
    in its row."""
    apart = first
    while apart > 0:
        barrier()
        for k in range(thread(), B // 2, THREADS):
            low = k // apart * (2 * apart) + k % apart
            exchange(cells, low, low + apart, (begin + low) & size == 0)
        apart = apart // 2


@native
def within_blocks(keys: pointer(u64), first: i64, last: i64, B: static, N: static,
                  THREADS: static):  # fmt: skip
    """The stages of sizes from `first` to `last`, as far as they keep to blocks of B words."""
    cells = shared(u64, B)
    start = block() * B
    for k in range(thread(), B, THREADS):
        cells[k] = keys[start + k]
    size = first
    while size <= last:
        steps_of(cells, start % N, size, smaller(size // 2, i64(B // 2)), B, THREADS)
        size = size * 2
    barrier()
    for k in range(thread(), B, THREADS):
        keys[start + k] = cells[k]


@native
def step(keys: pointer(u64), pairs: i64, size: i64, apart: i64, N: static, THREADS: static):
    """One step at a distance that is too far for a block."""
    pair = block() * THREADS + thread()
    if pair < pairs:
        low = pair // apart * (2 * apart) + pair % apart
        exchange(keys, low, low + apart, (low % N) & size == 0)


@native
def elements(x: pointer(T), keys: pointer(u64), values: pointer(T), places: pointer(i64),
             units: i64, n: i64, count: i64, inner: i64, T: static, N: static,
             THREADS: static):  # fmt: skip
    """The first `count` elements of each row, and their places."""
    unit = block() * THREADS + thread()
    if unit < units:
        row = unit // count
        found = unit % count
        place = i64(keys[row * N + found] & GREATEST)
        outer = row // inner
        column = row % inner
        target = (outer * count + found) * inner + column
        values[target] = x[(outer * n + place) * inner + column]
        places[target] = place
