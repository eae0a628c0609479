"""Convolutions with one input channel per group: direct sums over the kernel's taps.

A band of rows of a plane is laid out in memory of the task's own: with its padding, and split along
x into one run per remainder modulo the stride, so that every tap of every output row reads numbers
that follow each other. `offsets[t]` says how far tap t lies from the first one there. With a gap
between the numbers of a row (and between rows) the same sums are the gradient of a strided
convolution's input.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native

# What `sizes` holds. PITCH: one run of a row; ROWS: rows of a band; ROOM: a task's memory.
SIZES = (
    "IMAGES", "CHANNELS", "MULTIPLIER", "IN_Z", "IN_Y", "IN_X", "OUT_Z", "OUT_Y", "OUT_X",
    "PAD_Z", "PAD_Y", "PAD_X", "STEP_Z", "STEP_Y", "STEP_X", "GAP_Z", "GAP_Y", "GAP_X",
    "PADDED_Z", "PADDED_X", "BAND", "ROWS", "PITCH", "ROOM", "TAPS",
)  # fmt: skip
(
    IMAGES, CHANNELS, MULTIPLIER, IN_Z, IN_Y, IN_X, OUT_Z, OUT_Y, OUT_X,
    PAD_Z, PAD_Y, PAD_X, STEP_Z, STEP_Y, STEP_X, GAP_Z, GAP_Y, GAP_X,
    PADDED_Z, PADDED_X, BAND, ROWS, PITCH, ROOM, TAPS,
) = range(len(SIZES))  # fmt: skip


def evens(width):
    """The lanes of every second of 2 * width numbers."""
    return tuple(range(0, 2 * width, 2))


def with_gaps(width):
    """The lanes of width numbers, each followed by the first lane of a second vector."""
    return tuple(lane // 2 if lane % 2 == 0 else width for lane in range(2 * width))


@native
def copy_spread(source, target, count, step, gap, A: static, W: static):
    """`target[i * gap] = source[i * step]`; one of step and gap is 1. With gap 2 what lies between
    becomes 0."""
    i = 0
    if (step == 1) & (gap == 1):
        while i + W <= count:
            store(target + i, A(load(source + i, W)))
            i += W
    elif step == 2:
        # strictly: the second half of the last pair is not needed and may not exist
        while i + W < count:
            pairs = A(load(source + 2 * i, 2 * W))
            store(target + i, shuffle(pairs, None, evens(W)))
            i += W
    elif gap == 2:
        nothing = splat(A(0), W)
        while i + W < count:
            store(target + 2 * i, shuffle(A(load(source + i, W)), nothing, with_gaps(W)))
            i += W
    while i < count:
        target[i * gap] = A(source[i * step])
        i += 1


@native
def run_bounds(run, sizes):
    """Of the numbers of a row that belong to a run: the first one, its place there, their count."""
    pad = sizes[PAD_X]
    step = sizes[STEP_X]
    gap = sizes[GAP_X]
    least = pad if pad > 0 else i64(0)
    first = least + (run - least % step + step) % step - pad
    if gap > 1:
        first = (gap - 1 - pad) // gap if pad < 0 else i64(0)
    place = (pad + first * gap) // step
    room = (sizes[PADDED_X] - run + step - 1) // step
    count = smaller((sizes[IN_X] - first + step - 1) // step, (room - place + gap - 1) // gap)
    return first, place, count


@native
def source_place(padded, pad, gap, size):
    """Which number of the input lies at a place of the padded one, and whether one does."""
    place = padded - pad
    fits = place >= 0
    if gap > 1:
        fits = fits & (place % gap == 0)
        place = place // gap
    return place, fits & (place < size)


@native
def fill_memory(target, count, value, W: static):
    """Set `count` numbers."""
    i = 0
    while i + W <= count:
        store(target + i, splat(value, W))
        i += W
    while i < count:
        target[i] = value
        i += 1


@native(outline=True)
def fill_band(source, target, sizes, start, border, A: static, W: static):
    """The rows of a plane that the output rows from `start` on need; left and right of what is
    copied lies `border` already."""
    step = sizes[STEP_X]
    gap = sizes[GAP_X]
    pitch = sizes[PITCH]
    top = sizes[PAD_Y] - start * sizes[STEP_Y]
    for run in range(step):
        first, place, count = run_bounds(run, sizes)
        for z in range(sizes[PADDED_Z]):
            deep, z_fits = source_place(z, sizes[PAD_Z], sizes[GAP_Z], sizes[IN_Z])
            for y in range(sizes[ROWS]):
                down, y_fits = source_place(y, top, sizes[GAP_Y], sizes[IN_Y])
                row = target + ((z * sizes[ROWS] + y) * step + run) * pitch
                if z_fits & y_fits:
                    here = source + ((deep * sizes[IN_Y] + down) * sizes[IN_X] + first)
                    copy_spread(here, row + place, count, step, gap, A, W)
                else:
                    fill_memory(row, pitch, border, W)


@native
def store_some(target, value, count, T: static, W: static):
    """The first `count` lanes (at least one), converted to T."""
    if count >= W:
        store(target, T(value))
    elif T.bits >= 32:
        store(target, T(value), mask=lanes(i32, W) < i32(count))
    else:
        kept = stack(T, W)
        store(kept, T(value))
        for i in range(count):
            target[i] = kept[i]


@native
def load_some(source, count, T: static, A: static, W: static):
    """The first `count` of W numbers as A; the other lanes are 0 and their memory is not read."""
    if T.bits >= 32:
        return A(load(source, W, lanes(i32, W) < i32(count)))
    else:
        kept = stack(T, W)
        store(kept, splat(T(0), W))
        for i in range(count):
            kept[i] = source[i]
        return A(load(kept, W))


@native
def finish(value, residual, added, floor, ceiling, target, count, T: static, A: static, W: static):
    """Write the first `count` lanes of a convolution's sums.

    Plus the residual if it is `added`, not below the floor, not above the ceiling; nan stays nan.
    """
    done = registers(value.type, 1, value)
    if added != 0:
        if count >= W:
            done[0] = done[0] + A(load(residual, W))
        else:
            done[0] = done[0] + load_some(residual, count, T, A, W)
    # a nan is neither smaller nor larger
    done[0] = larger(splat(floor, W), done[0])
    done[0] = smaller(splat(ceiling, W), done[0])
    store_some(target, done[0], count, T, W)


@native
def tile(source, weight, offsets, taps, row, bias, residual, added, floor, ceiling, target, pitch,
         rows, cols, T: static, A: static, W: static, R: static, V: static):  # fmt: skip
    """R rows of V vectors of the output; the first `rows` and `cols` of them are stored."""
    sums = registers(vector(A, W), R * V, bias)
    for tap in range(taps):
        here = source + offsets[tap]
        factor = splat(weight[tap], W)
        for r in unroll(R):
            for v in unroll(V):
                sums[r * V + v] = fma(load(here + r * row + v * W, W), factor, sums[r * V + v])
    for r in unroll(R):
        if r < rows:
            for v in unroll(V):
                if v * W < cols:
                    place = r * pitch + v * W
                    finish(sums[r * V + v], residual + place, added, floor, ceiling,
                           target + place, cols - v * W, T, A, W)  # fmt: skip


@native
def depthwise(x: pointer(T), weight: pointer(A), bias: pointer(A), out: pointer(T),
              work: pointer(A), offsets: pointer(i64), sizes: pointer(i64), residual: pointer(T),
              added: i64, floor: A, ceiling: A, task: i64, tasks: i64,
              T: static, A: static, W: static, R: static, V: static):  # fmt: skip
    """`out[n, c * m + j]` from plane `x[n, c]` and `weight[c * m + j, taps]`, finished."""
    band = work + task * sizes[ROOM]
    zero_memory(band, sizes[ROOM])
    bands = (sizes[OUT_Y] + sizes[BAND] - 1) // sizes[BAND]
    units = sizes[IMAGES] * sizes[CHANNELS] * bands
    plane_in = sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X]
    area = sizes[OUT_Y] * sizes[OUT_X]
    run = sizes[STEP_X] * sizes[PITCH]
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        plane = unit // bands
        start = unit % bands * sizes[BAND]
        stop = smaller(start + sizes[BAND], sizes[OUT_Y])
        fill_band(x + plane * plane_in, band, sizes, start, A(0), A, W)
        for j in range(sizes[MULTIPLIER]):
            result = plane * sizes[MULTIPLIER] + j
            channel = plane % sizes[CHANNELS] * sizes[MULTIPLIER] + j
            for z in range(sizes[OUT_Z]):
                layer = band + z * sizes[STEP_Z] * sizes[ROWS] * run
                for y in range(start, stop, R):
                    for i in range(0, sizes[OUT_X], V * W):
                        place = (result * sizes[OUT_Z] + z) * area + y * sizes[OUT_X] + i
                        tile(layer + (y - start) * sizes[STEP_Y] * run + i,
                             weight + channel * sizes[TAPS], offsets, sizes[TAPS],
                             sizes[STEP_Y] * run, bias[channel], residual + place, added, floor,
                             ceiling, out + place, sizes[OUT_X], stop - y, sizes[OUT_X] - i,
                             T, A, W, R, V)  # fmt: skip


@native
def tap_sums(grad, source, offsets, totals, rows, cols, pitch, row, taps,
             T: static, A: static, W: static, K: static):  # fmt: skip
    """Add to `totals` the products of a plane of gradients with K taps of the band."""
    sums = registers(vector(A, W), K)
    places = registers(i64, K)
    for k in unroll(K):  # those that are not there repeat the last one
        places[k] = offsets[smaller(i64(k), taps - 1)]
    for y in range(rows):
        here = grad + y * pitch
        there = source + y * row
        i = 0
        while i + W <= cols:
            value = A(load(here + i, W))
            for k in unroll(K):
                sums[k] = fma(value, load(there + places[k] + i, W), sums[k])
            i += W
        if i < cols:
            # both in part: what lies behind a row may be nan or infinite
            value = load_some(here + i, cols - i, T, A, W)
            for k in unroll(K):
                item = load_some(there + places[k] + i, cols - i, A, A, W)
                sums[k] = fma(value, item, sums[k])
    for k in unroll(K):
        if k < taps:
            totals[k] += f64(reduce_add(sums[k]))


@native
def depthwise_weight(x: pointer(T), grad: pointer(T), out: pointer(T), work: pointer(A),
                     totals: pointer(f64), offsets: pointer(i64), sizes: pointer(i64),
                     task: i64, tasks: i64,
                     T: static, A: static, W: static, K: static):  # fmt: skip
    """The gradient `out[c * m + j, taps]` of the weight; K taps are summed at a time."""
    band = work + task * sizes[ROOM]
    zero_memory(band, sizes[ROOM])
    channels = sizes[CHANNELS]
    taps = sizes[TAPS]
    factors = sizes[MULTIPLIER]
    area = sizes[OUT_Y] * sizes[OUT_X]
    run = sizes[STEP_X] * sizes[PITCH]
    mine = totals + task * factors * taps
    for channel in range(channels * task // tasks, channels * (task + 1) // tasks):
        zero_memory(mine, factors * taps)
        for image in range(sizes[IMAGES]):
            plane = image * channels + channel
            for start in range(0, sizes[OUT_Y], sizes[BAND]):
                stop = smaller(start + sizes[BAND], sizes[OUT_Y])
                fill_band(x + plane * sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X], band, sizes,
                          start, A(0), A, W)  # fmt: skip
                for j in range(factors):
                    for z in range(sizes[OUT_Z]):
                        here = ((plane * factors + j) * sizes[OUT_Z] + z) * area
                        for tap in range(0, taps, K):
                            tap_sums(grad + here + start * sizes[OUT_X],
                                     band + z * sizes[STEP_Z] * sizes[ROWS] * run, offsets + tap,
                                     mine + j * taps + tap, stop - start, sizes[OUT_X],
                                     sizes[OUT_X], sizes[STEP_Y] * run, taps - tap,
                                     T, A, W, K)  # fmt: skip
        for i in range(factors * taps):
            out[channel * factors * taps + i] = T(mine[i])


@native
def channel_sums(grad: pointer(T), out: pointer(T), images: i64, channels: i64, plane: i64,
                 task: i64, tasks: i64, T: static, A: static, W: static):  # fmt: skip
    """The gradient of a bias: `out[c]` is the sum of all planes `grad[n, c]`."""
    for channel in range(channels * task // tasks, channels * (task + 1) // tasks):
        total = f64(0)
        for image in range(images):
            here = grad + (image * channels + channel) * plane
            sums = registers(vector(A, W), 4)
            for k in unroll(4):
                sums[k] = splat(A(0), W)
            i = 0
            while i + 4 * W <= plane:
                for k in unroll(4):
                    sums[k] = sums[k] + A(load(here + i + k * W, W))
                i += 4 * W
            both = (sums[0] + sums[1]) + (sums[2] + sums[3])
            total += f64(reduce_add(both))
            while i < plane:
                total += f64(here[i])
                i += 1
        out[channel] = T(total)
