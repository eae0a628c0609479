"""Tables applied along one dim: every new element is a sum of some old ones (`tables`).

Behind the dim there are `inner` elements, along which the vectors lie (`across`), or none: then
they lie along the new elements, whose old ones are picked one by one (`along`).
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.conv.kernels.depthwise import load_some, store_some
from flambeau._ops.images.tables import BYTES, MEAN, OVER, TIMES

ROWS = 4
"""Rows that `along` works on at a time, which share the places that it reads."""


@native
def added(total, value, weight, KIND: static):
    """A sum with one more term."""
    if KIND == TIMES:
        return fma(value, weight, total)
    elif KIND == BYTES:
        return total + value * weight
    elif KIND == OVER:
        return total + value / weight
    else:
        return total + value


@native
def term(value, weight, KIND: static):
    """The first term of a sum."""
    if KIND == TIMES:
        return value * weight
    elif KIND == OVER:
        return value / weight
    else:
        return value


@native
def finished(total, weight, shift, KIND: static, W: static):
    """A sum as it is stored."""
    if KIND == MEAN:
        return total / weight
    elif KIND == BYTES:
        rounded = total >> splat(shift, W)
        return smaller(larger(rounded, splat(i32(0), W)), splat(i32(255), W))
    else:
        return total


@native
def across_tile(source, target, starts, places, weights, inner, half, shift,
                T: static, A: static, W: static, U: static, KIND: static,
                ZERO: static):  # fmt: skip
    """U vectors of one row of new elements; `source` is the first old row, there."""
    start = starts[0]
    stop = starts[1]
    totals = registers(vector(A, W), U)
    first = start
    if ZERO:
        for u in unroll(U):
            totals[u] = splat(half, W)
    else:
        row = source + places[start] * inner
        weight = splat(weights[start], W)
        for u in unroll(U):
            totals[u] = term(A(load(row + u * W, W)), weight, KIND)
        first = start + 1
    for k in range(first, stop):
        row = source + places[k] * inner
        weight = splat(weights[k], W)
        for u in unroll(U):
            totals[u] = added(totals[u], A(load(row + u * W, W)), weight, KIND)
    over = splat(weights[start] if KIND == MEAN else A(1), W)
    for u in unroll(U):
        store(target + u * W, T(finished(totals[u], over, shift, KIND, W)))


@native
def across_rest(source, target, starts, places, weights, inner, count, half, shift,
                S: static, T: static, A: static, W: static, KIND: static,
                ZERO: static):  # fmt: skip
    """The last elements of one row: fewer than a vector."""
    start = starts[0]
    total = splat(half, W)
    first = start
    if not ZERO:
        value = load_some(source + places[start] * inner, count, S, A, W)
        total = term(value, splat(weights[start], W), KIND)
        first = start + 1
    for k in range(first, starts[1]):
        value = load_some(source + places[k] * inner, count, S, A, W)
        total = added(total, value, splat(weights[k], W), KIND)
    over = splat(weights[start] if KIND == MEAN else A(1), W)
    store_some(target, finished(total, over, shift, KIND, W), count, T, W)


@native
def across(x: pointer(S), out: pointer(T), starts: pointer(i64), places: pointer(i64),
           weights: pointer(A), outer: i64, size: i64, count: i64, inner: i64, half: A, shift: A,
           task: i64, tasks: i64,
           S: static, T: static, A: static, W: static, KIND: static, ZERO: static):  # fmt: skip
    """`(outer, size, inner)` to `(outer, count, inner)`; sums begin with `half`, or with their
    first term unless ZERO."""
    rows = outer * count
    for unit in range(rows * task // tasks, rows * (task + 1) // tasks):
        source = x + unit // count * size * inner
        target = out + unit * inner
        entries = starts + unit % count
        i = i64(0)
        while i + 4 * W <= inner:
            across_tile(source + i, target + i, entries, places, weights, inner, half, shift,
                        T, A, W, 4, KIND, ZERO)  # fmt: skip
            i += 4 * W
        while i + W <= inner:
            across_tile(source + i, target + i, entries, places, weights, inner, half, shift,
                        T, A, W, 1, KIND, ZERO)  # fmt: skip
            i += W
        if i < inner:
            across_rest(source + i, target + i, entries, places, weights, inner, inner - i, half,
                        shift, S, T, A, W, KIND, ZERO)  # fmt: skip


@native
def copy_row(source, target, count, A: static, W: static):
    """A row as A, and a 0 behind it."""
    i = i64(0)
    while i + W <= count:
        store(target + i, A(load(source + i, W)))
        i += W
    while i < count:
        target[i] = A(source[i])
        i += 1
    target[count] = A(0)


@native
def along(x: pointer(S), out: pointer(T), work: pointer(A), blocks: pointer(i64),
          places: pointer(i64), weights: pointer(A), outer: i64, size: i64, count: i64, room: i64,
          half: A, shift: A, task: i64, tasks: i64,
          S: static, T: static, A: static, W: static, R: static, KIND: static,
          ZERO: static):  # fmt: skip
    """`(outer, size)` to `(outer, count)`; W new elements have as many terms, `blocks[b]` to
    `blocks[b + 1]`: those that are too many are the 0 behind the old ones."""
    memory = work + task * R * room
    groups = (outer + R - 1) // R
    for group in range(groups * task // tasks, groups * (task + 1) // tasks):
        for r in unroll(R):
            copy_row(x + smaller(group * R + r, outer - 1) * size, memory + r * room, size, A, W)
        for b in range((count + W - 1) // W):
            totals = registers(vector(A, W), R)
            first = blocks[b]
            over = load(weights + first * W, W)
            if ZERO:
                for r in unroll(R):
                    totals[r] = splat(half, W)
            else:
                place = load(places + first * W, W)
                for r in unroll(R):
                    totals[r] = term(gather(memory + r * room, place), over, KIND)
            for k in range(first if ZERO else first + 1, blocks[b + 1]):
                place = load(places + k * W, W)
                weight = load(weights + k * W, W)
                for r in unroll(R):
                    totals[r] = added(totals[r], gather(memory + r * room, place), weight, KIND)
            for r in unroll(R):
                if group * R + r < outer:
                    store_some(out + ((group * R + r) * count + b * W),
                               finished(totals[r], over, shift, KIND, W), count - b * W,
                               T, W)  # fmt: skip


@native
def copied(x: pointer(T), out: pointer(T), rows: pointer(i64), runs: pointer(i64), outer: i64,
           volume: i64, count: i64, length: i64, task: i64, tasks: i64,
           T: static, RUNS: static):  # fmt: skip
    """`(outer, volume)` to `(outer, count, length)`: new row `r` copies elements of the old row
    that starts at `rows[r]`.

    With RUNS these are `runs[1]` of them from `runs[0]` on, then `runs[3]` from `runs[2]` on, ...;
    else `runs` says where each of them lies.
    """
    first = outer * count * task // tasks
    for unit in range(first, outer * count * (task + 1) // tasks):
        row = unit % count
        source = x + (unit // count * volume + rows[row])
        target = out + unit * length
        if RUNS:
            done = i64(0)
            run = runs
            while done < length:
                copy_memory(target + done, source + run[0], run[1])
                done += run[1]
                run += 2
        else:
            again = i64(0)
            if (unit > first) & (row > 0):
                again = i64(rows[row] == rows[row - 1])
            if again != 0:
                copy_memory(target, target - length, length)
            else:
                for i in range(length):
                    target[i] = source[runs[i]]
