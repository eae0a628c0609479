"""Steps of optimizers: one launch over many parameters.

A table has a row for each block: how many elements it steps, and where those of the parameter, its
gradient and what is kept of it lie. The formula is the optimizer's own (`optim/formulas.py`).
"""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native

NUMBER = "number"  # stands in CONSTANTS for what is not constant
MOST_NUMBERS = 10


@native
def step_many(table: pointer(i64), row_length: i64, n0: A, n1: A, n2: A, n3: A, n4: A, n5: A,
              n6: A, n7: A, n8: A, n9: A, FORMULA: static, KEPT: static, CONSTANTS: static,
              MAXIMIZE: static, T: static, A: static, V: static, THREADS: static):  # fmt: skip
    """One step of all parameters: a block does a part of one. Addresses are multiples of V
    elements."""
    row = table + block() * row_length
    count = row[0]
    NUMBERS = (n0, n1, n2, n3, n4, n5, n6, n7, n8, n9)
    VALUES = ()
    K = 0
    for CONSTANT in CONSTANTS:
        if CONSTANT is NUMBER:
            VALUES = VALUES + (NUMBERS[K],)
            K = K + 1
        else:
            VALUES = VALUES + (CONSTANT,)
    parameter = at_address(T, row[1])
    grad = at_address(T, row[2])
    PLACES = ()
    K = 3
    for IS_KEPT in KEPT:
        if IS_KEPT:
            PLACES = PLACES + (at_address(T, row[K]),)
            K = K + 1
        else:
            PLACES = PLACES + (None,)
    whole = count // V * V
    for first, last, WIDTH in ((thread() * V, whole, V), (whole + thread(), count, 1)):
        for j in range(first, last, THREADS * WIDTH):
            OLD = ()
            TARGETS = (parameter,)
            for PLACE in PLACES:
                if PLACE is None:
                    OLD = OLD + (None,)
                else:
                    OLD = OLD + (A(load(PLACE + j, WIDTH, align=WIDTH * T.size)),)
                    TARGETS = TARGETS + (PLACE,)
            p = A(load(parameter + j, WIDTH, align=WIDTH * T.size))
            g = A(load(grad + j, WIDTH, align=WIDTH * T.size))
            if MAXIMIZE:
                NEW = FORMULA(p, -g, *OLD, *VALUES)
            else:
                NEW = FORMULA(p, g, *OLD, *VALUES)
            for K in unroll(len(KEPT) + 1):
                if K < len(NEW):
                    store(TARGETS[K] + j, T(NEW[K]), align=WIDTH * T.size)


@native
def unscale_many(table: pointer(i64), row_length: i64, inverse: pointer(f32), found: pointer(f32),
                 T: static, A: static, V: static, THREADS: static):  # fmt: skip
    """Multiply all gradients of a table by a number; `found` becomes 1 if one was infinite or nan.

    `g - g` is 0, or nan where g is not finite: the sum of these differences tells.
    """
    row = table + block() * row_length
    count = row[0]
    grad = at_address(T, row[1])
    factor = A(inverse[0])
    whole = count // V * V
    for first, last, WIDTH in ((thread() * V, whole, V), (whole + thread(), count, 1)):
        differences = splat(A(0), WIDTH)
        for j in range(first, last, THREADS * WIDTH):
            g = A(load(grad + j, WIDTH, align=WIDTH * T.size))
            differences = differences + (g - g)
            store(grad + j, T(g * factor), align=WIDTH * T.size)
        if is_nan(reduce_add(differences)):
            found[0] = f32(1)


@native
def next_scale(scale: pointer(f32), tracker: pointer(i32), found: pointer(f32), growth: f64,
               backoff: f64, interval: i64):  # fmt: skip
    """The scale of losses after a step: smaller if gradients were not finite, larger after so many
    good steps, as long as it is finite itself."""
    if thread() == 0:
        if found[0] != 0:
            scale[0] = f32(f64(scale[0]) * backoff)
            tracker[0] = i32(0)
        else:
            good = i64(tracker[0]) + 1
            if good == interval:
                grown = f32(f64(scale[0]) * growth)
                if grown - grown == 0:
                    scale[0] = grown
                tracker[0] = i32(0)
            else:
                tracker[0] = i32(good)
