"""Attention over a few queries at a time: scores, weights and sums of values stay in the cache.

Memory of one task (elements of T, the type of the arithmetic), with KEYS the number of keys padded
to whole tiles and WIDTH the width of a head padded to whole vectors of a tile:

    keys as the scores' right side   WIDTH_IN x KEYS   (panels of NR keys)
    values as the sums' right side   WIDTH_OUT x keys  (panels of NR columns)
    a block of queries, its scores, its results

Weights are exact softmax weights of whole rows; gradients compute them again from the logarithm of
each row's sum (Dao et al., FlashAttention, 2022).
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.vector_math import VECTOR_MATH
from flambeau._ops.products.kernels.gemm import PANEL_STEPS, STEPS, gemm_tile
from flambeau._ops.products.kernels.packing import pack_panel

exp = VECTOR_MATH["exp"]
log = VECTOR_MATH["log"]


@native
def up(count, step):
    """The next multiple of `step`."""
    return (count + step - 1) // step * step


@native(outline=True)
def pack_all(source, item, step, count, depth, target, NR: static, W: static):
    """All panels of a right side: `count` columns, NR a panel, `depth` rows each."""
    for first in range(0, count, NR):
        pack_panel(source + first * item, item, step, smaller(count - first, NR), depth,
                   target + first * depth, NR, W)  # fmt: skip


@native
def scaled_row(source, target, width, factor, W: static):
    """A row times a factor, in the target's type."""
    A, T = factor.type, target.type.element
    whole = width // W * W
    for e in range(0, whole, W):
        store(target + e, T(A(load(source + e, W)) * factor))
    for e in range(whole, width):
        target[e] = T(A(source[e]) * factor)


@native(outline=True)
def scaled_rows(source, source_row, rows, width, target, target_row, factor, W: static):
    """Rows times a factor, in the target's type."""
    for i in range(rows):
        scaled_row(source + i * source_row, target + i * target_row, width, factor, W)


@native
def copy_block(source, row, rows, width, target, padded, height, factor, W: static):
    """A block of rows in the type of the arithmetic, times a factor, with 0 behind its ends."""
    scaled_rows(source, row, rows, width, target, padded, factor, W)
    for i in range(rows):
        for e in range(width, padded):
            target[i * padded + e] = 0
    for k in range(rows * padded, height * padded):
        target[k] = 0


@native(outline=True)
def block_product(a, a_row, b, deep, height, columns, depth, c, c_row, MR: static, NV: static,
                  W: static):  # fmt: skip
    """c = a b for `height` rows of a (a multiple of MR) and `columns` of b, in panels `deep` rows
    deep of which the first `depth` count."""
    for j in range(0, columns, NV * W):
        for r in range(0, height, MR):
            gemm_tile(a + r * a_row, a_row, 1, b + j * deep, NV * W, depth,
                      c + (r * c_row + j), c_row, False, MR, NV, W, PANEL_STEPS)  # fmt: skip


@native
def masked_scores(scores, mask, limit, MASKED: static, W: static):
    """Add the mask to a row of scores, in whole vectors; what lies behind `limit` becomes -inf.
    The greatest, or 0 where all are -inf."""
    T = scores.type.element
    top = registers(vector(T, W), 1, -float("inf"))
    for j in range(0, limit, W):
        some = lanes(i32, W) < i32(limit - j)
        score = load(scores + j, W)
        if MASKED:
            score = score + load(mask + j, W, some)
        score = select(some, score, -float("inf"))
        store(scores + j, score)
        top[0] = larger(score, top[0])
    greatest = reduce_max(top[0])
    return select(greatest == -float("inf"), T(0.0), greatest)


@native
def row_weights(scores, limit, greatest, W: static):
    """exp(score - greatest) in place of a row's scores; their sum."""
    T = scores.type.element
    total = registers(vector(T, W), 1)
    for j in range(0, limit, W):
        weight = exp(load(scores + j, W) - greatest)
        store(scores + j, weight)
        total[0] += weight
    return reduce_add(total[0])


@native
def clear(row, first, last, W: static):
    """0 in whole vectors from `first` up to `last`."""
    for j in range(first, last, W):
        store(row + j, splat(row.type.element(0), W))


@native
def weigh_rows(scores, padded, mask, mask_row, first, rows, span, tops, totals, CAUSAL: static,
               MASKED: static, W: static):  # fmt: skip
    """Weights in place of the scores of `rows` queries from `first` on, not yet divided by their
    sums, which go to `totals`; the greatest scores to `tops`."""
    for i in range(rows):
        line = scores + i * padded
        limit = smaller(span, first + i + 1) if CAUSAL else span
        tops[i] = masked_scores(line, mask + i * mask_row, limit, MASKED, W)
        totals[i] = row_weights(line, limit, tops[i], W)
        clear(line, up(limit, W), padded, W)


