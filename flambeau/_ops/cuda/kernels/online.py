"""The loss of long rows of scores in one pass: the largest score so far and the sum of exponentials
below it, which is scaled down whenever the largest grows."""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.vector_math import log
from flambeau._ops.cuda.kernels.joining import (
    join_amax,
    join_total,
    joined_along,
    joined_lanes,
)

LOG2E = 1.4426950408889634
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
def over_row(peak, sum, t: i64, local: i64, G: static, ROWS: static):
    """What the G threads of a row have, merged: over warps by memory of the block."""
    p = registers(f32, 1)
    s = registers(f32, 1)
    warp_peak, warp_sum = over_warp(peak, sum, min(G, WARP))
    p[0] = warp_peak
    s[0] = warp_sum
    if G > WARP:
        WARPS = G // WARP
        cells = shared(f32, 2 * ROWS * WARPS)
        mine = local * WARPS
        if t % WARP == 0:
            cells[mine + t // WARP] = warp_peak
            cells[ROWS * WARPS + mine + t // WARP] = warp_sum
        barrier()
        other = mine + t % WARPS
        row_peak, row_sum = over_warp(cells[other], cells[ROWS * WARPS + other], WARPS)
        p[0] = row_peak
        s[0] = row_sum
    return p[0], s[0]


@native
def shift_below(peak):
    """What exponents are moved by: 0 where there is no score yet."""
    return select(peak == LOWEST, f32(0), peak * LOG2E)


@native
def edges(number: i64, n: i64, V: static, PEEL: static):
    """(head, body): row `number` of a matrix has its first multiple of V elements behind `head`
    elements, and from there on `body` of them in whole vectors."""
    if PEEL:
        head = (V - number * n % V) % V
        return head, (n - head) // V * V
    return i64(0), n


@native
def edge_place(t: i64, head: i64, body: i64):
    """The place of element t of those before and behind whole vectors."""
    return select(t < head, t, body + t)


@native
def with_vectors(peak, sum, row, place: i64, n: i64, T: static, V: static, U: static,
                 THREADS: static):  # fmt: skip
    """The largest score and the sum of exponentials below it, with U vectors more, which a thread
    has from `place` on; those behind n scores do not count."""
    got = registers(vector(T, V), U, LOWEST)
    for u in unroll(U):
        if place + u * (THREADS * V) < n:
            got[u] = load(row + (place + u * (THREADS * V)), V, align=V * T.size)
    many = registers(vector(f32, V), 1, LOWEST)
    for u in unroll(U):
        many[0] = top(many[0], f32(got[u]))
    new = top(peak, joined_lanes(many[0], join_amax, V))
    shift = shift_below(new)
    parts = registers(vector(f32, V), 1)
    for u in unroll(U):
        parts[0] += fast_exp2(fma(f32(got[u]), LOG2E, -shift))
    return new, scale_down(sum, peak, new) + joined_lanes(parts[0], join_total, V)


@native
def online(row, n: i64, there, t: i64, local: i64, first, T: static, V: static, U: static,
           G: static, ROWS: static):  # fmt: skip
    """The largest of a row of n scores and of `first`, and the sum of exponentials below it, told
    to all of its G threads. The row begins at a multiple of V elements, and is `there` or not."""
    peak = registers(f32, 1)
    sum = registers(f32, 1)
    peak[0] = first
    sum[0] = select(first == LOWEST, f32(0), fast_exp2(first - first))
    length = select(there, n, i64(0))
    for start in range(0, length, G * V * U):
        found, total = with_vectors(peak[0], sum[0], row, start + t * V, n, T, V, U, G)
        peak[0] = found
        sum[0] = total
    return peak[0], sum[0]


@native
def class_loss_online(x: pointer(T), target: pointer(I), loss: pointer(f32), peaks: pointer(f32),
                      sums: pointer(f32), counts: pointer(f32), rows: i64, n: i64, ignored: i64,
                      turns: i64, T: static, I: static, V: static, U: static, G: static,
                      ROWS: static, PEEL: static, SUMMED: static):  # fmt: skip
    """G threads a row, ROWS rows of a block at a time: the largest score of each, and its sum of
    exponentials; its loss, and whether it counts, or the sums of both over a block's rows. Rows of
    more than a warp have one turn."""
    local = thread() // G
    t = thread() % G
    all_losses = registers(f32, 1)
    all_counts = registers(f32, 1)
    for turn in range(turns):
        which = (block() * turns + turn) * ROWS + local
        there = which < rows
        number = select(there, which, i64(0))
        row = x + number * n
        label = i64(target[number])
        score = registers(f32, 1)
        if (t == 0) & (label >= 0) & (label < n):
            score[0] = f32(row[label])
        head, body = edges(number, n, V, PEEL)
        edge = registers(f32, 1, LOWEST)
        if PEEL:
            if t < n - body:
                edge[0] = f32(row[edge_place(t, head, body)])
        own_peak, own_sum = online(row + head, body, there, t, local, edge[0], T, V, U, G, ROWS)
        peak, sum = over_row(own_peak, own_sum, t, local, G, ROWS)
        if (t == 0) & there:
            counting = label != ignored
            found = select(counting, log(sum) + (peak - score[0]), f32(0))
            one = select(counting, f32(1), f32(0))
            peaks[which] = peak
            sums[which] = sum
            if SUMMED:
                all_losses[0] = all_losses[0] + found
                all_counts[0] = all_counts[0] + one
            else:
                loss[which] = found
                counts[which] = one
    if SUMMED:
        WARPS = max(G * ROWS // WARP, 1)
        cells = shared(f32, 2 * WARPS)
        losses = joined_along(all_losses[0], f32(0), join_total, cells, thread(), i64(0),
                              G * ROWS, 1)  # fmt: skip
        counted = joined_along(all_counts[0], f32(0), join_total, cells + WARPS, thread(), i64(0),
                               G * ROWS, 1)  # fmt: skip
        if thread() == 0:
            loss[block()] = losses
            counts[block()] = counted


@native
def softmax_online(x: pointer(T), out: pointer(OUT), n: i64, T: static, OUT: static, V: static,
                   U: static, LOG: static, THREADS: static, KEPT: static,
                   PEEL: static):  # fmt: skip
    """Softmax of a long row, or its logarithm, by a block: KEPT vectors of a thread stay in its
    registers; what lies behind them is read a second time, backwards, from what the cache still
    has. Blocks have as many threads as a multiprocessor takes of such, so that the rows under way
    fit into the cache."""
    t = thread()
    begin = block() * n
    head, body = edges(block(), n, V, PEEL)
    row = x + (begin + head)
    target = out + (begin + head)
    edge = registers(f32, 1, LOWEST)
    corner = begin + edge_place(t, head, body)
    if PEEL:
        if t < n - body:
            edge[0] = f32(x[corner])
    held = registers(vector(T, V), KEPT, LOWEST)
    peak = registers(f32, 1)
    sum = registers(f32, 1)
    for k in unroll(KEPT):
        if (k * THREADS + t) * V < body:
            held[k] = load(row + (k * THREADS + t) * V, V, align=V * T.size)
    highest = registers(vector(f32, V), 1, LOWEST)
    for k in unroll(KEPT):
        highest[0] = top(highest[0], f32(held[k]))
    peak[0] = top(joined_lanes(highest[0], join_amax, V), edge[0])
    above = shift_below(peak[0])
    powers = registers(vector(f32, V), 1)
    for k in unroll(KEPT):
        powers[0] += fast_exp2(fma(f32(held[k]), LOG2E, -above))
    sum[0] = joined_lanes(powers[0], join_total, V) + fast_exp2(fma(edge[0], LOG2E, -above))
    TILE = THREADS * V * U
    FIRST = KEPT * THREADS * V
    for start in range(FIRST, body, TILE):
        found, total = with_vectors(peak[0], sum[0], row, start + t * V, body, T, V, U, THREADS)
        peak[0] = found
        sum[0] = total
    row_peak, row_sum = over_row(peak[0], sum[0], t, i64(0), THREADS, 1)
    shift = row_peak * LOG2E
    factor = 1.0 / row_sum
    level = row_peak + log(row_sum)
    last = (body - 1 - FIRST) // TILE * TILE + FIRST
    for back in range(0, body - FIRST, TILE):
        place = last - back + t * V
        got = registers(vector(T, V), U)
        for u in unroll(U):
            if place + u * (THREADS * V) < body:
                got[u] = load(row + (place + u * (THREADS * V)), V, align=V * T.size)
        for u in unroll(U):
            if place + u * (THREADS * V) < body:
                value = share_of(f32(got[u]), level, shift, factor, LOG)
                store(target + (place + u * (THREADS * V)), OUT(value), align=V * OUT.size)
    for k in unroll(KEPT):
        if (k * THREADS + t) * V < body:
            value = share_of(f32(held[k]), level, shift, factor, LOG)
            store(target + (k * THREADS + t) * V, OUT(value), align=V * OUT.size)
    if PEEL:
        if t < n - body:
            out[corner] = OUT(share_of(edge[0], level, shift, factor, LOG))


@native
def share_of(x, level, shift, factor, LOG: static):
    """An element of softmax, or its logarithm."""
    if LOG:
        return x - level
    return fast_exp2(fma(x, LOG2E, -shift)) * factor
