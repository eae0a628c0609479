"""The tile of vectors: each unit of the left panel is spread over a vector and meets NV vectors of
the right one. Sums stay in registers while k runs. Which instruction adds them up is DOT."""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native

STEPS = 4
"""Units in a row that are written out: a loop of one spends a sixth of its instructions on
itself (benchmarks/RESULTS.md, "Products")."""


@native
def vector_tile(a, a_row, a_chunk, b, units, rows, sums, sums_row, add, to, to_row, ahead, tiles,
                DOT: static, SHIFT: static, MR: static, NV: static, W: static,
                CHUNK: static):  # fmt: skip
    """to[i, j] = (sums[i, j] if `add` else 0) + dots of row i and column j, for i < MR, j < NV * W.

    Unit u of row i lies at a + (u // CHUNK) * a_chunk + i * a_row + u % CHUNK, unit u of column j
    at b + u * NV * W + j. SHIFT is a group of what was added to left numbers to make them unsigned:
    what that adds to the sums is taken off again (0: nothing was).
    """
    T = to.type.element
    NR = NV * W
    total = registers(vector(T, W), MR * NV)
    extra = registers(vector(T, W), NV)
    right = registers(vector(b.type.element, W), NV)
    if add:
        for i in unroll(MR):
            for v in unroll(NV):
                total[i * NV + v] = load(sums + (i * sums_row + v * W), W)
    for _ in range(units // CHUNK):
        for _ in range(CHUNK // STEPS):
            for u in unroll(STEPS):
                for v in unroll(NV):
                    right[v] = load(b + (u * NR + v * W), W)
                    if SHIFT:
                        extra[v] = DOT(extra[v], splat(i32(SHIFT), W), right[v], W)
                for i in unroll(MR):
                    left = splat(a[i * a_row + u], W)
                    for v in unroll(NV):
                        total[i * NV + v] = DOT(total[i * NV + v], left, right[v], W)
            a = a + STEPS
            b = b + STEPS * NR
        a = a + (a_chunk - CHUNK)
    for _ in range(units % CHUNK):
        for v in unroll(NV):
            right[v] = load(b + v * W, W)
            if SHIFT:
                extra[v] = DOT(extra[v], splat(i32(SHIFT), W), right[v], W)
        for i in unroll(MR):
            left = splat(a[i * a_row], W)
            for v in unroll(NV):
                total[i * NV + v] = DOT(total[i * NV + v], left, right[v], W)
        a = a + 1
        b = b + NR
    for i in unroll(MR):
        for v in unroll(NV):
            if SHIFT:
                total[i * NV + v] = total[i * NV + v] - extra[v]
            store(to + (i * to_row + v * W), total[i * NV + v])
