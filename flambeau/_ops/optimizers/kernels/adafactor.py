"""Steps of Adafactor: what it knows of a matrix of squared gradients are means of rows and columns.

A table has a row for each parameter, as in `optimizer`, and behind the arrays its shape: how many
matrices, their rows and columns. A vector, which keeps all its squares, is a matrix of one row
with the means of its columns. A task steps whole parameters: those whose first block is its.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.optimizers.kernels.steps import BLOCK, HEAD, lerp  # noqa: F401

NUMBERS = ("newest", "rate", "least", "least_scale", "threshold", "shrink")
NEWEST, RATE, LEAST, LEAST_SCALE, THRESHOLD, SHRINK = range(6)
PIECE = 4096  # of a row: so long partial sums may grow in single precision


@native
def step(table: pointer(i64), numbers: pointer(f64), scratch: pointer(T), row_length: i64,
         parameters: i64, room: i64, task: i64, tasks: i64, FACTORED: static, T: static,
         W: static):  # fmt: skip
    """One step of all parameters in the table; `scratch` has `room` elements for each task.

    FACTORED says whether they keep means of rows too.
    """
    blocks = table[parameters * row_length]
    begin = blocks * task // tasks
    end = blocks * (task + 1) // tasks
    SHAPE = HEAD + 4 if FACTORED else HEAD + 3
    for t in range(parameters):
        row = table + t * row_length
        if row[0] >= begin and row[0] < end:
            size = row[1]
            own = numbers + row[2] * len(NUMBERS)
            p, g = cast(pointer(T), row[HEAD]), cast(pointer(T), row[HEAD + 1])
            r, c = cast(pointer(T), row[HEAD + 2]), cast(pointer(T), row[SHAPE - 1])
            matrices, rows, columns = row[SHAPE], row[SHAPE + 1], row[SHAPE + 2]
            newest, least = T(own[NEWEST]), T(own[LEAST])
            scale = larger(sqrt(squares(p, size, W) / f64(size)), own[LEAST_SCALE]) * own[RATE]
            if FACTORED:
                for k in range(matrices):
                    means(g + k * rows * columns, r + k * rows, c + k * columns,
                          scratch + task * room, rows, columns, newest, W)  # fmt: skip
            else:
                keep_squares(g, c, size, newest, W)
            update = sqrt(updates(p, g, r, c, matrices, rows, columns, least, least, least,
                                  False, FACTORED, W) / f64(size))  # fmt: skip
            factor = -scale / larger(update / own[THRESHOLD], 1.0)
            updates(p, g, r, c, matrices, rows, columns, least, T(own[SHRINK]), T(factor), True,
                    FACTORED, W)  # fmt: skip


@native
def squares(x, size, W: static):
    """The sum of the squares of all elements, in double precision."""
    total = f64(0)
    for start in range(0, size, PIECE):
        count = smaller(size - start, PIECE)
        whole = count // W * W
        total += f64(squares_of_part(x + start, 0, whole, W))
        total += f64(squares_of_part(x + start, whole, count, 1))
    return total


@native
def squares_of_part(x, first, last, W: static):
    """The sum of squares from one element up to another."""
    sums = splat(x.element(0), W)
    for j in range(first, last, W):
        value = load(x + j, W)
        sums = fma(value, value, sums)
    return reduce_add(sums)


@native
def means(g, r, c, sums, rows, columns, newest, W: static):
    """Move the means of rows and of columns towards those of g²."""
    whole = columns // W * W
    zero_memory(sums, columns)
    for i in range(rows):
        x = g + i * columns
        total = add_squares(x, sums, 0, whole, W) + add_squares(x, sums, whole, columns, 1)
        r[i] = lerp(r[i], total / g.element(columns), newest)
    for first, last, WIDTH in ((0, whole, W), (whole, columns, 1)):
        for j in range(first, last, WIDTH):
            mean = load(sums + j, WIDTH) / g.element(rows)
            store(c + j, lerp(load(c + j, WIDTH), mean, newest))


@native
def add_squares(x, sums, first, last, W: static):
    """Add squares to the sums of columns; their sum."""
    total = splat(x.element(0), W)
    for j in range(first, last, W):
        square = load(x + j, W) * load(x + j, W)
        total += square
        store(sums + j, load(sums + j, W) + square)
    return reduce_add(total)


@native
def keep_squares(g, kept, size, newest, W: static):
    """Move what is kept of each element towards g²."""
    whole = size // W * W
    for first, last, WIDTH in ((0, whole, W), (whole, size, 1)):
        for j in range(first, last, WIDTH):
            value = load(g + j, WIDTH)
            store(kept + j, lerp(load(kept + j, WIDTH), value * value, newest))


@native
def updates(p, g, r, c, matrices, rows, columns, least, shrink, factor, APPLY: static,
            FACTORED: static, W: static):  # fmt: skip
    """The sum of u², where u is the gradient over the root of its mean square; with APPLY
    p becomes shrink·p + factor·u."""
    total = f64(0)
    for k in range(matrices):
        mean = maximum(mean_of(r + k * rows, rows), least) if FACTORED else g.element(1)
        for i in range(rows):
            of_row = r[k * rows + i] if FACTORED else g.element(1)
            for start in range(0, columns, PIECE):
                place = (k * rows + i) * columns + start
                count = smaller(columns - start, PIECE)
                whole = count // W * W
                for first, last, WIDTH in ((0, whole, W), (whole, count, 1)):
                    total += f64(updates_of_part(
                        p + place, g + place, c + k * columns + start, of_row, mean, first, last,
                        least * least, shrink, factor, APPLY, FACTORED, WIDTH))  # fmt: skip
    return total


@native
def updates_of_part(p, g, c, of_row, mean, first, last, floor, shrink, factor, APPLY: static,
                    FACTORED: static, W: static):  # fmt: skip
    """`updates` for a part of a row."""
    sums = splat(g.element(0), W)
    for j in range(first, last, W):
        of_column = load(c + j, W)
        square = of_row * of_column / mean if FACTORED else of_column
        u = load(g + j, W) * (1.0 / sqrt(maximum(square, floor)))
        if APPLY:
            store(p + j, fma(u, factor, load(p + j, W) * shrink))
        else:
            sums = fma(u, u, sums)
    return reduce_add(sums)


@native
def mean_of(x, count):
    """The mean, summed in double precision."""
    total = f64(0)
    for i in range(count):
        total += f64(x[i])
    return x.element(total / f64(count))
