"""Max pools over windows that `bounds` says one by one: adaptive and fractional ones."""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.conv.kernels.depthwise import load_some

LOWEST = -float("inf")


@native
def column_maxima(plane, values, found, z, z_stop, y, y_stop, size_y, size_x,
                  T: static, A: static, W: static):  # fmt: skip
    """The largest number of each column of some rows of a plane, and which row it is in.

    The first of equal numbers counts, the last of several nan.
    """
    x = i64(0)
    while x < size_x:
        best = registers(vector(A, W), 1, LOWEST)
        where = registers(vector(i32, W), 1, i32(z * size_y + y))
        for layer in range(z, z_stop):
            for line in range(y, y_stop):
                row = layer * size_y + line
                here = plane + (row * size_x + x)
                value = registers(vector(A, W), 1)
                if size_x >= W:
                    value[0] = A(load(here, W))
                else:
                    value[0] = load_some(here, size_x, T, A, W)
                better = (value[0] > best[0]) | (value[0] != value[0])
                best[0] = select(better, value[0], best[0])
                where[0] = select(better, splat(i32(row), W), where[0])
        store(values + x, best[0])
        store(found + x, where[0])
        # The last vector ends with the row: some of its columns have been looked at before.
        x = larger(size_x - W, i64(0)) if (x + W < size_x) & (x + 2 * W > size_x) else x + W


@native
def largest_column(values, found, start, stop):
    """The largest of some columns, its row and its place in there."""
    best = values[start]
    row = found[start]
    at = start
    for x in range(start + 1, stop):
        value = values[x]
        line = found[x]
        earlier = (value > best) | ((value == best) & (line < row))
        later = (value != value) & ((best == best) | (line >= row))
        better = earlier | later
        best = select(better, value, best)
        row = select(better, line, row)
        at = select(better, x, at)
    return best, row, at


@native
def segment_max(x: pointer(T), out: pointer(T), places: pointer(i64), values: pointer(A),
                found: pointer(i32), bounds: pointer(i64), planes: i64, step: i64, size_z: i64,
                size_y: i64, size_x: i64, out_z: i64, out_y: i64, out_x: i64, room: i64,
                task: i64, tasks: i64, T: static, A: static, W: static):  # fmt: skip
    """The largest number of every window and its place in its plane.

    `bounds` has the starts and the stops of windows along z, y and x, `step` numbers for a plane,
    or 0 if they are those of all.
    """
    for plane in range(planes * task // tasks, planes * (task + 1) // tasks):
        source = x + plane * size_z * size_y * size_x
        first = plane * out_z * out_y * out_x
        deep = bounds + plane * step
        down = deep + 2 * out_z
        right = down + 2 * out_y
        for z in range(out_z):
            for y in range(out_y):
                column_maxima(source, values + task * room, found + task * room, deep[z],
                              deep[out_z + z], down[y], down[out_y + y], size_y, size_x,
                              T, A, W)  # fmt: skip
                for i in range(out_x):
                    best, row, at = largest_column(values + task * room, found + task * room,
                                                   right[i], right[out_x + i])  # fmt: skip
                    target = first + (z * out_y + y) * out_x + i
                    out[target] = T(best)
                    places[target] = i64(row) * size_x + at
