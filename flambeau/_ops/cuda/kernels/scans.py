"""Running sums and products along rows."""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native


@native
def joined(a, b, PRODUCT: static):
    """A sum or a product."""
    return a * b if PRODUCT else a + b


@native
def over_warp(value, lane: i64, PRODUCT: static):
    """What the lanes up to one's own have."""
    found = registers(value.type, 1)
    found[0] = value
    for STEP in unroll((1, 2, 4, 8, 16)):
        left = lane_below(found[0], STEP)
        found[0] = select(lane >= STEP, joined(left, found[0], PRODUCT), found[0])
    return found[0]


@native
def scan_along(x: pointer(T), out: pointer(OUT), before: pointer(A), n: i64, parts: i64, share: i64,
               T: static, OUT: static, A: static, U: static, PARTS: static, PRODUCT: static,
               THREADS: static):  # fmt: skip
    """A block scans a row of n elements, or a part of one, which begins with what is `before` it;
    U elements a thread at a time, which follow each other."""
    row = block() // parts if PARTS else block()
    start = block() % parts * share if PARTS else i64(0)
    stop = smaller(start + share, n) if PARTS else n
    lane = thread() % WARP
    warp = thread() // WARP
    source = x + row * n
    target = out + row * n
    carry = registers(A, 1, 1 if PRODUCT else 0)
    if PARTS:
        carry[0] = before[block()]
    cells = shared(A, 32)
    for tile in range(start, stop, THREADS * U):
        place = tile + thread() * U
        mine = registers(A, U, 1 if PRODUCT else 0)
        for u in unroll(U):
            if place + u < stop:
                mine[u] = A(source[place + u])
        for u in unroll(1, U):
            mine[u] = joined(mine[u - 1], mine[u], PRODUCT)
        whole = over_warp(mine[U - 1], lane, PRODUCT)
        if lane == WARP - 1:
            cells[warp] = whole
        barrier()
        sums = over_warp(cells[lane % (THREADS // WARP)], lane, PRODUCT)
        total = lane_at(sums, THREADS // WARP - 1)
        earlier = lane_at(sums, larger(warp - 1, i64(0)))
        left = lane_below(whole, 1)
        base = registers(A, 1)
        base[0] = carry[0]
        if warp > 0:
            base[0] = joined(base[0], earlier, PRODUCT)
        if lane > 0:
            base[0] = joined(base[0], left, PRODUCT)
        for u in unroll(U):
            if place + u < stop:
                target[place + u] = OUT(joined(base[0], mine[u], PRODUCT))
        carry[0] = joined(carry[0], total, PRODUCT)
        barrier()


@native
def scan_across(x: pointer(T), out: pointer(OUT), rows: i64, n: i64, inner: i64, T: static,
                OUT: static, A: static, PRODUCT: static, THREADS: static):  # fmt: skip
    """A thread scans a row whose elements are `inner` apart."""
    row = block() * THREADS + thread()
    if row < rows:
        at = row // inner * (n * inner) + row % inner
        carry = registers(A, 1, 1 if PRODUCT else 0)
        for i in range(n):
            carry[0] = joined(carry[0], A(x[at + i * inner]), PRODUCT)
            out[at + i * inner] = OUT(carry[0])
