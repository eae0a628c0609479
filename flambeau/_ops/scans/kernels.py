"""Running sums, products and extremes along the rows or down the columns of matrices.

What is added up is added one by one from the first element to the last (with `BACK` from the last
to the first), in type A: the order, and so the rounding, is that of a plain loop.
"""

from __future__ import annotations

from flambeau._compiler.language import (
    i64,
    insert,
    is_nan,
    load,
    pointer,
    registers,
    select,
    shuffle,
    splat,
    static,
    store,
    unroll,
)
from flambeau._compiler.native import native

ROWS = 4
"""Rows that are scanned side by side, each in a lane."""


@native
def joined(total, x, MUL: static):
    """The next sum or product."""
    return total * x if MUL else total + x


@native
def transposed(a, b, c, d):
    """Four vectors of four lanes as columns."""
    low, high = shuffle(a, b, (0, 4, 2, 6)), shuffle(a, b, (1, 5, 3, 7))
    low2, high2 = shuffle(c, d, (0, 4, 2, 6)), shuffle(c, d, (1, 5, 3, 7))
    return (shuffle(low, low2, (0, 1, 4, 5)), shuffle(high, high2, (0, 1, 4, 5)),
            shuffle(low, low2, (2, 3, 6, 7)), shuffle(high, high2, (2, 3, 6, 7)))  # fmt: skip


@native
def scan_line(x, out, n, start, A: static, R: static, MUL: static, BACK: static):
    """One row; the total at its end."""
    total = start + 0
    for k in range(n):
        i = n - 1 - k if BACK else k
        total = joined(total, A(x[i]), MUL)
        out[i] = R(total)
    return total


@native
def scan_four(x, out, n, A: static, R: static, MUL: static, BACK: static):
    """Four rows of n elements that follow each other, in tiles of four columns."""
    totals = splat(A(1 if MUL else 0), ROWS)
    for k in range(0, n // 4 * 4, 4):
        i = n - 4 - k if BACK else k
        line = x + i
        tile = transposed(A(load(line, 4)), A(load(line + n, 4)), A(load(line + 2 * n, 4)),
                          A(load(line + 3 * n, 4)))  # fmt: skip
        columns = registers(totals.type, 4)
        for c in (3, 2, 1, 0) if BACK else (0, 1, 2, 3):
            totals = joined(totals, tile[c], MUL)
            columns[c] = totals
        done = transposed(columns[0], columns[1], columns[2], columns[3])
        for r in unroll(4):
            store(out + r * n + i, R(done[r]))
    for k in range(n // 4 * 4, n):
        i = n - 1 - k if BACK else k
        for r in unroll(4):
            total = joined(totals[r], A(x[r * n + i]), MUL)
            out[r * n + i] = R(total)
            totals = insert(totals, r, total)


@native(apart=True)
def scan_lines(x: pointer(T), out: pointer(R), rows: i64, n: i64, task: i64, tasks: i64,
               T: static, A: static, R: static, MUL: static, BACK: static):  # fmt: skip
    """Along the rows of x [rows, n]."""
    groups = (rows + (ROWS - 1)) // ROWS
    last = groups * (task + 1) // tasks * ROWS
    for row in range(groups * task // tasks * ROWS, last, ROWS):
        if row + ROWS <= rows:
            scan_four(x + row * n, out + row * n, n, A, R, MUL, BACK)
        else:
            for single in range(row, rows):
                start = A(1 if MUL else 0)
                scan_line(x + single * n, out + single * n, n, start, A, R, MUL, BACK)


# ---- one long row in parts: the total of each part, then each part from the total before it


@native(apart=True)
def part_totals(x: pointer(T), totals: pointer(A), n: i64, task: i64, tasks: i64,
                T: static, A: static, MUL: static):  # fmt: skip
    """The sum or product of each task's part, in four lanes."""
    first, last = n * task // tasks, n * (task + 1) // tasks
    lanes = splat(A(1 if MUL else 0), 4)
    whole = first + (last - first) // 4 * 4
    for i in range(first, whole, 4):
        lanes = joined(lanes, A(load(x + i, 4)), MUL)
    total = joined(joined(lanes[0], lanes[1], MUL), joined(lanes[2], lanes[3], MUL), MUL)
    for i in range(whole, last):
        total = joined(total, A(x[i]), MUL)
    totals[task] = total


@native(apart=True)
def scan_parts(x: pointer(T), out: pointer(R), totals: pointer(A), n: i64, task: i64, tasks: i64,
               T: static, A: static, R: static, MUL: static, BACK: static):  # fmt: skip
    """Each task's part, from the totals of the parts before it."""
    first, last = n * task // tasks, n * (task + 1) // tasks
    start = A(1 if MUL else 0)
    for k in range(tasks):
        other = tasks - 1 - k if BACK else k
        before = other > task if BACK else other < task
        start = select(before, joined(start, totals[other], MUL), start)
    scan_line(x + first, out + first, last - first, start, A, R, MUL, BACK)


# ---- down the columns


@native(apart=True)
def scan_columns(x: pointer(T), out: pointer(R), outer: i64, n: i64, inner: i64, task: i64,
                 tasks: i64, T: static, A: static, R: static, MUL: static, BACK: static,
                 W: static, U: static):  # fmt: skip
    """Along dim 1 of x [outer, n, inner], U vectors of columns at a time."""
    STEP = W * U
    blocks = (inner + (STEP - 1)) // STEP
    for item in range(outer * blocks * task // tasks, outer * blocks * (task + 1) // tasks):
        column = item % blocks * STEP
        base = item // blocks * n * inner + column
        if column + STEP <= inner:
            totals = registers(splat(A(0), W).type, U, 1 if MUL else 0)
            for k in range(n):
                place = base + (n - 1 - k if BACK else k) * inner
                for u in unroll(U):
                    totals[u] = joined(totals[u], A(load(x + place + u * W, W)), MUL)
                    store(out + place + u * W, R(totals[u]))
        else:
            for c in range(base, base + inner - column):
                total = A(1 if MUL else 0)
                for k in range(n):
                    place = c + (n - 1 - k if BACK else k) * inner
                    total = joined(total, A(x[place]), MUL)
                    out[place] = R(total)


# ---- running extremes


@native
def extreme_line(x, values, indices, n, step, W: static, LEAST: static):
    """W columns that lie side by side, `step` from element to element."""
    best = load(x, W)
    where = splat(i64(0), W)
    for i in range(n):
        here = load(x + i * step, W)
        wins = here <= best if LEAST else here >= best
        if x.type.element.is_float:
            wins = wins | is_nan(here)
        best = select(wins, here, best)
        where = select(wins, splat(i, W), where)
        store(values + i * step, best)
        store(indices + i * step, where)


@native(apart=True)
def running_extremes(x: pointer(T), values: pointer(T), indices: pointer(i64), outer: i64, n: i64,
                     inner: i64, task: i64, tasks: i64, T: static, W: static,
                     LEAST: static):  # fmt: skip
    """The greatest (least) of the first elements along dim 1 of x [outer, n, inner], and the last
    index where it stands; NaN beats every number."""
    blocks = (inner + (W - 1)) // W
    for item in range(outer * blocks * task // tasks, outer * blocks * (task + 1) // tasks):
        column = item % blocks * W
        base = item // blocks * n * inner + column
        if column + W <= inner:
            extreme_line(x + base, values + base, indices + base, n, inner, W, LEAST)
        else:
            for c in range(base, base + inner - column):
                extreme_line(x + c, values + c, indices + c, n, inner, 1, LEAST)