@native
def finish_rows(sums, wide, rows, width_out, tops, totals, out, out_row, log_sums, ROWS: static,
                W: static):  # fmt: skip
    """Weighted sums of values, divided by the sums of weights, and the logarithms of these."""
    T = sums.type.element
    for i in range(0, ROWS, W):  # logarithms of several rows at a time
        store(tops + i, log(load(totals + i, W)) + load(tops + i, W))
    for i in range(rows):
        log_sums[i] = tops[i]
        factor = 1.0 / select(totals[i] == 0.0, T(1.0), totals[i])
        scaled_row(sums + i * wide, out + i * out_row, width_out, factor, W)


@native
def attend_block(query, query_row, keys_packed, values_packed, mask, mask_row, scratch, first,
                 rows, span, keys, width, width_out, out, out_row, log_sums, scale, CAUSAL: static,
                 MASKED: static, ROWS: static, MR: static, NV: static, W: static):  # fmt: skip
    """The results of `rows` queries from `first` on; `span` keys can matter to any of them."""
    T = scratch.type.element
    NR = NV * W
    padded, wide, height = up(span, NR), up(width_out, NR), up(rows, MR)
    scores = scratch + ROWS * width
    sums = scores + ROWS * padded
    copy_block(query, query_row, rows, width, scratch, width, height, scale, W)
    block_product(scratch, width, keys_packed, width, height, span, width, scores, padded, MR,
                  NV, W)  # fmt: skip
    tops = stack(T, ROWS)
    totals = stack(T, ROWS)
    weigh_rows(scores, padded, mask, mask_row, first, rows, span, tops, totals, CAUSAL, MASKED, W)
    block_product(scores, padded, values_packed, keys, height, wide, span, sums, wide, MR, NV,
                  W)  # fmt: skip
    finish_rows(sums, wide, rows, width_out, tops, totals, out, out_row, log_sums, ROWS, W)


@native
def attend(query: pointer(S), key: pointer(S), value: pointer(S), mask: pointer(T),
           strides: pointer(i64), out: pointer(S), log_sums: pointer(T), scratch: pointer(T),
           room: i64, heads: i64, units: i64, chunks: i64, chunk: i64, queries: i64, keys: i64,
           width: i64, width_out: i64, scale: T, task: i64, tasks: i64, CAUSAL: static,
           MASKED: static, S: static, T: static, ROWS: static, MR: static, NV: static,
           W: static):  # fmt: skip
    """softmax(scale Q Kᵀ + mask) V for all heads, and the log of each row's sum.

    `strides` holds, for query, key, value, mask and out, the strides of batch, head and row. A unit
    is a chunk of the queries of one head; `heads` is the number of heads in a batch.
    """
    NR = NV * W
    keys_packed = scratch + task * room
    values_packed = keys_packed + up(keys, NR) * width
    rest = values_packed + up(width_out, NR) * keys
    packed = i64(-1)
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        head, place = unit // chunks, unit % chunks
        batch, inner = head // heads, head % heads
        if head != packed:
            packed = head
            pack_all(key + at(strides + 3, batch, inner), strides[5], i64(1), keys, width,
                     keys_packed, NR, W)  # fmt: skip
            pack_all(value + at(strides + 6, batch, inner), i64(1), strides[8], width_out, keys,
                     values_packed, NR, W)  # fmt: skip
        stop = smaller(place * chunk + chunk, queries)
        for first in range(place * chunk, stop, ROWS):
            rows = smaller(stop - first, ROWS)
            span = smaller(keys, first + rows) if CAUSAL else keys
            attend_block(
                query + at(strides, batch, inner) + first * strides[2], strides[2], keys_packed,
                values_packed, mask + at(strides + 9, batch, inner) + first * strides[11],
                strides[11], rest, first, rows, span, keys, width, width_out,
                out + at(strides + 12, batch, inner) + first * strides[14], strides[14],
                log_sums + (head * queries + first), scale, CAUSAL, MASKED, ROWS, MR, NV,
                W)  # fmt: skip


@native
def at(strides, batch, head):
    """Where a head begins."""
    return batch * strides[0] + head * strides[1]


# ---- gradients


@native
def weights_and_slopes(scores, slopes, limit, log_sum, along, W: static):
    """Of a row, in place: weights, exp(score - log of the row's sum), and the slopes of its scores,
    weight * (slope of the weight - along), which are 0 behind `limit`."""
    T = scores.type.element
    shift = select(log_sum == -float("inf"), T(0.0), log_sum)
    for j in range(0, limit, W):
        weight = exp(load(scores + j, W) - shift)
        store(scores + j, weight)
        some = lanes(i32, W) < i32(limit - j)
        store(slopes + j, select(some, weight * (load(slopes + j, W) - along), 0.0))


@native
def row_along(grad, out, width, W: static):
    """The sum of grad * out over a row."""
    T = f64 if grad.type.element is f64 else f32
    sums = registers(vector(T, W), 1)
    whole = width // W * W
    for e in range(0, whole, W):
        sums[0] = fma(T(load(grad + e, W)), T(load(out + e, W)), sums[0])
    total = reduce_add(sums[0])
    for e in range(whole, width):
        total = fma(T(grad[e]), T(out[e]), total)
    return total


