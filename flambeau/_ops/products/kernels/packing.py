"""Operands of matrix products as the register tile reads them: panels.

A panel holds PANEL rows of A (or columns of B), k by k: target[k * PANEL + i]. Any strides, any
element type.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native


def halves(width):
    """1, 2, 4 ... below a width: the stages of a transposition."""
    return tuple(1 << stage for stage in range(width.bit_length() - 1))


def uppers(width, block):
    """Rows that stage `block` of a transposition joins with the row `block` below."""
    return tuple(row for row in range(width) if not row & block)


def upper_lanes(width, block):
    """What the upper of two rows takes from both: its lanes without `block`, and the other's."""
    return tuple(lane if not lane & block else width + lane - block for lane in range(width))


def lower_lanes(width, block):
    """What the lower of two rows takes from both."""
    return tuple(lane + block if not lane & block else width + lane for lane in range(width))


def pieces(count, width):
    """(first, size): `count` elements as vectors of `width` and of smaller powers of two."""
    found, first = [], 0
    while first < count:
        while width > count - first:
            width //= 2
        found.append((first, width))
        first += width
    return tuple(found)


@native
def transpose_block(source, stride, target, step, ROWS: static, W: static):
    """target[k * step + i] = source[i * stride + k] for i, k < W; rows from ROWS on are 0.

    W stores of W elements in the order of k: with step < W each overwrites the tail of the last.
    """
    T = target.type.element
    rows = registers(vector(T, W), W)
    for i in unroll(ROWS):
        rows[i] = T(load(source + i * stride, W))
    for BLOCK in halves(W):
        for i in uppers(W, BLOCK):
            upper = rows[i]
            lower = rows[i + BLOCK]
            rows[i] = shuffle(upper, lower, upper_lanes(W, BLOCK))
            rows[i + BLOCK] = shuffle(upper, lower, lower_lanes(W, BLOCK))
    for k in unroll(W):
        store(target + k * step, rows[k])


@native(outline=True)
def pack_panel(source, item, step, count, depth, target, PANEL: static, W: static):
    """A panel as a tile reads it: target[k * PANEL + i] = source[i * item + k * step].

    i < count <= PANEL are rows of A (or columns of B), k < depth; what lies behind `count` is 0.
    `item` and `step` are strides in elements, any; elements are converted to target's type.
    """
    T = target.type.element
    if (item == 1) & (count == PANEL):
        for k in range(depth):
            for FIRST, SIZE in pieces(PANEL, W):
                store(target + (k * PANEL + FIRST), T(load(source + (k * step + FIRST), SIZE)))
    else:
        done = 0
        if (step == 1) & (count == PANEL):
            # where W does not divide PANEL, the last vector of each k reaches into the next ones
            over = (-PANEL % W + PANEL - 1) // PANEL
            while done + W + over <= depth:
                for FIRST in unroll(PANEL // W * W, PANEL, W):
                    place = target + (done * PANEL + FIRST)
                    transpose_block(source + (FIRST * item + done), item, place, PANEL,
                                    PANEL - FIRST, W)  # fmt: skip
                if PANEL >= W:
                    for first in range(0, PANEL // W * W, W):
                        place = target + (done * PANEL + first)
                        transpose_block(source + (first * item + done), item, place, PANEL, W, W)
                done += W
        for k in range(done, depth):
            for i in range(count):
                target[k * PANEL + i] = T(source[i * item + k * step])
            for i in range(count, PANEL):
                target[k * PANEL + i] = 0


GROUP = 8
"""Panels that are packed side by side where rows follow each other."""


@native
def pack_line(source, target, panels, depth, PANEL: static, W: static, LAST: static):
    """One k of several panels. Whole vectors overwrite what the next k of a panel writes; the last
    panel and (LAST) the last k, which nothing follows, are written exactly."""
    T = target.type.element
    exact = 0 if LAST else panels - 1
    for p in range(exact):
        for FIRST in unroll(0, PANEL, W):
            store(target + (p * depth * PANEL + FIRST), T(load(source + (p * PANEL + FIRST), W)))
    for p in range(exact, panels):
        for FIRST, SIZE in pieces(PANEL, W):
            place = target + (p * depth * PANEL + FIRST)
            store(place, T(load(source + (p * PANEL + FIRST), SIZE)))


@native(outline=True)
def pack_panels(source, item, step, count, depth, target, PANEL: static, W: static):
    """All panels of `count` rows (see `pack_panel`), one after the other.

    Where rows follow each other in memory, each k lies in another page: several panels are packed
    with every look at it.
    """
    done = 0
    if (item == 1) & (depth > 0):
        while done + PANEL <= count:
            panels = smaller(GROUP, (count - done) // PANEL)
            place = target + done * depth
            for k in range(depth - 1):
                pack_line(source + (k * step + done), place + k * PANEL, panels, depth, PANEL, W,
                          False)  # fmt: skip
            pack_line(source + ((depth - 1) * step + done), place + (depth - 1) * PANEL, panels,
                      depth, PANEL, W, True)  # fmt: skip
            done += panels * PANEL
    for first in range(done, count, PANEL):
        pack_panel(source + first * item, item, step, smaller(count - first, PANEL), depth,
                   target + first * depth, PANEL, W)  # fmt: skip
