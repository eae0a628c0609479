"""Layer norm of rows that are too long for registers: mean and squares in one pass, by the formulas
that join those of two sets (T. Chan, G. Golub, R. LeVeque, The American Statistician 37, 1983)."""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.cuda.kernels.joining import join_total, joined_lanes
from flambeau._ops.cuda.kernels.online import edge_place, edges


@native
def both(count, mean, squares, other_count, other_mean, other_squares):
    """Count, mean and sum of squared distances from it, of two sets together."""
    whole = count + other_count
    share = select(whole == 0, f32(0), other_count / whole)
    gap = other_mean - mean
    return whole, fma(gap, share, mean), squares + other_squares + gap * gap * (count * share)


@native
def over_lanes(count, mean, squares, WIDTH: static):
    """Those of WIDTH neighbouring lanes, as the first of them finds them."""
    c = registers(f32, 1)
    m = registers(f32, 1)
    s = registers(f32, 1)
    c[0] = count
    m[0] = mean
    s[0] = squares
    for STEP in unroll(halving(WIDTH)):
        n, middle, around = both(c[0], m[0], s[0], lane_across(c[0], STEP),
                                 lane_across(m[0], STEP), lane_across(s[0], STEP))  # fmt: skip
        c[0] = n
        m[0] = middle
        s[0] = around
    first = thread() % WARP // WIDTH * WIDTH
    return lane_at(c[0], first), lane_at(m[0], first), lane_at(s[0], first)


@native
def over_block(count, mean, squares, THREADS: static):
    """Those of all threads of a block."""
    WARPS = THREADS // WARP
    n, middle, around = over_lanes(count, mean, squares, WARP)
    cells = shared(f32, 3 * WARPS)
    if thread() % WARP == 0:
        cells[thread() // WARP] = n
        cells[WARPS + thread() // WARP] = middle
        cells[2 * WARPS + thread() // WARP] = around
    barrier()
    lane = thread() % WARPS
    return over_lanes(cells[lane], cells[WARPS + lane], cells[2 * WARPS + lane], WARPS)


@native
def scaled(x, mean, rstd, weight, bias, place: i64, V: static, WEIGHT: static, BIAS: static,
           PEEL: static):  # fmt: skip
    """Elements, normalised, scaled and shifted by what lies at a place of weights."""
    found = registers(vector(f32, V), 1)
    found[0] = (x - mean) * rstd
    WHOLE = 1 if PEEL else V
    if WEIGHT:
        of_weight = load(weight + place, V, align=min(WHOLE * weight.type.element.size, 16))
        found[0] = found[0] * f32(of_weight)
    if BIAS:
        of_bias = load(bias + place, V, align=min(WHOLE * bias.type.element.size, 16))
        found[0] = found[0] + f32(of_bias)
    return found[0]


@native
def layer_norm_long(x: pointer(T), weight: pointer(TW), bias: pointer(TB), out: pointer(T),
                    means: pointer(TK), roots: pointer(TK), n: i64, eps: f32, T: static,
                    TW: static, TB: static, TK: static, V: static, U: static, THREADS: static,
                    KEPT: static, WEIGHT: static, BIAS: static,
                    PEEL: static):  # fmt: skip
    """A row a block. KEPT vectors of a thread stay in its registers; the others are read a second
    time, backwards, from what the cache still has."""
    t = thread()
    begin = block() * n
    head, body = edges(block(), n, V, PEEL)
    row = x + (begin + head)
    target = out + (begin + head)
    edge = registers(f32, 1)
    corner = edge_place(t, head, body)
    if PEEL:
        if t < n - body:
            edge[0] = f32(x[begin + corner])
    held = registers(vector(T, V), KEPT)
    total = registers(vector(f32, V), 1)
    many = registers(f32, 1)
    for k in unroll(KEPT):
        if (k * THREADS + t) * V < body:
            held[k] = load(row + (k * THREADS + t) * V, V, align=V * T.size)
            many[0] = many[0] + V
    for k in unroll(KEPT):
        total[0] += f32(held[k])
    count = registers(f32, 1)
    mean = registers(f32, 1)
    squares = registers(f32, 1)
    count[0] = many[0]
    mean[0] = joined_lanes(total[0], join_total, V) / larger(many[0], 1.0)
    gaps = registers(vector(f32, V), 1)
    for k in unroll(KEPT):
        if (k * THREADS + t) * V < body:
            gap = f32(held[k]) - mean[0]
            gaps[0] += gap * gap
    squares[0] = joined_lanes(gaps[0], join_total, V)
    TILE = THREADS * V * U
    FIRST = KEPT * THREADS * V
    for start in range(FIRST, body, TILE):
        place = start + t * V
        got = registers(vector(T, V), U)
        more = registers(f32, 1)
        for u in unroll(U):
            if place + u * (THREADS * V) < body:
                got[u] = load(row + (place + u * (THREADS * V)), V, align=V * T.size)
                more[0] = more[0] + V
        sum = registers(vector(f32, V), 1)
        for u in unroll(U):
            sum[0] += f32(got[u])
        middle = joined_lanes(sum[0], join_total, V) / larger(more[0], 1.0)
        around = registers(vector(f32, V), 1)
        for u in unroll(U):
            apart = f32(got[u]) - middle
            square = apart * apart
            around[0] += select(place + u * (THREADS * V) < body, square, splat(f32(0), V))
        c, m, s = both(count[0], mean[0], squares[0], more[0], middle,
                       joined_lanes(around[0], join_total, V))  # fmt: skip
        count[0] = c
        mean[0] = m
        squares[0] = s
    if PEEL:
        has = select(t < n - body, f32(1), f32(0))
        c, m, s = both(count[0], mean[0], squares[0], has, edge[0], f32(0))
        count[0] = c
        mean[0] = m
        squares[0] = s
    length, center, spread = over_block(count[0], mean[0], squares[0], THREADS)
    rstd = 1.0 / sqrt(spread / length + eps)
    if t == 0:
        means[block()] = TK(center)
        roots[block()] = TK(rstd)
    last = (body - 1 - FIRST) // TILE * TILE + FIRST
    for back in range(0, body - FIRST, TILE):
        place = last - back + t * V
        got = registers(vector(T, V), U)
        for u in unroll(U):
            if place + u * (THREADS * V) < body:
                got[u] = load(row + (place + u * (THREADS * V)), V, align=V * T.size)
        for u in unroll(U):
            at = place + u * (THREADS * V)
            if at < body:
                value = scaled(
                    f32(got[u]), center, rstd, weight, bias, head + at, V, WEIGHT, BIAS, PEEL
                )
                store(target + at, T(value), align=V * T.size)
    for k in unroll(KEPT):
        at = (k * THREADS + t) * V
        if at < body:
            value = scaled(
                f32(held[k]), center, rstd, weight, bias, head + at, V, WEIGHT, BIAS, PEEL
            )
            store(target + at, T(value), align=V * T.size)
    if PEEL:
        if t < n - body:
            single = scaled(edge[0], center, rstd, weight, bias, corner, 1, WEIGHT, BIAS, True)
            out[begin + corner] = T(single)
