"""Optimizer steps: one pass over all parameters, their gradients and what is kept of them.

A table has a row for each parameter: its first block, its number of elements, which numbers are
its, and the arrays of parameter, gradient and what is kept. A block is BLOCK elements of one
parameter; tasks share the blocks. The formula is the optimizer's own (flambeau/optim/formulas.py);
its words are here. They round as torch's operators do, which multiply and add in one instruction.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native

BLOCK = 4096
HEAD = 3  # block, elements, numbers
NUMBER = "number"  # stands in CONSTANTS for what is not constant


@native
def place(table: pointer(i64), row_length: i64, block: i64, earlier: i64):
    """Where a block is: the number of its row, the row, its first element and how many it has.

    earlier: the number of a row that does not begin behind the block.
    """
    t = earlier
    while table[(t + 1) * row_length] <= block:
        t += 1
    row = table + t * row_length
    start = (block - row[0]) * BLOCK
    return t, row, start, smaller(row[1] - start, BLOCK)


@native
def step(table: pointer(i64), numbers: pointer(T), row_length: i64, blocks: i64, task: i64,
         tasks: i64, FORMULA: static, KEPT: static, CONSTANTS: static, MAXIMIZE: static,
         T: static, W: static):  # fmt: skip
    """One step of all parameters in the table; a row after the last one begins at `blocks`.

    KEPT says what of the formula's state there is, CONSTANTS which of its numbers are options.
    """
    COUNT = CONSTANTS.count(NUMBER)
    t = 0
    for block in range(blocks * task // tasks, blocks * (task + 1) // tasks):
        t, row, start, count = place(table, row_length, block, t)
        whole = count // W * W
        own = numbers + row[2] * COUNT
        VALUES = ()
        K = 0
        for CONSTANT in CONSTANTS:
            if CONSTANT is NUMBER:
                VALUES = VALUES + (own[K],)
                K = K + 1
            else:
                VALUES = VALUES + (CONSTANT,)
        parameter = cast(pointer(T), row[HEAD]) + start
        grad = cast(pointer(T), row[HEAD + 1]) + start
        PLACES = ()
        K = HEAD + 2
        for IS_KEPT in KEPT:
            if IS_KEPT:
                PLACES = PLACES + (cast(pointer(T), row[K]) + start,)
                K = K + 1
            else:
                PLACES = PLACES + (None,)
        for first, last, WIDTH in ((0, whole, W), (whole, count, 1)):
            for j in range(first, last, WIDTH):
                OLD = ()
                TARGETS = (parameter,)
                for PLACE in PLACES:
                    if PLACE is None:
                        OLD = OLD + (None,)
                    else:
                        OLD = OLD + (load(PLACE + j, WIDTH),)
                        TARGETS = TARGETS + (PLACE,)
                g = load(grad + j, WIDTH)
                if MAXIMIZE:
                    NEW = FORMULA(load(parameter + j, WIDTH), -g, *OLD, *VALUES)
                else:
                    NEW = FORMULA(load(parameter + j, WIDTH), g, *OLD, *VALUES)
                for K in unroll(len(KEPT) + 1):
                    if K < len(NEW):
                        store(TARGETS[K] + j, NEW[K])


@native
def unscale(table: pointer(i64), factor: pointer(T), found: pointer(T), row_length: i64,
            blocks: i64, task: i64, tasks: i64, T: static, W: static):  # fmt: skip
    """Multiply all gradients in the table; `found` becomes 1 if one was infinite or nan.

    A row is its first block, its number of elements, and an address. `g - g` is 0, or nan where g
    is not finite: the sum of these differences tells.
    """
    t = 0
    for block in range(blocks * task // tasks, blocks * (task + 1) // tasks):
        t, row, start, count = place(table, row_length, block, t)
        whole = count // W * W
        grad = cast(pointer(T), row[2]) + start
        for first, last, WIDTH in ((0, whole, W), (whole, count, 1)):
            differences = splat(T(0), WIDTH)
            for j in range(first, last, WIDTH):
                g = load(grad + j, WIDTH)
                differences = differences + (g - g)
                store(grad + j, g * factor[0])
            if is_nan(reduce_add(differences)):
                found[0] = T(1)


@native
def count(places: pointer(i64), counted: pointer(f64), tensors: i64, T: static):
    """Add one to each of the counters, and tell what they are now."""
    for k in range(tensors):
        counter = cast(pointer(T), places[k])
        counter[0] = counter[0] + 1
        counted[k] = f64(counter[0])


@native
def add(value, other, alpha):
    """value + alpha·other."""
    return fma(other, alpha, value)


@native
def addcmul(value, one, other, weight):
    """value + weight·one·other."""
    return fma(one * weight, other, value)


@native
def addcdiv(value, one, other, weight):
    """value + weight·one/other."""
    return value + one * weight / other


@native
def lerp(start, end, weight):
    """start + weight·(end - start), from the nearer end."""
    near = weight < 0.5
    return fma(end - start, select(near, weight, weight - 1), select(near, start, end))


@native
def sign(value):
    """-1, 0 or 1; 0 for nan."""
    one = value.type(1.0)
    return select(value > 0, one, select(value < 0, -one, value.type(0.0)))


@native
def clamped(value, least, most):
    """The value, or the limit that it is beyond; nan stays."""
    return minimum(maximum(value, least), most)


@native
def detached(value):
    """Kernels know no gradients."""
    return value
