"""Kernels of the negative log-likelihood of small batches, and of distances of pairs of rows."""

from __future__ import annotations

from flambeau._compiler.language import (
    absolute,
    f64,
    i64,
    lanes,
    load,
    maximum,
    pointer,
    registers,
    select,
    smaller,
    splat,
    sqrt,
    static,
    store,
    unroll,
    vector,
)
from flambeau._compiler.native import native
from flambeau._ops.conv.kernels.depthwise import load_some, store_some

RUN = 128
"""So many numbers are added to a sum of their own: errors stay small."""


@native
def likelihood(scores: pointer(T), target: pointer(I), out: pointer(T), bad: pointer(i64), n: i64,
               classes: i64, ignored: i64, mean: i64, T: static, I: static):  # fmt: skip
    """out: minus the sum of the scores [n, classes] at the targets [n] that are not ignored, or
    their mean, summed in float64. bad: 1 where a target is no class."""
    wrong = i64(0)
    total = f64(0)
    count = i64(0)
    for k in range(n):
        place = i64(target[k])
        if place != ignored:
            if (place < 0) | (place >= classes):
                wrong = i64(1)
            else:
                total -= f64(scores[k * classes + place])
                count += 1
    if mean != 0:
        total = total / f64(count)
    out[0] = T(total)
    bad[0] = wrong


# ---- distances


@native
def met(total, gap, T: static, W: static, KIND: static):
    """What a norm has found so far, with one more difference."""
    if KIND == "count":
        one = select(gap != 0, splat(T(1), W), splat(T(0), W))
        return total + select(gap != gap, gap, one)
    if KIND == "sum":
        return total + absolute(gap)
    if KIND == "largest":
        return maximum(total, absolute(gap))
    return total + gap * gap


@native
def joined(a, b, KIND: static):
    """What a norm has found in two runs of differences."""
    if KIND == "largest":
        return maximum(a, b)
    return a + b


@native
def distances_from(first, second, out, row, column, width, count, pitch, pairs,
                   T: static, W: static, R: static, KIND: static):  # fmt: skip
    """Distances of R rows of `first` from the rows of which `second` [width, pitch] has columns, W
    of them from `column` on. `pairs` 1: only those with a higher number than the row's own."""
    totals = registers(vector(T, W), R)
    for begin in range(0, width, RUN):
        found = registers(vector(T, W), R)
        for m in range(begin, smaller(begin + RUN, width)):
            other = load(second + m * pitch + column, W)
            for r in unroll(R):
                gap = splat(first[(row + r) * width + m], W) - other
                found[r] = met(found[r], gap, T, W, KIND)
        for r in unroll(R):
            totals[r] = joined(totals[r], found[r], KIND)
    for r in unroll(R):
        size = totals[r]
        if KIND == "squares":
            size = sqrt(size)
        i = row + r
        if pairs != 0:
            j = lanes(i64, W) + column
            behind = out + (i * (2 * count - i - 1) // 2 + column - i - 1)
            store(behind, size, mask=(j > i) & (j < count))
        else:
            store_some(out + i * count + column, size, count - column, T, W)


@native(apart=True)
def distances(first: pointer(T), second: pointer(T), out: pointer(T), batch: i64, rows: i64,
              count: i64, width: i64, pitch: i64, pairs: i64, task: i64, tasks: i64,
              T: static, W: static, R: static, KIND: static):  # fmt: skip
    """Norms of the differences of rows: first [batch, rows, width], second [batch, width, pitch]
    whose first `count` columns are rows too, out [batch, rows, count]; or out has the `pairs` of
    one matrix's rows, each once."""
    bands = (rows + R - 1) // R
    for unit in range(batch * bands * task // tasks, batch * bands * (task + 1) // tasks):
        b, row = unit // bands, unit % bands * R
        left, right = first + b * rows * width, second + b * width * pitch
        target = out + b * rows * count
        for column in range((row + 1) // W * W * pairs, count, W):
            if row + R <= rows:
                distances_from(left, right, target, row, column, width, count, pitch, pairs,
                               T, W, R, KIND)  # fmt: skip
            else:
                for i in range(row, rows):
                    distances_from(left, right, target, i, column, width, count, pitch, pairs,
                                   T, W, 1, KIND)  # fmt: skip


@native
def slope_of(gap, size, weight, T: static, W: static, KIND: static):
    """The gradient of one difference: `weight` times the slope of the norm, which is `size`."""
    if KIND == "squares":
        return gap * weight
    zero = splat(T(0), W)
    sign = select(gap > 0, splat(weight, W), select(gap < 0, splat(-weight, W), zero))
    if KIND == "largest":
        return select(absolute(gap) == splat(size, W), sign, zero)
    return select(gap != gap, gap, sign)


@native
def slopes_from(weights, sizes, first, others, out, count, width, column,
                T: static, W: static, R: static, KIND: static):  # fmt: skip
    """W columns from `column` on of R rows of `distance_slopes`."""
    left = width - column
    here = registers(vector(T, W), R)
    totals = registers(vector(T, W), R)
    for r in unroll(R):
        here[r] = load_some(first + r * width + column, left, T, T, W)
    for begin in range(0, count, RUN):
        parts = registers(vector(T, W), R)
        for j in range(begin, smaller(begin + RUN, count)):
            other = load_some(others + j * width + column, left, T, T, W)
            for r in unroll(R):
                weight, size = weights[r * count + j], sizes[r * count + j]
                parts[r] = parts[r] + slope_of(here[r] - other, size, weight, T, W, KIND)
        for r in unroll(R):
            totals[r] = totals[r] + parts[r]
    for r in unroll(R):
        store_some(out + r * width + column, totals[r], left, T, W)


@native(apart=True)
def distance_slopes(weights: pointer(T), sizes: pointer(T), first: pointer(T), second: pointer(T),
                    out: pointer(T), batch: i64, rows: i64, count: i64, width: i64, task: i64,
                    tasks: i64, T: static, W: static, R: static, KIND: static):  # fmt: skip
    """out [batch, rows, width]: the sum over j of weights[i, j] times the slope of the norm of
    first[i] - second[j], which is sizes[i, j]. "squares": weights are over the norms already."""
    bands = (rows + R - 1) // R
    for unit in range(batch * bands * task // tasks, batch * bands * (task + 1) // tasks):
        b = unit // bands
        row = b * rows + unit % bands * R
        stop = smaller(row + R, (b + 1) * rows)
        others = second + b * count * width
        for column in range(0, width, W):
            if row + R == stop:
                slopes_from(weights + row * count, sizes + row * count, first + row * width, others,
                            out + row * width, count, width, column, T, W, R, KIND)  # fmt: skip
            else:
                for i in range(row, stop):
                    slopes_from(weights + i * count, sizes + i * count, first + i * width, others,
                                out + i * width, count, width, column, T, W, 1, KIND)  # fmt: skip