@native
def attend_backward(query: pointer(S), key: pointer(S), value: pointer(S), mask: pointer(T),
                    out: pointer(S), grad: pointer(S), of_query: pointer(S), of_key: pointer(S),
                    of_value: pointer(S), strides: pointer(i64), log_sums: pointer(T),
                    scratch: pointer(T), room: i64, heads: i64, units: i64, queries: i64,
                    keys: i64, width: i64, width_out: i64, scale: T, task: i64, tasks: i64,
                    CAUSAL: static, MASKED: static, S: static, T: static, ROWS: static,
                    MR: static, NV: static, W: static):  # fmt: skip
    """Gradients of query, key and value; a unit is a head.

    `strides` holds those of query, key, value, mask, out, grad, of_query, of_key and of_value.
    """
    NR = NV * W
    every, wide, wide_out = up(keys + MR, NR), up(width, NR), up(width_out, NR)
    keys_right = scratch + task * room  # for scores: width deep
    values_right = keys_right + every * width  # for slopes of weights: width_out deep
    keys_left = values_right + every * width_out  # for gradients of queries: keys deep
    key_sums = keys_left + wide * keys
    value_sums = key_sums + every * wide
    block = value_sums + every * wide_out
    slope_block = block + ROWS * wide
    weights = slope_block + ROWS * wide_out
    slopes = weights + ROWS * every
    sums = slopes + ROWS * every
    for head in range(units * task // tasks, units * (task + 1) // tasks):
        batch, inner = head // heads, head % heads
        k, v = key + at(strides + 3, batch, inner), value + at(strides + 6, batch, inner)
        pack_all(k, strides[5], i64(1), keys, width, keys_right, NR, W)
        pack_all(v, strides[8], i64(1), keys, width_out, values_right, NR, W)
        pack_all(k, i64(1), strides[5], width, keys, keys_left, NR, W)
        zero_memory(key_sums, every * (wide + wide_out))
        for first in range(0, queries, ROWS):
            rows = smaller(queries - first, ROWS)
            height = up(rows, MR)
            span = smaller(keys, first + rows) if CAUSAL else keys
            padded = up(span + MR, NR)
            copy_block(query + at(strides, batch, inner) + first * strides[2], strides[2], rows,
                       width, block, wide, height, scale, W)  # fmt: skip
            g = grad + at(strides + 15, batch, inner) + first * strides[17]
            copy_block(g, strides[17], rows, width_out, slope_block, wide_out, height, T(1.0), W)
            block_product(block, wide, keys_right, width, height, span, width, weights, padded,
                          MR, NV, W)  # fmt: skip
            block_product(slope_block, wide_out, values_right, width_out, height, span,
                          width_out, slopes, padded, MR, NV, W)  # fmt: skip
            m = mask + at(strides + 9, batch, inner) + first * strides[11]
            o = out + at(strides + 12, batch, inner) + first * strides[14]
            for i in range(rows):
                limit = smaller(span, first + i + 1) if CAUSAL else span
                line, slope = weights + i * padded, slopes + i * padded
                masked_scores(line, m + i * strides[11], limit, MASKED, W)
                along = T(row_along(g + i * strides[17], o + i * strides[14], width_out, W))
                log_sum = log_sums[head * queries + first + i]
                weights_and_slopes(line, slope, limit, log_sum, along, W)
                clear(line, up(limit, W), padded, W)
                clear(slope, up(limit, W), padded, W)
            block_product(slopes, padded, keys_left, keys, height, wide, span, sums, wide, MR,
                          NV, W)  # fmt: skip
            scaled_rows(sums, wide, rows, width,
                        of_query + at(strides + 18, batch, inner) + first * strides[20],
                        strides[20], scale, W)  # fmt: skip
            add_outer(slopes, padded, block, wide, span, rows, key_sums, MR, NV, W)
            add_outer(weights, padded, slope_block, wide_out, span, rows, value_sums, MR, NV, W)
        scaled_rows(key_sums, wide, keys, width, of_key + at(strides + 21, batch, inner),
                    strides[23], T(1.0), W)  # fmt: skip
        scaled_rows(value_sums, wide_out, keys, width_out,
                    of_value + at(strides + 24, batch, inner), strides[26], T(1.0), W)  # fmt: skip


@native(outline=True)
def add_outer(left, left_row, right, wide, span, depth, sums, MR: static, NV: static, W: static):
    """sums += leftᵀ right, a row of sums for each key; left is padded by MR columns of 0."""
    for j in range(0, wide, NV * W):
        for r in range(0, span, MR):
            gemm_tile(left + r, 1, left_row, right + j, wide, depth, sums + (r * wide + j), wide,
                      True, MR, NV, W, STEPS)  # fmt: skip
