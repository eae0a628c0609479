"""Gates of recurrent layers: what follows the matrix products of one time step, in one pass.

Rows are sequences, columns hidden units. `from_input` and `from_hidden` hold the gates side by
side, [rows, gates * hidden]; what the backward step needs is left where the gates were.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.vector_math import VECTOR_MATH

exp = VECTOR_MATH["exp"]
tanh = VECTOR_MATH["tanh"]


@native
def sigmoid(x):
    return 1.0 / (1.0 + exp(-x))


@native
def lstm_units(source, gates, product, apart, before, cell, output, j, hidden,
               W: static):  # fmt: skip
    """Gates i, f, o and candidate g: c' = f c + i g, h' = o tanh(c'). `product` is at the units'
    own part of V h, gate after gate, `apart` elements from each other."""
    enter = sigmoid(load(source + j, W) + load(product, W))
    forget = sigmoid(load(source + hidden + j, W) + load(product + apart, W))
    candidate = tanh(load(source + 2 * hidden + j, W) + load(product + 2 * apart, W))
    leave = sigmoid(load(source + 3 * hidden + j, W) + load(product + 3 * apart, W))
    now = forget * load(before + j, W) + enter * candidate
    store(gates + j, enter)
    store(gates + hidden + j, forget)
    store(gates + 2 * hidden + j, candidate)
    store(gates + 3 * hidden + j, leave)
    store(cell + j, now)
    store(output + j, leave * tanh(now))


@native
def lstm_step(source: pointer(T), gates: pointer(T), from_hidden: pointer(T), before: pointer(T),
              cell: pointer(T), output: pointer(T), rows: i64, hidden: i64, task: i64, tasks: i64,
              T: static, W: static):  # fmt: skip
    """One step forward. `source` [rows, 4 hidden] holds W x + b, `gates` gets the gates; `before`
    and `cell` are the cell states, `output` the hidden state."""
    for r in range(rows * task // tasks, rows * (task + 1) // tasks):
        x, g, f = source + r * 4 * hidden, gates + r * 4 * hidden, from_hidden + r * 4 * hidden
        b, c, o = before + r * hidden, cell + r * hidden, output + r * hidden
        whole = hidden // W * W
        for j in range(0, whole, W):
            lstm_units(x, g, f + j, hidden, b, c, o, j, hidden, W)
        for j in range(whole, hidden):
            lstm_units(x, g, f + j, hidden, b, c, o, j, hidden, 1)


@native
def lstm_unit_slopes(gates, slopes, before, cell, of_output, of_hidden, of_cell, j, hidden,
                     W: static):  # fmt: skip
    """From the gradients of h' and c' to those of the gates before their functions, and of c.
    `of_hidden` is at the units' own part."""
    enter, forget = load(gates + j, W), load(gates + hidden + j, W)
    candidate, leave = load(gates + 2 * hidden + j, W), load(gates + 3 * hidden + j, W)
    slope = load(of_output + j, W) + load(of_hidden, W)
    bent = tanh(load(cell + j, W))
    through = load(of_cell + j, W) + slope * leave * (1.0 - bent * bent)
    store(slopes + j, through * candidate * enter * (1.0 - enter))
    store(slopes + hidden + j, through * load(before + j, W) * forget * (1.0 - forget))
    store(slopes + 2 * hidden + j, through * enter * (1.0 - candidate * candidate))
    store(slopes + 3 * hidden + j, slope * bent * leave * (1.0 - leave))
    store(of_cell + j, through * forget)


@native
def lstm_step_backward(gates: pointer(T), slopes: pointer(T), before: pointer(T),
                       cell: pointer(T), of_output: pointer(T), of_hidden: pointer(T),
                       of_cell: pointer(T), rows: i64, hidden: i64, task: i64, tasks: i64,
                       T: static, W: static):  # fmt: skip
    """One step back: `slopes` becomes the gradient of W x + b + V h + c, `of_cell` that of c."""
    for r in range(rows * task // tasks, rows * (task + 1) // tasks):
        g, d = gates + r * 4 * hidden, slopes + r * 4 * hidden
        b, c, s = before + r * hidden, cell + r * hidden, of_cell + r * hidden
        o, h = of_output + r * hidden, of_hidden + r * hidden
        whole = hidden // W * W
        for j in range(0, whole, W):
            lstm_unit_slopes(g, d, b, c, o, h + j, s, j, hidden, W)
        for j in range(whole, hidden):
            lstm_unit_slopes(g, d, b, c, o, h + j, s, j, hidden, 1)


@native
def gru_units(source, gates, from_hidden, before, output, j, hidden, W: static):
    """Reset and update gates r, z; h' = n + z (h - n) with n = tanh(W x + b + r (V h + c))."""
    reset = sigmoid(load(source + j, W) + load(from_hidden + j, W))
    update = sigmoid(load(source + hidden + j, W) + load(from_hidden + hidden + j, W))
    inner = load(from_hidden + 2 * hidden + j, W)
    new = tanh(load(source + 2 * hidden + j, W) + reset * inner)
    store(gates + j, reset)
    store(gates + hidden + j, update)
    store(gates + 2 * hidden + j, new)
    store(output + j, new + update * (load(before + j, W) - new))


@native
def gru_step(source: pointer(T), gates: pointer(T), from_hidden: pointer(T), before: pointer(T),
             output: pointer(T), rows: i64, hidden: i64, task: i64, tasks: i64,
             T: static, W: static):  # fmt: skip
    """One step forward. `source` [rows, 3 hidden] holds W x + b, `gates` gets r, z and n."""
    for r in range(rows * task // tasks, rows * (task + 1) // tasks):
        x, g, f = source + r * 3 * hidden, gates + r * 3 * hidden, from_hidden + r * 3 * hidden
        b, o = before + r * hidden, output + r * hidden
        whole = hidden // W * W
        for j in range(0, whole, W):
            gru_units(x, g, f, b, o, j, hidden, W)
        for j in range(whole, hidden):
            gru_units(x, g, f, b, o, j, hidden, 1)


@native
def gru_unit_slopes(gates, from_hidden, slopes, inner_slopes, before, of_output, of_hidden, j,
                    hidden, W: static):  # fmt: skip
    """From the gradient of h' to those of the gates before their functions (`slopes` of W x + b,
    `inner_slopes` of V h + c), and of h itself."""
    reset, update = load(gates + j, W), load(gates + hidden + j, W)
    new, inner = load(gates + 2 * hidden + j, W), load(from_hidden + 2 * hidden + j, W)
    slope = load(of_output + j, W) + load(of_hidden + j, W)
    of_new = slope * (1.0 - update) * (1.0 - new * new)
    of_reset = of_new * inner * reset * (1.0 - reset)
    of_update = slope * (load(before + j, W) - new) * update * (1.0 - update)
    store(slopes + j, of_reset)
    store(inner_slopes + j, of_reset)
    store(slopes + hidden + j, of_update)
    store(inner_slopes + hidden + j, of_update)
    store(slopes + 2 * hidden + j, of_new)
    store(inner_slopes + 2 * hidden + j, of_new * reset)
    store(of_hidden + j, slope * update)


@native
def gru_step_backward(gates: pointer(T), from_hidden: pointer(T), slopes: pointer(T),
                      inner_slopes: pointer(T), before: pointer(T), of_output: pointer(T),
                      of_hidden: pointer(T), rows: i64, hidden: i64, task: i64, tasks: i64,
                      T: static, W: static):  # fmt: skip
    """One step back: `slopes` and `inner_slopes` get the gradients of W x + b and V h + c,
    `of_hidden` the part of h's gradient that does not go through the weights."""
    for r in range(rows * task // tasks, rows * (task + 1) // tasks):
        g, f = gates + r * 3 * hidden, from_hidden + r * 3 * hidden
        d, e = slopes + r * 3 * hidden, inner_slopes + r * 3 * hidden
        b, o, h = before + r * hidden, of_output + r * hidden, of_hidden + r * hidden
        whole = hidden // W * W
        for j in range(0, whole, W):
            gru_unit_slopes(g, f, d, e, b, o, h, j, hidden, W)
        for j in range(whole, hidden):
            gru_unit_slopes(g, f, d, e, b, o, h, j, hidden, 1)


@native
def plain_units(source, gates, from_hidden, j, RELU: static, W: static):
    total = load(source + j, W) + load(from_hidden + j, W)
    if RELU:
        store(gates + j, maximum(total, 0.0))
    else:
        store(gates + j, tanh(total))


@native
def plain_step(source: pointer(T), gates: pointer(T), from_hidden: pointer(T), count: i64,
               task: i64, tasks: i64, RELU: static, T: static, W: static):  # fmt: skip
    """h' = tanh(W x + b + V h + c), or with relu: `source` holds W x + b, `gates` gets h'."""
    first, last = count * task // tasks, count * (task + 1) // tasks
    whole = first + (last - first) // W * W
    for j in range(first, whole, W):
        plain_units(source, gates, from_hidden, j, RELU, W)
    for j in range(whole, last):
        plain_units(source, gates, from_hidden, j, RELU, 1)


@native
def plain_unit_slopes(output, of_output, of_hidden, gates, j, RELU: static, W: static):
    value, slope = load(output + j, W), load(of_output + j, W) + load(of_hidden + j, W)
    if RELU:
        store(gates + j, select(value > 0.0, slope, 0.0))
    else:
        store(gates + j, slope * (1.0 - value * value))


@native
def plain_step_backward(output: pointer(T), of_output: pointer(T), of_hidden: pointer(T),
                        gates: pointer(T), count: i64, task: i64, tasks: i64,
                        RELU: static, T: static, W: static):  # fmt: skip
    """One step back: `gates` gets the gradient of W x + b + V h + c."""
    first, last = count * task // tasks, count * (task + 1) // tasks
    whole = first + (last - first) // W * W
    for j in range(first, whole, W):
        plain_unit_slopes(output, of_output, of_hidden, gates, j, RELU, W)
    for j in range(whole, last):
        plain_unit_slopes(output, of_output, of_hidden, gates, j, RELU, 1)
