"""Reading and writing by position: x [outer, size, inner] at positions of its dim 1.

Rows: one position for all of `inner`. Elements: a position for each. What is written is split over
tasks by places, never by values: each place is written by one task, in the order of the values, so
that sums have the same bits however many threads there are.
"""

from __future__ import annotations

from flambeau._compiler.language import (
    copy_memory,
    i64,
    load,
    maximum,
    minimum,
    pointer,
    reduce_or,
    registers,
    select,
    splat,
    static,
    store,
    unroll,
    vector,
)
from flambeau._compiler.native import native
from flambeau._ops.conv.kernels.depthwise import load_some, store_some


@native
def place_of(position, size, wrap):
    """A position as an i64; negative ones count from the end where `wrap` is 1."""
    place = i64(position)
    return place + select(place < 0, size * wrap, i64(0))


@native
def signs_of(index, first, last, size, low, W: static):
    """Below 0 where a position from `first` to `last` is not one of -low to size - 1: for such a
    one the sign of `place + low` or of `size - 1 - place` is set."""
    whole = first + (last - first) // W * W
    signs = splat(i64(0), W)
    for i in range(first, whole, W):
        places = i64(load(index + i, W))
        signs = signs | (places + low) | ((size - 1) - places)
    sign = reduce_or(signs)
    for i in range(whole, last):
        sign = sign | (i64(index[i]) + low) | ((size - 1) - i64(index[i]))
    return sign


@native
def read_line(x, index, out, size, apart, step, first, last, wrap):
    """out[j] = x[index[j] * apart + j * step], for positions that have been checked: the fewer
    instructions an element takes, the more of them wait for memory at a time."""
    if wrap != 0:
        for j in range(first, last):
            out[j] = x[place_of(index[j], size, wrap) * apart + j * step]
    elif apart == 1:
        for j in range(first, last):
            out[j] = x[i64(index[j]) + j * step]
    else:
        for j in range(first, last):
            out[j] = x[i64(index[j]) * apart + j * step]


