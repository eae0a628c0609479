"""Optimizer steps: one pass over all parameters, their gradients and what is kept of them.

A table has a row for each parameter: its first block, its number of elements, and the addresses of
parameter, gradient and state. A block is BLOCK elements of one parameter; tasks share the blocks.
`numbers` holds eight numbers for each row; what they mean is the formula's own affair.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native

BLOCK = 4096
ARRAYS = 5  # parameter, gradient and up to three of state
ROW = 2 + ARRAYS
NUMBERS = 8


@native
def step(table: pointer(i64), numbers: pointer(T), tensors: i64, blocks: i64, task: i64,
         tasks: i64, FORMULA: static, OPTIONS: static, T: static, W: static):  # fmt: skip
    """One step of all parameters in the table; a row after the last one begins at `blocks`."""
    t = 0
    for block in range(blocks * task // tasks, blocks * (task + 1) // tasks):
        while table[(t + 1) * ROW] <= block:
            t += 1
        row = table + t * ROW
        start = (block - row[0]) * BLOCK
        count = smaller(row[1] - start, BLOCK)
        h = load(numbers + t * NUMBERS, NUMBERS)
        parameter, grad = cast(pointer(T), row[2]) + start, cast(pointer(T), row[3]) + start
        one, two = cast(pointer(T), row[4]) + start, cast(pointer(T), row[5]) + start
        three = cast(pointer(T), row[6]) + start
        whole = count // W * W
        for j in range(0, whole, W):
            FORMULA(h, parameter, grad, one, two, three, j, OPTIONS, W)
        for j in range(whole, count):
            FORMULA(h, parameter, grad, one, two, three, j, OPTIONS, 1)


@native
def decayed(g, p, amount, DECAY: static):
    """The gradient with the part that pulls a parameter towards 0."""
    if DECAY:
        return g + p * amount
    else:
        return g


@native
def adam(h, parameter, grad, mean, square, largest, j, OPTIONS: static, W: static):
    """Numbers: sign of the gradient, 1 - β1, β2, 1 - β2, √(1 - β2ᵗ), eps, lr/(1 - β1ᵗ), decay."""
    DECAY, DECOUPLED, AMSGRAD = OPTIONS
    p = load(parameter + j, W)
    g = load(grad + j, W) * h[0]
    if DECOUPLED:
        p = p * h[7]
    g = decayed(g, p, h[7], DECAY)
    m = load(mean + j, W)
    m = m + (g - m) * h[1]
    v = load(square + j, W) * h[2] + g * g * h[3]
    store(mean + j, m)
    store(square + j, v)
    if AMSGRAD:
        v = maximum(load(largest + j, W), v)
        store(largest + j, v)
    store(parameter + j, p - m / (sqrt(v) / h[4] + h[5]) * h[6])


@native
def sgd(h, parameter, grad, velocity, _two, _three, j, OPTIONS: static, W: static):
    """Numbers: sign of the gradient, lr, momentum, 1 - dampening, decay."""
    DECAY, MOMENTUM, NESTEROV = OPTIONS
    p = load(parameter + j, W)
    g = decayed(load(grad + j, W) * h[0], p, h[4], DECAY)
    if MOMENTUM:
        v = load(velocity + j, W) * h[2] + g * h[3]
        store(velocity + j, v)
        if NESTEROV:
            g = g + v * h[2]
        else:
            g = v
    store(parameter + j, p - g * h[1])


@native
def adadelta(h, parameter, grad, square, travelled, _three, j, OPTIONS: static, W: static):
    """Numbers: sign of the gradient, lr, ρ, 1 - ρ, eps, decay."""
    (DECAY,) = OPTIONS
    p = load(parameter + j, W)
    g = decayed(load(grad + j, W) * h[0], p, h[5], DECAY)
    v = load(square + j, W) * h[2] + g * g * h[3]
    u = load(travelled + j, W)
    delta = sqrt(u + h[4]) / sqrt(v + h[4]) * g
    store(square + j, v)
    store(travelled + j, u * h[2] + delta * delta * h[3])
    store(parameter + j, p - delta * h[1])


@native
def rmsprop(h, parameter, grad, square, mean, buffer, j, OPTIONS: static, W: static):
    """Numbers: sign of the gradient, lr, α, 1 - α, eps, decay, momentum."""
    DECAY, CENTERED, MOMENTUM = OPTIONS
    p = load(parameter + j, W)
    g = decayed(load(grad + j, W) * h[0], p, h[5], DECAY)
    v = load(square + j, W) * h[2] + g * g * h[3]
    store(square + j, v)
    if CENTERED:
        m = load(mean + j, W)
        m = m + (g - m) * h[3]
        store(mean + j, m)
        v = v - m * m
    delta = g / (sqrt(v) + h[4])
    if MOMENTUM:
        delta = load(buffer + j, W) * h[6] + delta
        store(buffer + j, delta)
    store(parameter + j, p - delta * h[1])


@native
def adagrad(h, parameter, grad, total, _two, _three, j, OPTIONS: static, W: static):
    """Numbers: sign of the gradient, lr at this step, eps, decay."""
    (DECAY,) = OPTIONS
    p = load(parameter + j, W)
    g = decayed(load(grad + j, W) * h[0], p, h[3], DECAY)
    v = load(total + j, W) + g * g
    store(total + j, v)
    store(parameter + j, p - g / (sqrt(v) + h[2]) * h[1])
