"""Small LSTM layers: all steps of a few sequences in one call.

The sequences of a batch do not need each other, so a task takes some of them through all steps,
and nothing has to wait for anything. The weights stay in the cache: they come in panels of NV
vectors of columns, [columns / (NV W), depth, NV W].
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.recurrent.kernels.gates import lstm_unit_slopes, lstm_units


@native
def tile_product(left, left_row, panel, out, out_row, depth, R: static, NV: static, T: static,
                 W: static):  # fmt: skip
    """out [R, NV W] = left [R, depth] @ panel; rows lie `left_row` and `out_row` apart."""
    sums = registers(vector(T, W), R * NV, T(0))
    for k in range(depth):
        for r in unroll(R):
            value = splat(left[r * left_row + k], W)
            for v in unroll(NV):
                part = load(panel + (k * NV + v) * W, W)
                sums[r * NV + v] = fma(value, part, sums[r * NV + v])
    for r in unroll(R):
        for v in unroll(NV):
            store(out + r * out_row + v * W, sums[r * NV + v])


@native(outline=True)
def rows_product(left, left_row, panels, out, out_row, rows, depth, columns, R: static,
                 NV: static, T: static, W: static):  # fmt: skip
    """out [rows, columns] = left [rows, depth] @ panels. All rows go by while a panel is near."""
    whole = rows // R * R
    for j in range(0, columns, NV * W):
        panel = panels + j * depth
        for r in range(0, whole, R):
            tile_product(left + r * left_row, left_row, panel, out + r * out_row + j, out_row,
                         depth, R, NV, T, W)  # fmt: skip
        for r in range(whole, rows):
            tile_product(left + r * left_row, left_row, panel, out + r * out_row + j, out_row,
                         depth, 1, NV, T, W)  # fmt: skip


@native
def lstm_rows(source: pointer(T), panels: pointer(T), hidden: pointer(T), cell: pointer(T),
              outputs: pointer(T), cells: pointer(T), gates: pointer(T), products: pointer(T),
              steps: i64, rows: i64, units: i64, backwards: i64, task: i64, tasks: i64,
              R: static, NV: static, T: static, W: static):  # fmt: skip
    """All steps forward. `source` [steps, rows, 4 units] holds W x + b; `products` [rows, 4 units]
    is for the kernel's own use; the rest is as for `lstm_step`."""
    first, last = rows * task // tasks, rows * (task + 1) // tasks
    count, width = last - first, 4 * units
    product = products + first * width
    for k in range(steps):
        step = k
        if backwards != 0:
            step = steps - 1 - k
        h, c = hidden + first * units, cell + first * units
        if k > 0:
            before = step - 1 if backwards == 0 else step + 1
            h = outputs + (before * rows + first) * units
            c = cells + (before * rows + first) * units
        rows_product(h, units, panels, product, width, count, units, width, R, NV, T, W)
        for r in range(count):
            place = step * rows + first + r
            for j in range(0, units, W):
                lstm_units(source + place * width, gates + place * width, product + (r * width + j),
                           units, c + r * units, cells + place * units, outputs + place * units, j,
                           units, W)  # fmt: skip


@native
def lstm_rows_backward(gates: pointer(T), slopes: pointer(T), panels: pointer(T),
                       cell: pointer(T), cells: pointer(T), of_outputs: pointer(T),
                       of_hidden: pointer(T), of_cell: pointer(T), steps: i64, rows: i64,
                       units: i64, backwards: i64, task: i64, tasks: i64, R: static, NV: static,
                       T: static, W: static):  # fmt: skip
    """All steps back. `slopes` becomes the gradient of W x + b + V h + c; `of_hidden` and `of_cell`
    [rows, units] become those of the first states."""
    first, last = rows * task // tasks, rows * (task + 1) // tasks
    count, width = last - first, 4 * units
    for k in range(steps):
        step = steps - 1 - k
        if backwards != 0:
            step = k
        c = cell + first * units
        if k + 1 < steps:
            before = step - 1 if backwards == 0 else step + 1
            c = cells + (before * rows + first) * units
        for r in range(count):
            place = step * rows + first + r
            own = (first + r) * units
            for j in range(0, units, W):
                lstm_unit_slopes(gates + place * width, slopes + place * width, c + r * units,
                                 cells + place * units, of_outputs + place * units,
                                 of_hidden + (own + j), of_cell + own, j, units, W)  # fmt: skip
        own_slopes = slopes + (step * rows + first) * width
        rows_product(own_slopes, width, panels, of_hidden + first * units, units, count, width,
                     units, R, NV, T, W)  # fmt: skip