@native(apart=True)
def read_rows(x: pointer(T), index: pointer(I), out: pointer(T), bad: pointer(i64), outer: i64,
              size: i64, inner: i64, count: i64, wrap: i64, parts: i64, task: i64, tasks: i64,
              T: static, I: static, V: static):  # fmt: skip
    """out [outer, count, inner] from index [count]; `bad[task]`: whether a position is none.
    Tasks are `parts` parts of `outer` times parts of the index."""
    wrong = i64(0)
    bands = tasks // parts
    first, last = count * (task // parts) // bands, count * (task // parts + 1) // bands
    if inner == 1:
        wrong = i64(signs_of(index, first, last, size, size * wrap, V) < 0)
    for o in range(outer * (task % parts) // parts, outer * (task % parts + 1) // parts):
        if inner == 1:
            if wrong == 0:
                read_line(x + o * size, index, out + o * count, size, i64(1), i64(0), first, last,
                          wrap)  # fmt: skip
        else:
            for j in range(first, last):
                place = place_of(index[j], size, wrap)
                if (place < 0) | (place >= size):
                    wrong = 1
                else:
                    target = out + (o * count + j) * inner
                    copy_memory(target, x + (o * size + place) * inner, inner)
    bad[task] = wrong


@native(apart=True)
def read_elements(x: pointer(T), index: pointer(I), out: pointer(T), bad: pointer(i64), outer: i64,
                  size: i64, inner: i64, count: i64, parts: i64, task: i64, tasks: i64,
                  T: static, I: static, V: static):  # fmt: skip
    """out from index, both [outer, count, inner]; tasks as in `read_rows`."""
    wrong = i64(0)
    bands = tasks // parts
    first, last = count * (task // parts) // bands, count * (task // parts + 1) // bands
    for o in range(outer * (task % parts) // parts, outer * (task % parts + 1) // parts):
        line = x + o * size * inner
        if inner == 1:
            start = o * count
            if signs_of(index + start, first, last, size, i64(0), V) < 0:
                wrong = 1
            else:
                read_line(line, index + start, out + start, size, i64(1), i64(0), first, last,
                          i64(0))  # fmt: skip
        else:
            for row in range(o * count + first, o * count + last):
                start = row * inner
                if signs_of(index + start, i64(0), inner, size, i64(0), V) < 0:
                    wrong = 1
                else:
                    read_line(line, index + start, out + start, size, inner, i64(1), i64(0), inner,
                              i64(0))  # fmt: skip
    bad[task] = wrong


@native(apart=True)
def check_places(index: pointer(I), bad: pointer(i64), n: i64, size: i64, task: i64, tasks: i64,
                 I: static, V: static):  # fmt: skip
    """`bad[task]`: below 0 where a position is not one of 0 to size - 1."""
    bad[task] = signs_of(index, n * task // tasks, n * (task + 1) // tasks, size, i64(0), V)


@native
def refused(index, n, size, bad, tasks, V: static):
    """Below 0, in `bad` too, where a position is out of range. What several tasks write has been
    checked before: see `check_places`."""
    sign = i64(0)
    if tasks == 1:
        sign = signs_of(index, 0, n, size, i64(0), V)
        bad[0] = sign
    return sign


@native
def combined(old, new, OP: static):
    """What a place holds after a value has met it."""
    if OP == "add":
        return old + new
    if OP == "mul":
        return old * new
    if OP == "max":
        return maximum(old, new)
    if OP == "min":
        return minimum(old, new)
    return new


@native
def combine_row(target, source, n, W: static, OP: static):
    """A row of values meets a row of places."""
    whole = n // W * W
    for i in range(0, whole, W):
        store(target + i, combined(load(target + i, W), load(source + i, W), OP))
    for i in range(whole, n):
        target[i] = combined(target[i], source[i], OP)


@native(apart=True)
def write_rows(x: pointer(T), index: pointer(I), source: pointer(T), outer: i64, size: i64,
               inner: i64, count: i64, skip: i64, columns: i64, bad: pointer(i64), task: i64,
               tasks: i64, T: static, I: static, V: static, W: static, OP: static):  # fmt: skip
    """Rows of source [outer, count, inner] meet those of x at index [count], but for the position
    `skip`. Tasks are `columns` parts of `inner` times parts of the places."""
    if refused(index, count, size, bad, tasks, V) < 0:
        outer = 0
    bands = tasks // columns
    left = inner * (task % columns) // columns
    right = inner * (task % columns + 1) // columns
    low = size * (task // columns) // bands
    high = size * (task // columns + 1) // bands
    for o in range(outer):
        for j in range(count):
            place = i64(index[j])
            if (place >= low) & (place < high) & (place != skip):
                target = x + (o * size + place) * inner
                row = source + (o * count + j) * inner
                combine_row(target + left, row + left, right - left, W, OP)


@native(apart=True)
def write_singles(x: pointer(T), index: pointer(I), source: pointer(T), outer: i64, size: i64,
                  count: i64, rows: i64, step: i64, skip: i64, bad: pointer(i64), task: i64,
                  tasks: i64, T: static, I: static, V: static, OP: static):  # fmt: skip
    """Values of source [outer, count] (`step` 1; one number for 0) meet those of x [outer, size] at
    index [outer, count] (`rows` 1; [count] for 0), but for the position `skip`. One row is the work
    of one task: telling whose turn a place is would take as long as writing it."""
    if refused(index, count + rows * (outer - 1) * count, size, bad, tasks, V) < 0:
        outer = 0
    for o in range(outer * task // tasks, outer * (task + 1) // tasks):
        line = x + o * size
        places = index + o * rows * count
        values = source + o * count * step
        for j in range(count):
            place = i64(places[j])
            if place != skip:
                line[place] = combined(line[place], values[j * step], OP)


@native(apart=True)
def write_elements(x: pointer(T), index: pointer(I), source: pointer(T), outer: i64, size: i64,
                   inner: i64, count: i64, step: i64, columns: i64, bad: pointer(i64), task: i64,
                   tasks: i64, T: static, I: static, V: static, OP: static):  # fmt: skip
    """Values of source (`step` 1; one number for 0) meet those of x at index, both
    [outer, count, inner]. Tasks are parts of `outer` times `columns` parts of `inner`."""
    if refused(index, outer * count * inner, size, bad, tasks, V) < 0:
        outer = 0
    parts, part, column = tasks // columns, task // columns, task % columns
    left, right = inner * column // columns, inner * (column + 1) // columns
    for o in range(outer * part // parts, outer * (part + 1) // parts):
        for j in range(count):
            row = (o * count + j) * inner
            for i in range(left, right):
                target = (o * size + i64(index[row + i])) * inner + i
                x[target] = combined(x[target], source[(row + i) * step], OP)


# ---- bags of rows


@native
def bag_sums(weight, index, samples, out, first, last, width, column, skip, size,
             A: static, T: static, W: static, R: static, MEAN: static,
             WEIGHTED: static):  # fmt: skip
    """The sums (means) of the rows from `first` to `last`, of columns that R vectors hold."""
    sums = registers(vector(A, W), R, -0.0)
    for i in range(first, last):
        place = i64(index[i])
        if place != skip:
            row = weight + place * width + column
            for r in unroll(R):
                value = load_part(row + r * W, width - column - r * W, T, A, W, R)
                if WEIGHTED:
                    value = value * samples[i]
                sums[r] = sums[r] + value
    for r in unroll(R):
        found = sums[r]
        if size == 0:
            found = splat(A(0), W)
        if MEAN:
            if size != 0:
                found = found / A(size)
        store_some(out + r * W, found, width - column - r * W, T, W)


@native
def load_part(source, left, T: static, A: static, W: static, R: static):
    """W numbers of a row; of one vector alone (R 1) perhaps only the first `left` of them."""
    if R > 1:
        return A(load(source, W))
    else:
        if left >= W:
            value = A(load(source, W))
        else:
            value = load_some(source, left, T, A, W)
        return value


@native
def bag_maxima(weight, index, out, positions, first, last, width, column, skip,
               A: static, T: static, I: static, W: static):  # fmt: skip
    """The largest numbers of the rows from `first` to `last` in W columns, and the position of the
    row that each is of: the first of equal ones, the first nan. A bag without rows has zeros."""
    left = width - column
    best = splat(A(0), W)
    found = splat(I(0), W)
    begun = i64(0)
    for i in range(first, last):
        place = i64(index[i])
        if place != skip:
            value = load_part(weight + place * width + column, left, T, A, W, 1)
            better = (value > best) | ((value != value) & (best == best)) | (begun == 0)
            best = select(better, value, best)
            found = select(better, splat(I(place), W), found)
            begun = 1
    store_some(out, best, left, T, W)
    store_some(positions, found, left, I, W)


@native
def mark_bag(index, bags, first, last, bag, skip, I: static):
    """Write the bag of each position from `first` to `last`; how many of them are not `skip`."""
    size = i64(0)
    for i in range(first, last):
        bags[i] = I(bag)
        size += i64(i64(index[i]) != skip)
    return size


@native(apart=True)
def reduce_bags(weight: pointer(T), index: pointer(I), starts: pointer(i64), samples: pointer(A),
                out: pointer(T), bags: pointer(I), sizes: pointer(I), positions: pointer(I),
                count: i64, width: i64, skip: i64, task: i64, tasks: i64,
                T: static, A: static, I: static, W: static, R: static, MODE: static,
                WEIGHTED: static):  # fmt: skip
    """out [count, width]: sums, means or maxima of the rows of weight [*, width] whose positions
    are index[starts[bag]:starts[bag + 1]], but for the position `skip`."""
    for bag in range(count * task // tasks, count * (task + 1) // tasks):
        first, last = starts[bag], starts[bag + 1]
        size = mark_bag(index, bags, first, last, bag, skip, I)
        sizes[bag] = I(size)
        whole = width // (R * W) * (R * W)
        here = out + bag * width
        if MODE == "max":
            for column in range(0, width, W):
                bag_maxima(weight, index, here + column, positions + bag * width + column,
                           first, last, width, column, skip, A, T, I, W)  # fmt: skip
        else:
            for column in range(0, whole, R * W):
                bag_sums(weight, index, samples, here + column, first, last, width, column, skip,
                         size, A, T, W, R, MODE == "mean", WEIGHTED)  # fmt: skip
            for column in range(whole, width, W):
                bag_sums(weight, index, samples, here + column, first, last, width, column, skip,
                         size, A, T, W, 1, MODE == "mean", WEIGHTED)  # fmt: skip
