"""The loss of long rows of scores in one pass: the largest score so far and the sum of exponentials
below it, which is scaled down whenever the largest grows."""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
LOWEST = -float("inf")


@native
def scale_down(sum, peak, new):
    """A sum of exponentials below `peak`, as one below a peak that is no smaller."""
    return select(peak == new, sum, sum * fast_exp2((peak - new) * LOG2E))


@native
def merged(peak, sum, other_peak, other_sum):
    """Two such pairs as one."""
    new = top(peak, other_peak)
    return new, scale_down(sum, peak, new) + scale_down(other_sum, other_peak, new)


@native
def over_warp(peak, sum, WIDTH: static):
    """What WIDTH neighbouring lanes have, merged."""
    p = registers(f32, 1)
    s = registers(f32, 1)
    p[0] = peak
    s[0] = sum
    for STEP in unroll(halving(WIDTH)):
        new, total = merged(p[0], s[0], lane_across(p[0], STEP), lane_across(s[0], STEP))
        p[0] = new
        s[0] = total
    return p[0], s[0]


@native
def online(row, n: i64, T: static, V: static, U: static, THREADS: static):
    """The largest score of a row of n elements, and the sum of exponentials below it, told to all
    threads of the block that reads it. The row begins at a multiple of V elements."""
    peak = registers(f32, 1, LOWEST)
    sum = registers(f32, 1)
    for start in range(0, n, THREADS * V * U):
        place = start + thread() * V
        got = registers(vector(T, V), U, LOWEST)
        for u in unroll(U):
            if place + u * (THREADS * V) < n:
                got[u] = load(row + (place + u * (THREADS * V)), V, align=V * T.size)
        many = registers(vector(f32, V), 1, LOWEST)
        for u in unroll(U):
            many[0] = top(many[0], f32(got[u]))
        new = top(peak[0], reduce_max(many[0]))
        shift = select(new == LOWEST, f32(0), new * LOG2E)
        parts = registers(vector(f32, V), 1)
        for u in unroll(U):
            parts[0] += fast_exp2(fma(f32(got[u]), LOG2E, -shift))
        sum[0] = scale_down(sum[0], peak[0], new) + reduce_add(parts[0])
        peak[0] = new
    cells = shared(f32, 64)
    warp_peak, warp_sum = over_warp(peak[0], sum[0], WARP)
    if thread() % WARP == 0:
        cells[thread() // WARP] = warp_peak
        cells[32 + thread() // WARP] = warp_sum
    barrier()
    lane = thread() % (THREADS // WARP)
    all_peak, all_sum = over_warp(cells[lane], cells[32 + lane], THREADS // WARP)
    return all_peak, all_sum


@native
def class_loss_online(x: pointer(T), target: pointer(I), loss: pointer(f32), peaks: pointer(f32),
                      sums: pointer(f32), counts: pointer(f32), n: i64, ignored: i64, T: static,
                      I: static, V: static, U: static, THREADS: static):  # fmt: skip
    """A row a block: its loss, its largest score, sum of exponentials, and whether it counts."""
    row = x + block() * n
    peak, sum = online(row, n, T, V, U, THREADS)
    if thread() == 0:
        label = i64(target[block()])
        score = registers(f32, 1)
        if (label >= 0) & (label < n):
            score[0] = f32(row[label])
        found = fast_log2(sum) * LN2 + (peak - score[0])
        counting = label != ignored
        loss[block()] = select(counting, found, f32(0))
        counts[block()] = select(counting, f32(1), f32(0))
        peaks[block()] = peak
        sums[block()] = sum


@native
def softmax_online(x: pointer(T), out: pointer(OUT), n: i64, T: static, OUT: static, V: static,
                   U: static, LOG: static, THREADS: static):  # fmt: skip
    """Softmax of a long row, or its logarithm, in two passes: the second goes backwards, from what
    the cache still has."""
    row = x + block() * n
    target = out + block() * n
    peak, sum = online(row, n, T, V, U, THREADS)
    TILE = THREADS * V * U
    shift = peak * LOG2E
    factor = 1.0 / sum
    level = peak + fast_log2(sum) * LN2
    last = (n - 1) // TILE * TILE
    for back in range(0, n, TILE):
        place = last - back + thread() * V
        got = registers(vector(T, V), U)
        for u in unroll(U):
            if place + u * (THREADS * V) < n:
                got[u] = load(row + (place + u * (THREADS * V)), V, align=V * T.size)
        for u in unroll(U):
            if LOG:
                value = f32(got[u]) - level
            else:
                value = fast_exp2(fma(f32(got[u]), LOG2E, -shift)) * factor
            if place + u * (THREADS * V) < n:
                store(target + (place + u * (THREADS * V)), OUT(value), align=V * OUT.size)
