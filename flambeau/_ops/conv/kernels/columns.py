"""Windows of images as columns of a matrix, for convolutions that are products."""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native


@native
def copy_line(source, step, target, first, last, width, W: static):
    """target[x] = source[x * step] for first <= x < last, 0 for the others of `width`."""
    for x in range(first):
        target[x] = 0
    if step == 1:
        whole = first + (larger(last, first) - first) // W * W
        for x in range(first, whole, W):
            store(target + x, load(source + x, W))
        for x in range(whole, last):
            target[x] = source[x]
    else:
        for x in range(first, last):
            target[x] = source[x * step]
    for x in range(larger(last, first), width):
        target[x] = 0


@native(apart=True)
def windows_as_columns(image: pointer(T), columns: pointer(T), images: i64, channels: i64,
                       high: i64, wide: i64, out_high: i64, out_wide: i64, tall: i64, broad: i64,
                       step_y: i64, step_x: i64, pad_y: i64, pad_x: i64, apart_y: i64,
                       apart_x: i64, of_image: i64, of_row: i64, task: i64, tasks: i64, T: static,
                       W: static):  # fmt: skip
    """columns[n * of_image + ((c * tall + ky) * broad + kx) * of_row + y * out_wide + x] is
    image[n, c, y * step_y + ky * apart_y - pad_y, x * step_x + kx * apart_x - pad_x], 0 outside.

    Units of work are channels of images.
    """
    units = images * channels
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        plane = image + unit * high * wide
        target = columns + (unit // channels * of_image + unit % channels * tall * broad * of_row)
        for tap in range(tall * broad):
            down = tap // broad * apart_y - pad_y
            along = tap % broad * apart_x - pad_x
            first = smaller(larger((step_x - 1 - along) // step_x, i64(0)), out_wide)
            last = smaller((wide - along + step_x - 1) // step_x, out_wide)
            if wide <= along:
                last = i64(0)
            for y in range(out_high):
                line = y * step_y + down
                place = target + (tap * of_row + y * out_wide)
                if (line >= 0) & (line < high):
                    copy_line(plane + (line * wide + along), step_x, place, first, last, out_wide,
                              W)  # fmt: skip
                else:
                    zero_memory(place, out_wide)
