"""Triangular systems and eliminations of blocks that are too small for matrix products."""

from __future__ import annotations

from flambeau._compiler.language import (
    absolute,
    f64,
    i32,
    i64,
    load,
    pointer,
    registers,
    splat,
    sqrt,
    stack,
    static,
    store,
    unroll,
    vector,
    zero_memory,
)
from flambeau._compiler.native import native

# ---- triangular systems


@native
def solve_rows(a, x, row, a_row, a_column, x_row, T: static, W: static, C: static, R: static,
               UNIT: static):  # fmt: skip
    """R rows of the solution from those before them, in C vectors of columns."""
    sums = registers(vector(T, W), R * C)
    for r in unroll(R):
        for c in unroll(C):
            sums[r * C + c] = load(x + (row + r) * x_row + c * W, W)
    for j in range(row):
        for c in unroll(C):
            known = load(x + j * x_row + c * W, W)
            for r in unroll(R):
                factor = splat(a[(row + r) * a_row + j * a_column], W)
                sums[r * C + c] = sums[r * C + c] - factor * known
    for r in unroll(R):
        for q in unroll(r):
            factor = splat(a[(row + r) * a_row + (row + q) * a_column], W)
            for c in unroll(C):
                sums[r * C + c] = sums[r * C + c] - factor * sums[q * C + c]
        if not UNIT:
            for c in unroll(C):
                sums[r * C + c] = sums[r * C + c] / a[(row + r) * a_row + (row + r) * a_column]
        for c in unroll(C):
            store(x + (row + r) * x_row + c * W, sums[r * C + c])


@native(apart=True)
def solve_lower(a: pointer(T), x: pointer(T), batch: i64, size: i64, tiles: i64, a_batch: i64,
                a_row: i64, a_column: i64, x_batch: i64, x_row: i64, task: i64, tasks: i64,
                T: static, W: static, C: static, R: static, UNIT: static):  # fmt: skip
    """X of A X = B for lower triangular A [batch, size, size], in place of B: x has `tiles` times
    C * W columns that follow each other; other steps are told, and may be negative."""
    for unit in range(batch * tiles * task // tasks, batch * tiles * (task + 1) // tasks):
        matrix = a + unit // tiles * a_batch
        target = x + (unit // tiles * x_batch + unit % tiles * (C * W))
        whole = size // R * R
        for row in range(0, whole, R):
            solve_rows(matrix, target, row, a_row, a_column, x_row, T, W, C, R, UNIT)
        for row in range(whole, size):
            solve_rows(matrix, target, row, a_row, a_column, x_row, T, W, C, 1, UNIT)


# ---- elimination with pivots


@native
def largest_from(column, first, size):
    """Where the largest number of a column from `first` on lies: the first of equal ones, the
    first nan."""
    place = first
    best = absolute(column[first])
    for i in range(first + 1, size):
        value = absolute(column[i])
        if (value > best) | ((value != value) & (best == best)):
            best = value
            place = i
    return place


@native
def subtract_multiple(target, source, factor, first, size, T: static, W: static):
    """target -= factor * source, from `first` to `size`."""
    whole = first + (size - first) // W * W
    for i in range(first, whole, W):
        store(target + i, load(target + i, W) - splat(factor, W) * load(source + i, W))
    for i in range(whole, size):
        target[i] = target[i] - factor * source[i]


@native
def divide_from(column, head, first, size):
    """Numbers behind the pivot over it; a pivot of zero leaves them, which are zeros, alone."""
    if head != 0:
        for i in range(first, size):
            column[i] = column[i] / head


@native(apart=True)
def eliminate(columns: pointer(T), pivots: pointer(i32), batch: i64, height: i64, count: i64,
              apart: i64, start: i64, stop: i64, task: i64, tasks: i64,
              T: static, W: static):  # fmt: skip
    """Eliminate the columns from `start` to `stop` of matrices [batch, *, height], which lie as
    columns, `apart` from each other; row exchanges happen in these columns alone. Pivots
    [batch, count] count from one."""
    for m in range(batch * task // tasks, batch * (task + 1) // tasks):
        matrix = columns + m * apart
        for row in range(start, stop):
            column = matrix + row * height
            chosen = largest_from(column, row, height)
            pivots[m * count + row] = i32(chosen + 1)
            if chosen != row:
                for j in range(start, stop):
                    kept = matrix[j * height + row]
                    matrix[j * height + row] = matrix[j * height + chosen]
                    matrix[j * height + chosen] = kept
            divide_from(column, column[row], row + 1, height)
            for j in range(row + 1, stop):
                other = matrix + j * height
                subtract_multiple(other, column, other[row], row + 1, height, T, W)


@native(apart=True)
def exchange(columns: pointer(T), pivots: pointer(i32), width: i64, height: i64, start: i64,
             stop: i64, task: i64, tasks: i64, T: static):  # fmt: skip
    """Carry the row exchanges of the columns from `start` to `stop` to all others."""
    for j in range(width * task // tasks, width * (task + 1) // tasks):
        if (j < start) | (j >= stop):
            column = columns + j * height
            for row in range(start, stop):
                other = i64(pivots[row]) - 1
                kept = column[row]
                column[row] = column[other]
                column[other] = kept


# ---- Cholesky factors


@native
def factor_upper(work, size, pitch, W: static):
    """U with A = U^T U from the upper triangle of A, in its place; the order of the first minor
    that is not positive, or 0. What lies below the diagonal means nothing."""
    info = i64(0)
    for j in range(size):
        row = work + j * pitch
        head = row[j]
        if info == 0:
            if head > 0:
                info = 0
            else:
                info = j + 1
        root = splat(sqrt(head), W)
        for c in range(j // W * W, pitch, W):
            store(row + c, load(row + c, W) / root)
        for i in range(j + 1, size):
            factor = splat(row[i], W)
            below = work + i * pitch
            for c in range(i // W * W, pitch, W):
                store(below + c, load(below + c, W) - factor * load(row + c, W))
    return info


@native(apart=True)
def cholesky(a: pointer(T), out: pointer(T), info: pointer(i32), batch: i64, size: i64,
             a_batch: i64, a_row: i64, a_column: i64, task: i64, tasks: i64,
             T: static, W: static, ROOM: static):  # fmt: skip
    """out [batch, size, size]: L with A = L L^T, computed in float64, from the lower triangles of
    matrices of at most ROOM rows; info: the order of the first minor that is not positive."""
    work = stack(f64, ROOM * ROOM)
    pitch = (size + W - 1) // W * W
    zero_memory(work, size * pitch)
    for m in range(batch * task // tasks, batch * (task + 1) // tasks):
        source, target = a + m * a_batch, out + m * size * size
        for i in range(size):
            for j in range(i, size):
                work[i * pitch + j] = f64(source[j * a_row + i * a_column])
        info[m] = i32(factor_upper(work, size, pitch, W))
        for i in range(size):
            for j in range(i + 1):
                target[i * size + j] = T(work[j * pitch + i])
            for j in range(i + 1, size):
                target[i * size + j] = T(0)
