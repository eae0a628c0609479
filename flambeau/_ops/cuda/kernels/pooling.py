"""Pools of planes, forwards and backwards: a thread has one element of what is written.

`place` finds an element of dense memory, row-major or channels-last; what is read lies anywhere.
"""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native


@native
def place(unit: i64, channels: i64, height: i64, width: i64, LAST: static):
    """(sample, channel, row, column) of an element in memory order."""
    if LAST:
        c = unit % channels
        rest = unit // channels
        w = rest % width
        rest2 = rest // width
        return rest2 // height, c, rest2 % height, w
    w = unit % width
    rest = unit // width
    h = rest % height
    rest2 = rest // height
    return rest2 // channels, rest2 % channels, h, w


@native
def element_at(oh: i64, ow: i64, height: i64, width: i64, I: static, J: static, STEP: static,
               PAD: static, DILATION: static):  # fmt: skip
    """(row, column, whether it lies in the plane) of place (I, J) of a window."""
    h = oh * STEP[0] - PAD[0] + I * DILATION[0]
    w = ow * STEP[1] - PAD[1] + J * DILATION[1]
    return h, w, (h >= 0) & (h < height) & (w >= 0) & (w < width)


@native
def window_of(h: i64, w: i64, rows: i64, columns: i64, I: static, J: static, STEP: static,
              PAD: static, DILATION: static):  # fmt: skip
    """(row, column, whether it is one) of the window whose place (I, J) an element is."""
    top_edge = h + PAD[0] - I * DILATION[0]
    left_edge = w + PAD[1] - J * DILATION[1]
    oh = top_edge // STEP[0]
    ow = left_edge // STEP[1]
    fits = (top_edge >= 0) & (left_edge >= 0) & (oh * STEP[0] == top_edge)
    return oh, ow, fits & (ow * STEP[1] == left_edge) & (oh < rows) & (ow < columns)


ADJACENT = (1, 1)
"""The dilation of means: they have none."""


@native
def beats(value, best):
    """Whether a value takes the place of the largest so far: nan does, and keeps it."""
    if value.type.is_float:
        return (value > best) | (is_nan(value) & (best == best))
    return value > best


@native
def max_pool(x: pointer(T), out: pointer(T), units: i64, channels: i64, height: i64, width: i64,
             rows: i64, columns: i64, sn: i64, sc: i64, sh: i64, sw: i64, T: static, A: static,
             LOW: static, KERNEL: static, STEP: static, PAD: static, DILATION: static,
             LAST: static, THREADS: static):  # fmt: skip
    """The largest value of every window of x [N, C, height, width] in [N, C, rows, columns]."""
    unit = block() * THREADS + thread()
    if unit < units:
        n, c, oh, ow = place(unit, channels, rows, columns, LAST)
        base = x + (n * sn + c * sc)
        best = registers(A, 1, LOW)
        for i in unroll(KERNEL[0]):
            for j in unroll(KERNEL[1]):
                h, w, there = element_at(oh, ow, height, width, i, j, STEP, PAD, DILATION)
                if there:
                    value = A(base[h * sh + w * sw])
                    best[0] = select(beats(value, best[0]), value, best[0])
        out[unit] = T(best[0])


@native
def max_pool_places(x: pointer(T), out: pointer(T), places: pointer(i64), units: i64,
                    channels: i64, height: i64, width: i64, rows: i64, columns: i64, sn: i64,
                    sc: i64, sh: i64, sw: i64, T: static, A: static, LOW: static, KERNEL: static,
                    STEP: static, PAD: static, DILATION: static, LAST: static,
                    THREADS: static):  # fmt: skip
    """The same, and where in its plane each lies: the first of those that are equal."""
    unit = block() * THREADS + thread()
    if unit < units:
        n, c, oh, ow = place(unit, channels, rows, columns, LAST)
        base = x + (n * sn + c * sc)
        best = registers(A, 1, LOW)
        found = registers(i64, 1, -1)
        for i in unroll(KERNEL[0]):
            for j in unroll(KERNEL[1]):
                h, w, there = element_at(oh, ow, height, width, i, j, STEP, PAD, DILATION)
                if there:
                    value = A(base[h * sh + w * sw])
                    wins = beats(value, best[0]) | (found[0] < 0)
                    best[0] = select(wins, value, best[0])
                    found[0] = select(wins, h * width + w, found[0])
        out[unit] = T(best[0])
        places[unit] = found[0]


