"""Max and average pools over sliding windows, as sums over taps are in `depthwise`.

A band of rows of a plane lies in memory of the task's own, with its borders and split by the
remainder modulo the stride, so that every tap of W windows is one vector. `sizes` holds what it
holds there, with one output per channel.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.conv.kernels.depthwise import (
    BAND,
    CHANNELS,
    IMAGES,
    IN_X,
    IN_Y,
    IN_Z,
    OUT_X,
    OUT_Y,
    OUT_Z,
    PAD_X,
    PAD_Y,
    PAD_Z,
    PITCH,
    ROOM,
    ROWS,
    STEP_X,
    STEP_Y,
    STEP_Z,
    TAPS,
    fill_band,
    fill_memory,
    store_some,
)

NOWHERE = -(1 << 31)
"""The move of a maximum that was not found: all numbers of the window are minus infinity."""
LOWEST = -float("inf")


@native
def first_inside(start, dilation):
    """Where the first tap at or behind 0 of a window from `start` on lies, maybe behind the
    input."""
    return start if start >= 0 else (dilation - -start % dilation) % dilation


@native(outline=True)
def place_lowest(places, count, z, y, x, gaps, sizes):
    """Windows of minus infinity alone: their first element is the largest."""
    deep = first_inside(z * sizes[STEP_Z] - sizes[PAD_Z], gaps[0])
    down = first_inside(y * sizes[STEP_Y] - sizes[PAD_Y], gaps[1])
    for i in range(count):
        if places[i] < 0:
            right = first_inside((x + i) * sizes[STEP_X] - sizes[PAD_X], gaps[2])
            places[i] = (deep * sizes[IN_Y] + down) * sizes[IN_X] + right


@native
def max_tile(source, offsets, moves, row, out, places, z, y, x, rows, gaps, sizes,
             T: static, A: static, W: static, R: static, INDEXED: static):  # fmt: skip
    """The largest numbers of W windows in each of R rows, of which the first `rows` are stored.

    The first of equal numbers counts, the last of several nan. `moves` says how far each tap lies
    from the first one in the plane.
    """
    best = registers(vector(A, W), R, LOWEST)
    moved = registers(vector(i32, W), R, NOWHERE)
    for tap in range(sizes[TAPS]):
        here = source + offsets[tap]
        move = splat(i32(moves[tap]), W)
        for r in unroll(R):
            value = load(here + r * row, W)
            better = (value > best[r]) | (value != value)
            best[r] = select(better, value, best[r])
            if INDEXED:
                moved[r] = select(better, move, moved[r])
    count = sizes[OUT_X] - x
    corner_z = z * sizes[STEP_Z] - sizes[PAD_Z]
    corner_x = x * sizes[STEP_X] - sizes[PAD_X]
    for r in unroll(R):
        if r < rows:
            below = r * sizes[OUT_X]
            store_some(out + below, best[r], count, T, W)
            if INDEXED:
                corner_y = (y + r) * sizes[STEP_Y] - sizes[PAD_Y]
                corner = (corner_z * sizes[IN_Y] + corner_y) * sizes[IN_X] + corner_x
                lane = lanes(i64, W) * sizes[STEP_X] + corner
                found = moved[r] != NOWHERE
                place = select(found, lane + i64(moved[r]), splat(i64(-1), W))
                store_some(places + below, place, count, i64, W)
                if any_lane(found == False):  # noqa: E712
                    place_lowest(places + below, smaller(count, i64(W)), z, y + r, x, gaps, sizes)


@native
def max_plane(plane, out, places, band, start, stop, offsets, moves, gaps, sizes,
              T: static, A: static, W: static, R: static, INDEXED: static):  # fmt: skip
    """Output rows `start` to `stop` of a plane; `out` and `places` point at its first element."""
    run = sizes[STEP_X] * sizes[PITCH]
    fill_band(plane, band, sizes, start, A(LOWEST), A, W)
    for z in range(sizes[OUT_Z]):
        layer = band + z * sizes[STEP_Z] * sizes[ROWS] * run
        for y in range(start, stop, R):
            here = (z * sizes[OUT_Y] + y) * sizes[OUT_X]
            row = layer + (y - start) * sizes[STEP_Y] * run
            for x in range(0, sizes[OUT_X], W):
                max_tile(row + x, offsets, moves, sizes[STEP_Y] * run, out + (here + x),
                         places + (here + x), z, y, x, stop - y, gaps, sizes,
                         T, A, W, R, INDEXED)  # fmt: skip


@native
def max_pool(x: pointer(T), out: pointer(T), places: pointer(i64), work: pointer(A),
             offsets: pointer(i64), moves: pointer(i64), gaps: pointer(i64), sizes: pointer(i64),
             task: i64, tasks: i64,
             T: static, A: static, W: static, R: static, INDEXED: static):  # fmt: skip
    """The largest number of every window and, INDEXED, its place in its plane."""
    band = work + task * sizes[ROOM]
    fill_memory(band, sizes[ROOM], A(LOWEST), W)
    bands = (sizes[OUT_Y] + sizes[BAND] - 1) // sizes[BAND]
    units = sizes[IMAGES] * sizes[CHANNELS] * bands
    volume = sizes[OUT_Z] * sizes[OUT_Y] * sizes[OUT_X]
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        plane = unit // bands
        start = unit % bands * sizes[BAND]
        max_plane(x + plane * sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X], out + plane * volume,
                  places + plane * volume if INDEXED else places, band, start,
                  smaller(start + sizes[BAND], sizes[OUT_Y]), offsets, moves, gaps, sizes,
                  T, A, W, R, INDEXED)  # fmt: skip


@native
def scatter_plane(grad, places, out, sums, count, size, T: static, A: static, W: static):
    """Add `count` gradients where `places` says to a plane of `size` zeros.

    Places behind the plane are those of windows that hold none of its elements.
    """
    if T is A:
        fill_memory(out, size, T(0), W)
        for i in range(count):
            place = places[i]
            if place < size:
                out[place] = out[place] + grad[i]
    else:
        fill_memory(sums, size, A(0), W)
        for i in range(count):
            place = places[i]
            if place < size:
                sums[place] = sums[place] + A(grad[i])
        for i in range(size):
            out[i] = T(sums[i])


@native
def scatter_planes(grad: pointer(T), places: pointer(i64), out: pointer(T), work: pointer(A),
                   planes: i64, count: i64, size: i64, task: i64, tasks: i64,
                   T: static, A: static, W: static):  # fmt: skip
    """`out[plane, places[plane, i]]` is the sum of such `grad[plane, i]`."""
    for plane in range(planes * task // tasks, planes * (task + 1) // tasks):
        scatter_plane(grad + plane * count, places + plane * count, out + plane * size,
                      work + task * size, count, size, T, A, W)  # fmt: skip


@native
def max_pool_backward(x: pointer(T), grad: pointer(T), out: pointer(T), found: pointer(i64),
                      values: pointer(T), work: pointer(A), offsets: pointer(i64),
                      moves: pointer(i64), gaps: pointer(i64), sizes: pointer(i64),
                      task: i64, tasks: i64,
                      T: static, A: static, W: static, R: static):  # fmt: skip
    """Gradients put where the largest numbers of x lie, which are found again.

    `found` and `values` have room for one plane of the output for each task, `work` besides a band
    for one plane of the input.
    """
    volume = sizes[OUT_Z] * sizes[OUT_Y] * sizes[OUT_X]
    size = sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X]
    band = work + task * (sizes[ROOM] + size)
    fill_memory(band, sizes[ROOM], A(LOWEST), W)
    planes = sizes[IMAGES] * sizes[CHANNELS]
    for plane in range(planes * task // tasks, planes * (task + 1) // tasks):
        for start in range(0, sizes[OUT_Y], sizes[BAND]):
            max_plane(x + plane * size, values + task * volume, found + task * volume, band, start,
                      smaller(start + sizes[BAND], sizes[OUT_Y]), offsets, moves, gaps, sizes,
                      T, A, W, R, True)  # fmt: skip
        scatter_plane(grad + plane * volume, found + task * volume, out + plane * size,
                      band + sizes[ROOM], volume, size, T, A, W)  # fmt: skip


@native
def average_tile(source, offsets, row, out, counts, deep, y_counts, rows, count, sizes,
                 T: static, A: static, W: static, R: static):  # fmt: skip
    """The sums of W windows in each of R rows, divided by how many numbers they count."""
    sums = registers(vector(A, W), R)
    for tap in range(sizes[TAPS]):
        here = source + offsets[tap]
        for r in unroll(R):
            sums[r] = sums[r] + load(here + r * row, W)
    across = load(counts, W)
    for r in unroll(R):
        if r < rows:
            store_some(out + r * sizes[OUT_X], sums[r] / (across * (deep * y_counts[r])), count,
                       T, W)  # fmt: skip


@native
def average_pool(x: pointer(T), out: pointer(T), work: pointer(A), z_counts: pointer(A),
                 y_counts: pointer(A), x_counts: pointer(A), offsets: pointer(i64),
                 sizes: pointer(i64), task: i64, tasks: i64,
                 T: static, A: static, W: static, R: static):  # fmt: skip
    """The sum of every window over z_counts[z] * y_counts[y] * x_counts[x]."""
    band = work + task * sizes[ROOM]
    zero_memory(band, sizes[ROOM])
    bands = (sizes[OUT_Y] + sizes[BAND] - 1) // sizes[BAND]
    units = sizes[IMAGES] * sizes[CHANNELS] * bands
    run = sizes[STEP_X] * sizes[PITCH]
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        plane = unit // bands
        start = unit % bands * sizes[BAND]
        stop = smaller(start + sizes[BAND], sizes[OUT_Y])
        fill_band(x + plane * sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X], band, sizes, start, A(0),
                  A, W)  # fmt: skip
        for z in range(sizes[OUT_Z]):
            layer = band + z * sizes[STEP_Z] * sizes[ROWS] * run
            target = out + (plane * sizes[OUT_Z] + z) * sizes[OUT_Y] * sizes[OUT_X]
            for y in range(start, stop, R):
                row = layer + (y - start) * sizes[STEP_Y] * run
                for i in range(0, sizes[OUT_X], W):
                    average_tile(row + i, offsets, sizes[STEP_Y] * run,
                                 target + (y * sizes[OUT_X] + i), x_counts + i, z_counts[z],
                                 y_counts + y, stop - y, sizes[OUT_X] - i, sizes,
                                 T, A, W, R)  # fmt: skip
