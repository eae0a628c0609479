"""What is done to the sums of a product before they are C: factors, a bias, another matrix, the
result's type. Vectors along the columns, with a mask at the edge."""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.products.kernels.gemm import BIAS_OF_COLUMN, BIAS_OF_ROW


@native
def near(place, count, W: static, WHOLE: static):
    """W neighbours in memory, or the first `count` of them and zeros."""
    if WHOLE:
        return load(place, W)
    return load(place, W, lanes(i32, W) < i32(count))


@native
def finish_vector(value, c, count, row, column, bias, other, other_row, alpha, beta, BIAS: static,
                  SCALED: static, OTHER: static, W: static,
                  WHOLE: static):  # fmt: skip
    """c[:W] (c[:count] unless WHOLE) = alpha * value + bias + beta * other, rounded to
    c's type once; `row` and `column` say where c is in the product."""
    T = value.type.element
    result = registers(value.type, 1, value)
    if SCALED:
        result[0] = result[0] * alpha
    if BIAS == BIAS_OF_COLUMN:
        result[0] = result[0] + T(near(bias + column, count, W, WHOLE))
    if BIAS == BIAS_OF_ROW:
        result[0] = result[0] + T(bias[row])
    if OTHER:
        added = near(other + (row * other_row + column), count, W, WHOLE)
        result[0] = result[0] + T(added) * beta
    done = c.type.element(result[0])
    if WHOLE:
        store(c, done)
    else:
        store(c, done, lanes(i32, W) < i32(count))


@native
def finish_tile(sums, sums_row, c, c_row, rows, columns, row, column, bias, other, other_row, alpha,
                beta, BIAS: static, SCALED: static, OTHER: static,
                NR: static, W: static):  # fmt: skip
    """c[i, j] = what becomes of sums[i, j], for i < rows, j < columns <= NR; c and sums point at
    element (row, column) of the product."""
    for i in range(rows):
        line = sums + i * sums_row
        to = c + i * c_row
        for J in unroll(0, NR, W):
            if J + W <= columns:
                finish_vector(load(line + J, W), to + J, W, row + i, column + J, bias, other,
                              other_row, alpha, beta, BIAS, SCALED, OTHER, W,
                              True)  # fmt: skip
            elif J < columns:
                finish_vector(load(line + J, W), to + J, columns - J, row + i, column + J, bias,
                              other, other_row, alpha, beta, BIAS, SCALED, OTHER, W,
                              False)  # fmt: skip
