"""Dense convolutions as matrix products whose second factor is gathered from the input.

With k = (channel, tap) and j = (image, z, y, x) a convolution is out[o, j] = sum over k of
weight[o, k] * columns[k, j], where columns[k, j] is the input's number under tap k of window j.
Only a block of the columns exists at a time, in the order in which the product reads it. Taps are
a table of displacements, so that the same sums are, with other tables, the gradient of the input:
one convolution with stride 1 for each remainder of a position modulo the stride.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.conv.kernels.depthwise import evens, finish
from flambeau._ops.products.kernels.gemm import PANEL_STEPS, STEPS, gemm_tile
from flambeau._ops.products.kernels.packing import pack_panel, transpose_block

# What `sizes` holds. CHANNELS, ROWS (outputs) and DEPTH (channels * taps) are those of a group; the
# output's numbers of neighbouring windows lie MOVE apart, and the window's position is counted in
# the dims VIEW of the output (one dim where all windows of an image follow each other); an image
# of the output has IMAGE numbers.
SIZES = (
    "GROUPS", "CHANNELS", "IN_Z", "IN_Y", "IN_X", "OUT_Z", "OUT_Y", "OUT_X",
    "STEP_Z", "STEP_Y", "STEP_X", "TAPS", "ROWS", "DEPTH", "DEPTH_BLOCKS", "COLUMNS",
    "COLUMN_BLOCKS", "ROW_BLOCKS", "VIEW_Z", "VIEW_Y", "VIEW_X", "MOVE_Z", "MOVE_Y", "MOVE_X",
    "IMAGE", "ROOM_COLUMNS", "ROOM_SUMS", "ROOM",
)  # fmt: skip
(
    GROUPS, CHANNELS, IN_Z, IN_Y, IN_X, OUT_Z, OUT_Y, OUT_X,
    STEP_Z, STEP_Y, STEP_X, TAPS, ROWS, DEPTH, DEPTH_BLOCKS, COLUMNS,
    COLUMN_BLOCKS, ROW_BLOCKS, VIEW_Z, VIEW_Y, VIEW_X, MOVE_Z, MOVE_Y, MOVE_X,
    IMAGE, ROOM_COLUMNS, ROOM_SUMS, ROOM,
) = range(len(SIZES))  # fmt: skip


@native
def take_slot(slots):
    """A part of the tasks' memory that no other task uses now; there is one for every thread.

    So many small tasks balance the load in memory that stays in the caches.
    """
    slot = i64(0)
    while atomic_exchange(slots + slot, 1) != 0:
        slot = select(slots[slot + 1] < 0, i64(0), slot + 1)
    return slot


# One run of windows that follow each other along x: numbers in this order.
LANE, LENGTH, BASE, AT_Z, AT_Y, AT_X = range(6)
RUN = 6


@native
def find_runs(first, count, sizes, runs):
    """Cut the windows from `first` on into runs along x; how many there are.

    A run holds its place among the windows and its length, where its first window starts in the
    input of channel 0 of group 0 and at which z, y and x (less the taps' displacement).
    """
    area = sizes[OUT_Y] * sizes[OUT_X]
    volume = sizes[OUT_Z] * area
    image = first // volume
    rest = first % volume
    z = rest // area
    y = rest % area // sizes[OUT_X]
    x = rest % sizes[OUT_X]
    plane = sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X]
    done = 0
    found = 0
    while done < count:
        length = smaller(sizes[OUT_X] - x, count - done)
        run = runs + found * RUN
        at_z = z * sizes[STEP_Z]
        at_y = y * sizes[STEP_Y]
        at_x = x * sizes[STEP_X]
        run[LANE] = done
        run[LENGTH] = length
        run[BASE] = (image * sizes[GROUPS] * sizes[CHANNELS] * plane
                     + (at_z * sizes[IN_Y] + at_y) * sizes[IN_X] + at_x)  # fmt: skip
        run[AT_Z] = at_z
        run[AT_Y] = at_y
        run[AT_X] = at_x
        done += length
        found += 1
        x = i64(0)
        y += 1
        if y == sizes[OUT_Y]:
            y = i64(0)
            z += 1
            if z == sizes[OUT_Z]:
                z = i64(0)
                image += 1
    return found


@native
def lanes_inside(x, limit, W: static):
    """Which of W places from x on lie between 0 and `limit`."""
    return u32(lanes(i32, W) + i32(x)) < u32(limit)


@native
def copy_run(source, x, limit, step, length, target, W: static):
    """`target[i] = source[i * step]`, 0 where place x + i * step lies outside of 0 to `limit`.

    Less than W numbers behind the last one are overwritten.
    """
    if step == 1:
        i = 0
        if (x >= 0) & (x + (length + W - 1) // W * W <= limit):
            while i + 2 * W <= length:
                store(target + i, load(source + i, W))
                store(target + i + W, load(source + i + W, W))
                i += 2 * W
            while i < length:
                store(target + i, load(source + i, W))
                i += W
        while i < length:
            store(target + i, load(source + i, W, lanes_inside(x + i, limit, W)))
            i += W
    elif step == 2:
        for i in range(0, length, W):
            here = x + 2 * i
            if (here >= 0) & (here + 2 * W <= limit):
                pairs = load(source + 2 * i, 2 * W)
                store(target + i, shuffle(pairs, None, evens(W)))
            else:
                low = load(source + 2 * i, W, lanes_inside(here, limit, W))
                high = load(source + 2 * i + W, W, lanes_inside(here + W, limit, W))
                store(target + i, shuffle(low, high, evens(W)))
    else:
        for i in range(length):
            place = x + i * step
            target[i] = 0
            if (place >= 0) & (place < limit):
                target[i] = source[i * step]


@native
def odd_pitch(count, A: static):
    """How far rows of `count` numbers lie apart: an odd number of cache lines, so that numbers of
    one column share no set of a cache."""
    LINE = 64 // A.size
    return ((count + LINE - 1) // LINE | 1) * LINE


@native(outline=True)
def gather_columns(x, taps, sizes, runs, found, first, last, target, pitch, W: static):
    """Rows `first` to `last` of the columns of some runs: `target[k * pitch + lane]`.

    Rows are written from the first one on, each with less than W numbers too many.
    """
    channel = first // sizes[TAPS]
    tap = first % sizes[TAPS]
    plane = sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X]
    here = x + channel * plane
    for k in range(last - first):
        move = taps + tap * 4
        row = target + k * pitch
        for number in range(found):
            run = runs + number * RUN
            z = run[AT_Z] + move[0]
            y = run[AT_Y] + move[1]
            inside = (z >= 0) & (z < sizes[IN_Z]) & (y >= 0) & (y < sizes[IN_Y])
            limit = sizes[IN_X] if inside else i64(0)
            copy_run(here + (run[BASE] + move[3]), run[AT_X] + move[2], limit, sizes[STEP_X],
                     run[LENGTH], row + run[LANE], W)  # fmt: skip
        tap += 1
        if tap == sizes[TAPS]:
            tap = i64(0)
            here = here + plane


@native(outline=True)
def write_sums(sums, pitch, rows, first, count, bias, residual, added, floor, ceiling, out, places,
               sizes, T: static, A: static, W: static):  # fmt: skip
    """Sums of `rows` outputs and of `count` windows from `first` on to their places in `out`.

    `places` says where the first window's numbers lie in an image of the output. With `added`
    there is a residual at the same places.
    """
    volume = sizes[VIEW_Z] * sizes[VIEW_Y] * sizes[VIEW_X]
    done = 0
    while done < count:
        image = (first + done) // volume
        rest = (first + done) % volume
        x = rest % sizes[VIEW_X]
        y = rest // sizes[VIEW_X] % sizes[VIEW_Y]
        z = rest // sizes[VIEW_X] // sizes[VIEW_Y]
        length = smaller(sizes[VIEW_X] - x, count - done)
        step = sizes[MOVE_X]
        start = image * sizes[IMAGE] + z * sizes[MOVE_Z] + y * sizes[MOVE_Y] + x * step
        for row in range(rows):
            here = sums + row * pitch + done
            place = places[row] + start
            shift = bias[row]
            if step == 1:
                for i in range(0, length, W):
                    finish(load(here + i, W) + shift, residual + (place + i), added, floor, ceiling,
                           out + (place + i), length - i, T, A, W)  # fmt: skip
            else:
                for i in range(length):
                    finish(here[i] + shift, residual + (place + i * step), added, floor, ceiling,
                           out + (place + i * step), 1, T, A, 1)  # fmt: skip
        done += length


@native(outline=True)
def multiply_block(weight, height, depth, row, columns, sums, pitch, panels, add, tail,
                   MR: static, NV: static, W: static):  # fmt: skip
    """Sums (added to what is there with `add`) of `height` rows of the weight, `row` apart.

    Columns and sums have rows `pitch` apart. Where less than MR rows of the weight are left they
    are copied to `tail`, with rows of 0.
    """
    NR = NV * W
    for panel in range(panels):
        for i in range(0, height, MR):
            whole = i + MR <= height
            left = weight + i * row
            if not whole:
                if panel == 0:
                    pack_panel(left, row, 1, height - i, depth, tail, MR, W)
                left = tail
            gemm_tile(left, select(whole, row, i64(1)), select(whole, i64(1), i64(MR)),
                      columns + panel * NR, pitch, depth, sums + i * pitch + panel * NR, pitch,
                      add, MR, NV, W, STEPS)  # fmt: skip


@native
def convolve(x: pointer(A), weight: pointer(A), bias: pointer(A), out: pointer(T),
             places: pointer(i64), work: pointer(A), slots: pointer(i64), taps: pointer(i64),
             sizes: pointer(i64), residual: pointer(T), added: i64, floor: A, ceiling: A,
             task: i64, tasks: i64,
             T: static, A: static, W: static, MR: static, NV: static, RUNS: static):  # fmt: skip
    """`out` of the weight `[groups * ROWS, DEPTH]` over x, plus bias, finished."""
    NR = NV * W
    runs = stack(i64, RUNS * RUN)
    slot = take_slot(slots)
    columns = work + slot * sizes[ROOM]
    sums = columns + sizes[ROOM_COLUMNS]
    tail = sums + sizes[ROOM_SUMS]
    plane = sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X]
    panels = (sizes[COLUMNS] + NR - 1) // NR
    strips = (sizes[ROWS] + MR - 1) // MR
    units = sizes[GROUPS] * sizes[ROW_BLOCKS] * sizes[COLUMN_BLOCKS]
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        group = unit // (sizes[ROW_BLOCKS] * sizes[COLUMN_BLOCKS])
        row_block = unit // sizes[COLUMN_BLOCKS] % sizes[ROW_BLOCKS]
        block = unit % sizes[COLUMN_BLOCKS]
        first = panels * block // sizes[COLUMN_BLOCKS]
        last = panels * (block + 1) // sizes[COLUMN_BLOCKS]
        top = strips * row_block // sizes[ROW_BLOCKS] * MR
        height = smaller(strips * (row_block + 1) // sizes[ROW_BLOCKS] * MR, sizes[ROWS]) - top
        pitch = odd_pitch((last - first) * NR, A)
        count = smaller(last * NR, sizes[COLUMNS]) - first * NR
        found = find_runs(first * NR, count, sizes, runs)
        source = x + group * sizes[CHANNELS] * plane
        matrix = weight + (group * sizes[ROWS] + top) * sizes[DEPTH]
        for part in range(sizes[DEPTH_BLOCKS]):
            low = sizes[DEPTH] * part // sizes[DEPTH_BLOCKS]
            high = sizes[DEPTH] * (part + 1) // sizes[DEPTH_BLOCKS]
            gather_columns(source, taps, sizes, runs, found, low, high, columns, pitch, W)
            multiply_block(matrix + low, height, high - low, sizes[DEPTH], columns, sums, pitch,
                           last - first, part > 0, tail, MR, NV, W)  # fmt: skip
        outputs = group * sizes[ROWS] + top
        write_sums(sums, pitch, height, first * NR, count, bias + outputs, residual, added, floor,
                   ceiling, out, places + outputs, sizes, T, A, W)  # fmt: skip
    atomic_store(slots + slot, 0)


@native
def turn_weight(weight: pointer(T), out: pointer(A), chosen: pointer(i64), groups: i64,
                outputs: i64, channels: i64, taps: i64, kept: i64, task: i64, tasks: i64,
                T: static, A: static):  # fmt: skip
    """`out[group, channel, output, k] = weight[group, output, channel, chosen[k]]`.

    A tap that is negative stands for 0.
    """
    rows = groups * channels
    for row in range(rows * task // tasks, rows * (task + 1) // tasks):
        group = row // channels
        source = weight + (group * outputs * channels + row % channels) * taps
        target = out + row * outputs * kept
        for _ in range(outputs):
            for k in range(kept):
                tap = chosen[k]
                if tap >= 0:
                    target[k] = A(source[tap])
                else:
                    target[k] = 0
            source = source + channels * taps
            target = target + kept


# ---- the gradient of the weight


@native(outline=True)
def pack_gradients(grad, first, count, plane, outputs, rows, target, NR: static, W: static):
    """Panels of NR of `rows` planes of grad: target[(panel * count + j) * NR + o]."""
    for panel in range((rows + NR - 1) // NR):
        row = panel * NR
        done = 0
        while done < count:
            image = (first + done) // plane
            place = (first + done) % plane
            length = smaller(plane - place, count - done)
            pack_panel(grad + (image * outputs + row) * plane + place, plane, 1,
                       smaller(rows - row, i64(NR)), length,
                       target + (panel * count + done) * NR, NR, W)  # fmt: skip
            done += length


@native
def convolve_weight(x: pointer(A), grad: pointer(A), out: pointer(A), work: pointer(A),
                    slots: pointer(i64), taps: pointer(i64), sizes: pointer(i64), parts: i64,
                    depth_block: i64, column_block: i64, task: i64, tasks: i64,
                    A: static, W: static, MR: static, NV: static, RUNS: static):  # fmt: skip
    """`out[part, groups * ROWS, DEPTH]`: each part sums over its share of the windows.

    Units of work are groups, shares of DEPTH (DEPTH_BLOCKS) and parts. `column_block` windows and
    `depth_block` rows of their columns are gathered at a time.
    """
    NR = NV * W
    runs = stack(i64, RUNS * RUN)
    slot = take_slot(slots)
    columns = work + slot * sizes[ROOM]
    right = columns + sizes[ROOM_COLUMNS]
    sums = right + sizes[ROOM_SUMS]
    rows = sizes[ROWS]
    outputs = sizes[GROUPS] * rows
    plane = sizes[OUT_Z] * sizes[OUT_Y] * sizes[OUT_X]
    panels = (rows + NR - 1) // NR
    width = odd_pitch(panels * NR, A)
    pitch = odd_pitch(column_block, A)
    strips = (sizes[DEPTH] + MR - 1) // MR
    units = sizes[GROUPS] * sizes[DEPTH_BLOCKS] * parts
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        part = unit % parts
        share = unit // parts % sizes[DEPTH_BLOCKS]
        group = unit // parts // sizes[DEPTH_BLOCKS]
        low = strips * share // sizes[DEPTH_BLOCKS] * MR
        high = smaller(strips * (share + 1) // sizes[DEPTH_BLOCKS] * MR, sizes[DEPTH])
        start = sizes[COLUMNS] * part // parts
        stop = sizes[COLUMNS] * (part + 1) // parts
        source = x + group * sizes[CHANNELS] * sizes[IN_Z] * sizes[IN_Y] * sizes[IN_X]
        for first in range(start, stop, column_block):
            count = smaller(stop - first, column_block)
            found = find_runs(first, count, sizes, runs)
            pack_gradients(grad + group * rows * plane, first, count, plane, outputs, rows, right,
                           NR, W)  # fmt: skip
            for top in range(low, high, depth_block):
                height = smaller(high - top, depth_block)
                gather_columns(source, taps, sizes, runs, found, top, top + height, columns,
                               pitch, W)  # fmt: skip
                for panel in range(panels):
                    for i in range(0, height, MR):
                        # rows behind the last one hold anything, and so do their sums
                        gemm_tile(columns + i * pitch, pitch, 1, right + panel * count * NR, NR,
                                  count, sums + (top - low + i) * width + panel * NR, width,
                                  first > start, MR, NV, W, PANEL_STEPS)  # fmt: skip
        target = out + (part * outputs + group * rows) * sizes[DEPTH]
        for row in range(0, rows, W):
            height = smaller(rows - row, i64(W))
            k = low
            if height == W:
                while k + W <= high:
                    place = target + (row * sizes[DEPTH] + k)
                    transpose_block(sums + (k - low) * width + row, width, place, sizes[DEPTH],
                                    W, W)  # fmt: skip
                    k += W
            for rest in range(k, high):
                for i in range(height):
                    target[(row + i) * sizes[DEPTH] + rest] = sums[(rest - low) * width + row + i]
    atomic_store(slots + slot, 0)
