"""Dense convolutions with the channels of a pixel side by side: no columns are gathered.

A band of the input's rows is laid out in memory of the task's own, with its padding and as
`[row, x, channel]`. There the taps of a kernel's row, with all their channels, follow each other in
one run, which starts at another place for every window but has the same length; a tile multiplies
the runs of MR windows with a panel of packed weights `[run, number of the run, output]`, whose
outputs lie along its vectors. The sums of a band are turned back into planes of outputs when they
get their bias, a residual and an activation. (Windows that are read where they lie: M. Dukhan, The
Indirect Convolution Algorithm, 2019.)
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.conv.kernels.dense import take_slot
from flambeau._ops.conv.kernels.depthwise import fill_memory, finish
from flambeau._ops.products.kernels.gemm import PANEL_STEPS
from flambeau._ops.products.kernels.packing import transpose_block

# What `sizes` holds. CHANNELS and OUTPUTS are those of a group. A band has up to BAND rows of
# windows; laid out it has TAPS_Z planes of LINES rows of WIDE pixels, for each of JOINED images
# that are computed together. RUNS runs have LENGTH numbers each; PARTS parts of them are summed one
# after the other. A band's outputs are split into SHARES. Of the DEPTH rows of a panel of weights,
# those of the runs are read. An image of the output has OUT_PLANE numbers for each output; the
# first window's is at OUT_START, others are MOVE_Z, MOVE_Y and MOVE_X apart.
SIZES = (
    "IMAGES", "GROUPS", "CHANNELS", "IN_Z", "IN_Y", "IN_X", "OUT_Z", "OUT_Y", "OUT_X",
    "PAD_Z", "PAD_Y", "PAD_X", "STEP_Z", "STEP_Y", "GAP_Z", "TAPS_Z", "LINES", "WIDE", "OUTPUTS",
    "BAND", "BANDS", "SHARES", "JOINED", "RUNS", "LENGTH", "PARTS", "DEPTH", "OUT_PLANE",
    "OUT_START", "MOVE_Z", "MOVE_Y", "MOVE_X", "ROOM_PIXELS", "ROOM",
)  # fmt: skip
(
    IMAGES, GROUPS, CHANNELS, IN_Z, IN_Y, IN_X, OUT_Z, OUT_Y, OUT_X,
    PAD_Z, PAD_Y, PAD_X, STEP_Z, STEP_Y, GAP_Z, TAPS_Z, LINES, WIDE, OUTPUTS,
    BAND, BANDS, SHARES, JOINED, RUNS, LENGTH, PARTS, DEPTH, OUT_PLANE,
    OUT_START, MOVE_Z, MOVE_Y, MOVE_X, ROOM_PIXELS, ROOM,
) = range(len(SIZES))  # fmt: skip


# ---- the input: planes to pixels


@native
def spread_row(source, plane, count, channels, left, target, W: static):
    """`target[x * channels + c] = source[c * plane + x]` for x < count; `left` numbers may be read.

    Less than W pixels behind the last one are overwritten.
    """
    for c in range(0, channels // W * W, W):
        for x in range(0, count, W):
            here = c * plane + x
            if here + (W - 1) * plane + W <= left:
                transpose_block(source + here, plane, target + (x * channels + c), channels, W, W)
            else:
                for i in range(W):
                    for k in range(smaller(count - x, i64(W))):
                        target[(x + k) * channels + c + i] = source[here + i * plane + k]
    for c in range(channels // W * W, channels):
        for x in range(count):
            target[x * channels + c] = source[c * plane + x]


@native(outline=True)
def fill_pixels(source, left, target, sizes, z, first, W: static):
    """Lay out what the windows of rows from `first` on of plane z read.

    `source` are a group's planes of an image, behind which `left` numbers may be read.
    """
    T = target.type.element
    channels = sizes[CHANNELS]
    area = sizes[IN_Y] * sizes[IN_X]
    pitch = sizes[WIDE] * channels
    before = smaller(sizes[PAD_X], sizes[WIDE])
    kept = smaller(sizes[IN_X], sizes[WIDE] - before)
    for tap in range(sizes[TAPS_Z]):
        deep = z * sizes[STEP_Z] + tap * sizes[GAP_Z] - sizes[PAD_Z]
        for line in range(sizes[LINES]):
            down = first * sizes[STEP_Y] + line - sizes[PAD_Y]
            row = target + (tap * sizes[LINES] + line) * pitch
            inside = (deep >= 0) & (deep < sizes[IN_Z]) & (down >= 0) & (down < sizes[IN_Y])
            if inside:
                place = deep * area + down * sizes[IN_X]
                fill_memory(row, before * channels, T(0), W)
                spread_row(source + place, sizes[IN_Z] * area, kept, channels, left - place,
                           row + before * channels, W)  # fmt: skip
                fill_memory(row + (before + kept) * channels,
                            (sizes[WIDE] - before - kept) * channels, T(0), W)  # fmt: skip
            else:
                fill_memory(row, pitch, T(0), W)


# ---- the sums


@native
def pixel_tile(source, places, runs, first, last, length, weight, sums, add,
               MR: static, NV: static, W: static):  # fmt: skip
    """`sums[i, j]` of MR windows and NV * W outputs over runs `first` to `last`.

    Window i reads `length` numbers from `source + places[i] + runs[r]` on. Each sum is one chain of
    fma in the order of the runs (added to what is there with `add`).
    """
    NR = NV * W
    V = vector(weight.type.element, W)
    total = registers(V, MR * NV)
    right = registers(V, NV)
    starts = registers(i64, MR)
    for i in unroll(MR):
        starts[i] = places[i]
    for run in range(first, last):
        here = source + runs[run]
        for _ in range(length // PANEL_STEPS):
            for k in unroll(PANEL_STEPS):
                for v in unroll(NV):
                    right[v] = load(weight + (k * NR + v * W), W)
                for i in unroll(MR):
                    left = here[starts[i] + k]
                    for v in unroll(NV):
                        total[i * NV + v] = fma(left, right[v], total[i * NV + v])
            here = here + PANEL_STEPS
            weight = weight + PANEL_STEPS * NR
        for _ in range(length % PANEL_STEPS):
            for v in unroll(NV):
                right[v] = load(weight + v * W, W)
            for i in unroll(MR):
                left = here[starts[i]]
                for v in unroll(NV):
                    total[i * NV + v] = fma(left, right[v], total[i * NV + v])
            here = here + 1
            weight = weight + NR
    for i in unroll(MR):
        for v in unroll(NV):
            place = sums + (i * NR + v * W)
            if add:
                store(place, load(place, W) + total[i * NV + v])
            else:
                store(place, total[i * NV + v])


@native(outline=True)
def multiply_band(pixels, places, count, runs, sizes, weight, sums, MR: static, NV: static,
                  W: static):  # fmt: skip
    """The sums `[window, output]` of `count` windows with one panel of the weight.

    `places` and `sums` have room for windows behind the last one.
    """
    NR = NV * W
    for part in range(sizes[PARTS]):
        first = sizes[RUNS] * part // sizes[PARTS]
        last = sizes[RUNS] * (part + 1) // sizes[PARTS]
        block = weight + first * sizes[LENGTH] * NR
        for i in range(0, count, MR):
            pixel_tile(pixels, places + i, runs, first, last, sizes[LENGTH], block, sums + i * NR,
                       part > 0, MR, NV, W)  # fmt: skip


@native(outline=True)
def finish_planes(sums, count, rows, plane, bias, residual, added, floor, ceiling, out,
                  T: static, A: static, W: static, NR: static):  # fmt: skip
    """`out[o * plane + i]` for `rows` outputs of `count` windows from `sums[i, o]`."""
    lines = stack(A, W * W)
    for first in range(0, rows, W):
        for i in range(0, count, W):
            transpose_block(sums + (i * NR + first), NR, lines, W, W, W)
            for k in range(smaller(rows - first, i64(W))):
                place = (first + k) * plane + i
                finish(load(lines + k * W, W) + bias[first + k], residual + place, added, floor,
                       ceiling, out + place, count - i, T, A, W)  # fmt: skip


def between(width, first):
    """Lanes of a vector from `first` on, between every other one of a second vector."""
    return tuple(first + i // 2 if i % 2 == 0 else width + i for i in range(width))


@native(outline=True)
def finish_apart(sums, count, rows, sizes, bias, out, T: static, A: static, W: static,
                 NR: static):  # fmt: skip
    """The same where results lie MOVE_X apart, in rows MOVE_Y apart, and get a bias at most.

    Nobody else writes what lies between two results of a row meanwhile: it is read and written
    again.
    """
    lines = stack(A, W * W)
    for first in range(0, rows, W):
        for y in range(count // sizes[OUT_X]):
            for x in range(0, sizes[OUT_X], W):
                window = sums + ((y * sizes[OUT_X] + x) * NR + first)
                transpose_block(window, NR, lines, W, W, W)
                for k in range(smaller(rows - first, i64(W))):
                    shift = bias[first + k]
                    place = out + ((first + k) * sizes[OUT_PLANE] + y * sizes[MOVE_Y]
                                   + x * sizes[MOVE_X])  # fmt: skip
                    if (sizes[MOVE_X] == 2) & (x + W < sizes[OUT_X]):
                        value = vector(T, W)(load(lines + k * W, W) + shift)
                        low = load(place, W)
                        high = load(place + W, W)
                        store(place, shuffle(value, low, between(W, 0)))
                        store(place + W, shuffle(value, high, between(W, W // 2)))
                    else:
                        for lane in range(smaller(sizes[OUT_X] - x, i64(W))):
                            place[lane * sizes[MOVE_X]] = T(lines[k * W + lane] + shift)


@native
def convolve_pixels(x: pointer(A), weight: pointer(A), bias: pointer(A), out: pointer(T),
                    work: pointer(A), slots: pointer(i64), places: pointer(i64),
                    runs: pointer(i64), sizes: pointer(i64), residual: pointer(T), added: i64,
                    floor: A, ceiling: A, task: i64, tasks: i64, T: static, A: static, W: static,
                    MR: static, NV: static, APART: static):  # fmt: skip
    """The convolution of x with a packed weight. A unit of work is a share of a band's outputs.

    APART: results lie apart (a remainder of a strided convolution's gradient); then they get a bias
    and nothing else.
    """
    NR = NV * W
    slot = take_slot(slots)
    pixels = work + slot * sizes[ROOM]
    sums = pixels + sizes[ROOM_PIXELS]
    outputs = sizes[OUTPUTS]
    panels = (outputs + NR - 1) // NR
    volume = sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X]
    plane = sizes[OUT_PLANE]
    all_of_x = sizes[IMAGES] * sizes[GROUPS] * sizes[CHANNELS] * volume
    laid_out = sizes[TAPS_Z] * sizes[LINES] * sizes[WIDE] * sizes[CHANNELS]
    bands = (sizes[IMAGES] + sizes[JOINED] - 1) // sizes[JOINED] * sizes[OUT_Z] * sizes[BANDS]
    units = bands * sizes[GROUPS] * sizes[SHARES]
    held = i64(-1)
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        share = unit % sizes[SHARES]
        laid = unit // sizes[SHARES]
        group = laid % sizes[GROUPS]
        band = laid // sizes[GROUPS] % sizes[BANDS]
        z = laid // sizes[GROUPS] // sizes[BANDS] % sizes[OUT_Z]
        image = laid // sizes[GROUPS] // sizes[BANDS] // sizes[OUT_Z] * sizes[JOINED]
        images = smaller(sizes[JOINED], sizes[IMAGES] - image)
        first = sizes[OUT_Y] * band // sizes[BANDS]
        count = (sizes[OUT_Y] * (band + 1) // sizes[BANDS] - first) * sizes[OUT_X]
        if laid != held:
            for i in range(images):
                place = ((image + i) * sizes[GROUPS] + group) * sizes[CHANNELS] * volume
                fill_pixels(x + place, all_of_x - place, pixels + i * laid_out, sizes, z, first, W)
            held = laid
        start = sizes[OUT_START] + z * sizes[MOVE_Z] + first * sizes[MOVE_Y]
        for panel in range(panels * share // sizes[SHARES], panels * (share + 1) // sizes[SHARES]):
            block = weight + (group * panels + panel) * sizes[DEPTH] * NR
            multiply_band(pixels, places, count * images, runs, sizes, block, sums, MR, NV, W)
            output = group * outputs + panel * NR
            for i in range(images):
                there = ((image + i) * sizes[GROUPS] * outputs + output) * plane + start
                shown = smaller(outputs - panel * NR, i64(NR))
                if APART:
                    finish_apart(sums + i * count * NR, count, shown, sizes, bias + output,
                                 out + there, T, A, W, NR)  # fmt: skip
                else:
                    finish_planes(sums + i * count * NR, count, shown, plane, bias + output,
                                  residual + there, added, floor, ceiling, out + there, T, A, W,
                                  NR)  # fmt: skip
    atomic_store(slots + slot, 0)


# ---- the weight


@native
def pack_weight(weight: pointer(T), out: pointer(A), rows: pointer(i64), groups: i64, outputs: i64,
                inputs: i64, taps: i64, chunk: i64, group_step: i64, output_step: i64,
                input_step: i64, task: i64, tasks: i64,
                T: static, A: static, NR: static, W: static):  # fmt: skip
    """Panels `out[group, panel, tap, input, NR outputs]` of a weight; outputs that are not there
    are 0.

    The taps of `chunk` inputs follow each other in the weight; `rows` says for each of these
    numbers how many rows of NR it lies behind the first one of its chunk in a panel.
    """
    panels = (outputs + NR - 1) // NR
    chunks = (inputs + chunk - 1) // chunk
    units = groups * panels * chunks
    lines = stack(A, W * W)
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        first = unit % chunks * chunk
        panel = unit // chunks % panels
        group = unit // chunks // panels
        depth = smaller(inputs - first, chunk) * taps
        source = weight + (group * group_step + panel * NR * output_step + first * input_step)
        target = out + ((group * panels + panel) * inputs * taps + first) * NR
        count = smaller(outputs - panel * NR, i64(NR))
        done = i64(0)
        if count == NR:
            while done + W <= depth:
                for part in range(0, NR, W):
                    transpose_block(source + (part * output_step + done), output_step, lines, W,
                                    W, W)  # fmt: skip
                    for k in unroll(W):
                        store(target + (rows[done + k] * NR + part), load(lines + k * W, W))
                done += W
        for k in range(done, depth):
            row = target + rows[k] * NR
            for i in range(count):
                row[i] = A(source[i * output_step + k])
            for i in range(count, NR):
                row[i] = 0