@native
def max_pool_backward(places: pointer(i64), grad: pointer(T), out: pointer(T), units: i64,
                      channels: i64, height: i64, width: i64, rows: i64, columns: i64, pn: i64,
                      pc: i64, ph: i64, pw: i64, gn: i64, gc: i64, gh: i64, gw: i64, T: static,
                      A: static, KERNEL: static, STEP: static, PAD: static, DILATION: static,
                      LAST: static, THREADS: static):  # fmt: skip
    """What each element got from the windows whose largest it is, always in the same order."""
    unit = block() * THREADS + thread()
    if unit < units:
        n, c, h, w = place(unit, channels, height, width, LAST)
        total = registers(A, 1)
        mine = h * width + w
        for i in unroll(KERNEL[0]):
            for j in unroll(KERNEL[1]):
                oh, ow, fits = window_of(h, w, rows, columns, i, j, STEP, PAD, DILATION)
                if fits:
                    if places[n * pn + c * pc + oh * ph + ow * pw] == mine:
                        total[0] = total[0] + A(grad[n * gn + c * gc + oh * gh + ow * gw])
        out[unit] = T(total[0])


@native
def divisor_of(oh: i64, ow: i64, height: i64, width: i64, KERNEL: static, STEP: static,
               PAD: static, COUNTED: static, DIVISOR: static):  # fmt: skip
    """What the sum of a window is divided by."""
    if DIVISOR:
        return i64(DIVISOR)
    h = oh * STEP[0] - PAD[0]
    w = ow * STEP[1] - PAD[1]
    bottom = smaller(h + KERNEL[0], height + PAD[0])
    right = smaller(w + KERNEL[1], width + PAD[1])
    if COUNTED:
        return (bottom - h) * (right - w)
    tall = smaller(bottom, height) - larger(h, i64(0))
    return tall * (smaller(right, width) - larger(w, i64(0)))


@native
def avg_pool(x: pointer(T), out: pointer(T), units: i64, channels: i64, height: i64, width: i64,
             rows: i64, columns: i64, sn: i64, sc: i64, sh: i64, sw: i64, T: static, A: static,
             KERNEL: static, STEP: static, PAD: static, COUNTED: static, DIVISOR: static,
             LAST: static, THREADS: static):  # fmt: skip
    """The mean of every window."""
    unit = block() * THREADS + thread()
    if unit < units:
        n, c, oh, ow = place(unit, channels, rows, columns, LAST)
        base = x + (n * sn + c * sc)
        total = registers(A, 1)
        for i in unroll(KERNEL[0]):
            for j in unroll(KERNEL[1]):
                h, w, there = element_at(oh, ow, height, width, i, j, STEP, PAD, ADJACENT)
                if there:
                    total[0] = total[0] + A(base[h * sh + w * sw])
        count = divisor_of(oh, ow, height, width, KERNEL, STEP, PAD, COUNTED, DIVISOR)
        out[unit] = T(total[0] / A(count))


@native
def avg_pool_backward(grad: pointer(T), out: pointer(T), units: i64, channels: i64, height: i64,
                      width: i64, rows: i64, columns: i64, gn: i64, gc: i64, gh: i64, gw: i64,
                      T: static, A: static, KERNEL: static, STEP: static, PAD: static,
                      COUNTED: static, DIVISOR: static, LAST: static,
                      THREADS: static):  # fmt: skip
    """What each element gets from the windows that it is in."""
    unit = block() * THREADS + thread()
    if unit < units:
        n, c, h, w = place(unit, channels, height, width, LAST)
        total = registers(A, 1)
        for i in unroll(KERNEL[0]):
            for j in unroll(KERNEL[1]):
                oh, ow, fits = window_of(h, w, rows, columns, i, j, STEP, PAD, ADJACENT)
                if fits:
                    count = divisor_of(oh, ow, height, width, KERNEL, STEP, PAD, COUNTED, DIVISOR)
                    total[0] = total[0] + A(grad[n * gn + c * gc + oh * gh + ow * gw]) / A(count)
        out[unit] = T(total[0])
