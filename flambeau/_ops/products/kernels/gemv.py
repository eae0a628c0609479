"""A matrix times a vector: memory is what it costs, so each element is read once, in order."""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native

CHAINS = 2
"""Vectors of sums for each row."""
GROUPS = 2
"""So many groups of rows ahead memory is asked for: what one group reads, the next ones will."""
FAR = 1 << 17
"""Bytes that may lie between; in longer rows, memory is asked for AHEAD bytes before its use."""
AHEAD = 1024


@native
def rows_together(matrix, x, out, depth, row, ROWS: static, W: static):
    """out[i] = sum over k of matrix[i, k] * x[k] for ROWS rows: several streams from memory at once
    are faster than one. A row's sum is the same with any others."""
    T = x.type.element
    STEP = CHAINS * W
    whole = depth // STEP * STEP
    sums = registers(vector(T, W), ROWS * CHAINS)
    ahead = GROUPS * ROWS * row
    if ahead * T.size > FAR:
        ahead = i64(AHEAD // T.size)
    for k in range(0, whole, STEP):
        for c in unroll(CHAINS):
            factor = load(x + (k + c * W), W)
            for r in unroll(ROWS):
                place = matrix + (r * row + k + c * W)
                sums[r * CHAINS + c] = fma(load(place, W), factor, sums[r * CHAINS + c])
        for r in unroll(ROWS):
            for LINE in unroll(0, STEP * T.size, 64):
                prefetch(matrix + (r * row + k + ahead + LINE // T.size), 0, 3)
    for r in unroll(ROWS):
        total = reduce_add(sums[r * CHAINS] + sums[r * CHAINS + 1])
        for k in range(whole, depth):
            total = fma(matrix[r * row + k], x[k], total)
        out[r] = total


@native(apart=True)
def rows_with_vector(matrix: pointer(T), x: pointer(T), out: pointer(T), rows: i64, depth: i64,
                     row: i64, task: i64, tasks: i64, T: static, W: static,
                     ROWS: static):  # fmt: skip
    """out[i] = sum over k of matrix[i, k] * x[k], for rows whose elements follow each other."""
    last = rows * (task + 1) // tasks
    i = rows * task // tasks
    while i + ROWS <= last:
        rows_together(matrix + i * row, x, out + i, depth, row, ROWS, W)
        i += ROWS
    while i < last:
        rows_together(matrix + i * row, x, out + i, depth, row, 1, W)
        i += 1


@native(apart=True)
def columns_with_vector(matrix: pointer(T), x: pointer(T), out: pointer(T), columns: i64,
                        depth: i64, row: i64, task: i64, tasks: i64, T: static,
                        W: static):  # fmt: skip
    """out[j] = sum over k of matrix[k, j] * x[k], for rows whose elements follow each other."""
    blocks = (columns + 8 * W - 1) // (8 * W)
    for block in range(blocks * task // tasks, blocks * (task + 1) // tasks):
        first = block * 8 * W
        if first + 8 * W <= columns:
            sums = registers(vector(T, W), 8, T(0))
            for k in range(depth):
                line = matrix + (k * row + first)
                for u in unroll(8):
                    sums[u] = fma(load(line + u * W, W), splat(x[k], W), sums[u])
            for u in unroll(8):
                store(out + (first + u * W), sums[u])
        else:
            for j in range(first, columns):
                total = T(0)
                for k in range(depth):
                    total = fma(matrix[k * row + j], x[k], total)
                out[j] = total
