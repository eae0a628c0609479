"""Large LSTM and GRU layers: all steps in one launch.

A step is shared out over tasks, each of which computes the same hidden units of all sequences:
product and gates. It reads what all tasks of the step before have written, and waits for them.
(Tasks are begun in their order, so that somebody is at work on what it waits for.) The weights come
in panels of NV vectors of columns, [columns / (NV W), depth, NV W].
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.products.kernels.gemm import PACKED, PANEL_STEPS, gemm_tile
from flambeau._ops.products.kernels.packing import pack_panels
from flambeau._ops.recurrent.kernels.gates import (
    gru_unit_slopes,
    gru_units,
    lstm_unit_slopes,
    lstm_units,
)
from flambeau._runtime.pool_kernels import wait_for

ROWS = 96
"""The most sequences that are multiplied together; PACKED elements of them are packed."""


@native
def block_of_panel(packed, panel, out, count, depth, MR: static, NV: static, W: static):
    """out [count, NV W] = packed rows [count, depth] @ panel; written in whole tiles of MR rows."""
    for i in range(0, count, MR):
        gemm_tile(packed + i * depth, 1, MR, panel, NV * W, depth, out + i * NV * W, NV * W, False,
                  MR, NV, W, PANEL_STEPS)  # fmt: skip


@native
def lstm_steps(source: pointer(T), panels: pointer(T), hidden: pointer(T), cell: pointer(T),
               outputs: pointer(T), cells: pointer(T), gates: pointer(T), done: pointer(i64),
               steps: i64, rows: i64, units: i64, high: i64, backwards: i64, task: i64, tasks: i64,
               T: static, MR: static, NV: static, W: static):  # fmt: skip
    """All steps forward, a part of the units of one step a task. `source` [steps, rows, 4 units]
    holds W x + b, `panels` V; `high` rows are packed together; `done` [steps] counts from 0."""
    NR = NV * W
    packed = stack(T, PACKED)
    products = stack(T, 4 * (ROWS + MR) * NR)
    parts = tasks // steps
    k = task // parts
    part = task % parts
    step = k if backwards == 0 else steps - 1 - k
    of_units = units // NR
    h, c = hidden + 0, cell + 0
    if k > 0:
        before = step - 1 if backwards == 0 else step + 1
        h = outputs + before * rows * units
        c = cells + before * rows * units
        wait_for(done + (k - 1), parts)
    for top in range(0, rows, high):
        count = smaller(rows - top, high)
        pack_panels(h + top * units, units, 1, count, units, packed, MR, W)
        for j in range(of_units * part // parts, of_units * (part + 1) // parts):
            for gate in range(4):
                block_of_panel(packed, panels + (gate * of_units + j) * NR * units,
                               products + gate * (ROWS + MR) * NR, count, units, MR, NV,
                               W)  # fmt: skip
            for r in range(count):
                place = step * rows + top + r
                for v in unroll(NV):
                    lstm_units(source + place * 4 * units, gates + place * 4 * units,
                               products + (r * NR + v * W), (ROWS + MR) * NR,
                               c + (top + r) * units, cells + place * units,
                               outputs + place * units, j * NR + v * W, units, W)  # fmt: skip
    atomic_add(done + k, 1)


@native
def lstm_steps_backward(gates: pointer(T), slopes: pointer(T), panels: pointer(T),
                        cell: pointer(T), cells: pointer(T), of_outputs: pointer(T),
                        of_hidden: pointer(T), of_cell: pointer(T), done: pointer(i64), steps: i64,
                        rows: i64, units: i64, high: i64, backwards: i64, task: i64, tasks: i64,
                        T: static, MR: static, NV: static, W: static):  # fmt: skip
    """All steps back, then the gradient of the first hidden state: steps + 1 times as many tasks as
    there are parts of the units. `slopes` becomes the gradient of W x + b + V h + c, `of_cell` that
    of the first cell state; `done` [steps + 1] counts from 0."""
    NR = NV * W
    packed = stack(T, PACKED)
    products = stack(T, (ROWS + MR) * NR)
    parts = tasks // (steps + 1)
    k = task // parts
    part = task % parts
    step = steps - 1 - k if backwards == 0 else k
    later = step + 1 if backwards == 0 else step - 1
    of_units = units // NR
    c = cell + 0
    if k + 1 < steps:
        c = cells + (step - 1 if backwards == 0 else step + 1) * rows * units
    if k > 0:
        wait_for(done + (k - 1), parts)
    for top in range(0, rows, high):
        count = smaller(rows - top, high)
        if k > 0:
            pack_panels(slopes + (later * rows + top) * 4 * units, 4 * units, 1, count, 4 * units,
                        packed, MR, W)  # fmt: skip
        for j in range(of_units * part // parts, of_units * (part + 1) // parts):
            if k > 0:
                block_of_panel(packed, panels + j * NR * 4 * units, products, count, 4 * units, MR,
                               NV, W)  # fmt: skip
            for r in range(count):
                place = step * rows + top + r
                own = (top + r) * units
                for v in unroll(NV):
                    product = products + (r * NR + v * W)
                    unit = j * NR + v * W
                    if k == 0:
                        store(product, splat(T(0), W))
                    if k == steps:
                        store(of_hidden + (own + unit), load(product, W))
                    else:
                        lstm_unit_slopes(gates + place * 4 * units, slopes + place * 4 * units,
                                         c + own, cells + place * units,
                                         of_outputs + place * units, product, of_cell + own, unit,
                                         units, W)  # fmt: skip
    atomic_add(done + k, 1)


@native
def gru_steps(source: pointer(T), panels: pointer(T), bias: pointer(T), hidden: pointer(T),
              outputs: pointer(T), gates: pointer(T), from_hidden: pointer(T), done: pointer(i64),
              steps: i64, rows: i64, units: i64, high: i64, backwards: i64, task: i64, tasks: i64,
              T: static, MR: static, NV: static, W: static):  # fmt: skip
    """As `lstm_steps`; `source` and `gates` are [steps, rows, 3 units], `bias` is c, and
    `from_hidden` gets V h + c of all steps."""
    NR = NV * W
    packed = stack(T, PACKED)
    products = stack(T, (ROWS + MR) * NR)
    parts = tasks // steps
    k = task // parts
    part = task % parts
    step = k if backwards == 0 else steps - 1 - k
    of_units = units // NR
    h = hidden + 0
    if k > 0:
        h = outputs + (step - 1 if backwards == 0 else step + 1) * rows * units
        wait_for(done + (k - 1), parts)
    for top in range(0, rows, high):
        count = smaller(rows - top, high)
        pack_panels(h + top * units, units, 1, count, units, packed, MR, W)
        for j in range(of_units * part // parts, of_units * (part + 1) // parts):
            for gate in range(3):
                column = gate * units + j * NR
                block_of_panel(packed, panels + column * units, products, count, units, MR, NV, W)
                for r in range(count):
                    target = from_hidden + ((step * rows + top + r) * 3 * units + column)
                    for v in unroll(NV):
                        store(target + v * W, load(products + (r * NR + v * W), W)
                              + load(bias + (column + v * W), W))  # fmt: skip
            for r in range(count):
                place = step * rows + top + r
                wide = place * 3 * units
                for v in unroll(NV):
                    gru_units(source + wide, gates + wide, from_hidden + wide,
                              h + (top + r) * units, outputs + place * units, j * NR + v * W,
                              units, W)  # fmt: skip
    atomic_add(done + k, 1)


@native
def gru_steps_backward(gates: pointer(T), from_hidden: pointer(T), slopes: pointer(T),
                       inner_slopes: pointer(T), panels: pointer(T), hidden: pointer(T),
                       outputs: pointer(T), of_outputs: pointer(T), of_hidden: pointer(T),
                       done: pointer(i64), steps: i64, rows: i64, units: i64, high: i64,
                       backwards: i64, task: i64, tasks: i64, T: static, MR: static, NV: static,
                       W: static):  # fmt: skip
    """As `lstm_steps_backward`: `slopes` and `inner_slopes` get the gradients of W x + b and of
    V h + c; `of_hidden`, which is 0, gets that of the first state."""
    NR = NV * W
    packed = stack(T, PACKED)
    products = stack(T, (ROWS + MR) * NR)
    parts = tasks // (steps + 1)
    k = task // parts
    part = task % parts
    step = steps - 1 - k if backwards == 0 else k
    later = step + 1 if backwards == 0 else step - 1
    of_units = units // NR
    h = hidden + 0
    if k + 1 < steps:
        h = outputs + (step - 1 if backwards == 0 else step + 1) * rows * units
    if k > 0:
        wait_for(done + (k - 1), parts)
    for top in range(0, rows, high):
        count = smaller(rows - top, high)
        if k > 0:
            pack_panels(inner_slopes + (later * rows + top) * 3 * units, 3 * units, 1, count,
                        3 * units, packed, MR, W)  # fmt: skip
        for j in range(of_units * part // parts, of_units * (part + 1) // parts):
            if k > 0:
                block_of_panel(packed, panels + j * NR * 3 * units, products, count, 3 * units, MR,
                               NV, W)  # fmt: skip
            for r in range(count):
                place = step * rows + top + r
                own = of_hidden + (top + r) * units
                wide = place * 3 * units
                for v in unroll(NV):
                    unit = j * NR + v * W
                    if k > 0:
                        through = load(products + (r * NR + v * W), W)
                        store(own + unit, load(own + unit, W) + through)
                    if k < steps:
                        gru_unit_slopes(gates + wide, from_hidden + wide, slopes + wide,
                                        inner_slopes + wide, h + (top + r) * units,
                                        of_outputs + place * units, own, unit, units,
                                        W)  # fmt: skip
    atomic_add(done + k, 1)
