"""A matrix times a vector: memory is what it costs, so each element is read once, in order."""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native


@native(apart=True)
def rows_with_vector(matrix: pointer(T), x: pointer(T), out: pointer(T), rows: i64, depth: i64,
                     row: i64, task: i64, tasks: i64, T: static, W: static):  # fmt: skip
    """out[i] = sum over k of matrix[i, k] * x[k], for rows whose elements follow each other."""
    whole = depth // (4 * W) * (4 * W)
    for i in range(rows * task // tasks, rows * (task + 1) // tasks):
        line = matrix + i * row
        sums = registers(vector(T, W), 4, T(0))
        for k in range(0, whole, 4 * W):
            for u in unroll(4):
                sums[u] = fma(load(line + (k + u * W), W), load(x + (k + u * W), W), sums[u])
        total = reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]))
        for k in range(whole, depth):
            total = fma(line[k], x[k], total)
        out[i] = total


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
