"""Steps of Muon for small matrices: momentum, the iteration of Newton and Schulz, the parameter.

A table has a row for each parameter, as in `optimizer`, and behind the arrays its rows and columns
and how much larger its steps are. A task steps whole parameters: those whose first block is its.
In its memory the matrix lies wide, in rows of whole vectors, with as many rows as fill vectors;
what is beyond is 0. Numbers are f32 there, rounded to bfloat16 where torch's operators round.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.optimizers.kernels.steps import BLOCK, HEAD, lerp  # noqa: F401

MOST = 64  # rows or columns: the other side may be any length
TILE = 4  # rows that are multiplied side by side


def room_for(shape: tuple[int, ...], width: int) -> int:
    """Elements of memory that the step of a matrix takes."""
    width = max(width, TILE)
    side, length = (-(-n // width) * width for n in sorted(shape))
    return 2 * (side * length + width) + 2 * side * side + side * width


@native
def step(table: pointer(i64), lr: f64, newest: f64, momentum: f64, shrink: f64, least: f64, a: f32,
         b: f32, c: f32, turns: i64, scales: pointer(f64), scratch: pointer(f32), row_length: i64,
         parameters: i64, room: i64, task: i64, tasks: i64, NESTEROV: static, T: static,
         W: static):  # fmt: skip
    """One step of all parameters in the table; `scratch` has `room` elements for each task."""
    STEP = TILE if W < TILE else W
    blocks = table[parameters * row_length]
    begin = blocks * task // tasks
    end = blocks * (task + 1) // tasks
    flat = scratch + task * room
    for t in range(parameters):
        row = table + t * row_length
        if row[0] >= begin and row[0] < end:
            size, rows, columns = row[1], row[HEAD + 3], row[HEAD + 4]
            p, g = cast(pointer(T), row[HEAD]), cast(pointer(T), row[HEAD + 1])
            kept = cast(pointer(T), row[HEAD + 2])
            direct(flat, g, kept, size, T(newest), T(momentum), f32(least), NESTEROV, W)
            side, length = smaller(rows, columns), larger(rows, columns)
            high, wide = (side + STEP - 1) // STEP * STEP, (length + W - 1) // W * W
            along = columns if rows > columns else 1
            across = 1 if rows > columns else columns
            x = flat + (size + W - 1) // W * W
            gram = x + high * wide
            bent = gram + high * high
            zero_memory(x, high * wide)
            zero_memory(gram, high * high)
            for k in range(side):
                for j in range(length):
                    x[k * wide + j] = flat[k * across + j * along]
            for _turn in range(turns):
                multiply_own(gram, x, side, high, wide, W)
                bend(bent, gram, side, high, b, c, W)
                multiply_into(x, bent, bent + high * high, side, high, wide, a, W)
            for k in range(side):
                for j in range(length):
                    flat[k * across + j * along] = x[k * wide + j]
            apply(p, flat, size, T(shrink), T(-lr * scales[t]), W)


@native
def half(x):
    """Rounded to bfloat16."""
    return f32(bf16(x))


@native
def direct(flat, g, kept, size, newest, momentum, least, NESTEROV: static, W: static):
    """Move the momentum, and write the direction over its norm."""
    whole = size // W * W
    total = direct_part(flat, g, kept, 0, whole, newest, momentum, NESTEROV, W)
    total += direct_part(flat, g, kept, whole, size, newest, momentum, NESTEROV, 1)
    norm = maximum(half(sqrt(total)), half(least))
    for first, last, WIDTH in ((0, whole, W), (whole, size, 1)):
        for j in range(first, last, WIDTH):
            store(flat + j, half(load(flat + j, WIDTH) / norm))


@native
def direct_part(flat, g, kept, first, last, newest, momentum, NESTEROV: static, W: static):
    """The direction from one element up to another; the sum of its squares."""
    total = splat(f32(0), W)
    for j in range(first, last, W):
        grad = load(g + j, W)
        now = lerp(load(kept + j, W), grad, newest)
        store(kept + j, now)
        value = half(f32(lerp(grad, now, momentum) if NESTEROV else now))
        store(flat + j, value)
        total = fma(value, value, total)
    return reduce_add(total)


@native
def multiply_own(gram, x, side, high, wide, W: static):
    """gram = x xᵀ, of which the lower half is computed, TILE columns at a time."""
    V = vector(f32, W)
    for i in range(side):
        for start in range(0, i + 1, TILE):
            sums = registers(V, TILE)
            for j in range(0, wide, W):
                value = load(x + i * wide + j, W)
                for K in unroll(TILE):
                    sums[K] = fma(value, load(x + (start + K) * wide + j, W), sums[K])
            for K in unroll(TILE):
                if start + K <= i:
                    rounded = half(reduce_add(sums[K]))
                    gram[i * high + start + K] = rounded
                    gram[(start + K) * high + i] = rounded


@native
def bend(bent, gram, side, high, b, c, W: static):
    """bent = b gram + c gram gram."""
    for i in range(high):
        for j in range(0, high, W):
            total = splat(f32(0), W)
            for k in range(side):
                total = fma(load(gram + k * high + j, W), gram[i * high + k], total)
            store(bent + i * high + j, half(fma(total, c, load(gram + i * high + j, W) * b)))


@native
def multiply_into(x, bent, strip, side, high, wide, a, W: static):
    """x ← a x + bent x, a vector of columns at a time, which is copied to `strip` first."""
    V = vector(f32, W)
    for j in range(0, wide, W):
        for k in range(side):
            store(strip + k * W, load(x + k * wide + j, W))
        for i in range(0, side, TILE):
            sums = registers(V, TILE)
            for k in range(side):
                value = load(strip + k * W, W)
                for K in unroll(TILE):
                    sums[K] = fma(value, bent[(i + K) * high + k], sums[K])
            for K in unroll(TILE):
                if i + K < side:
                    own = load(strip + (i + K) * W, W)
                    store(x + (i + K) * wide + j, half(fma(own, a, sums[K])))


@native
def apply(p, flat, size, shrink, factor, W: static):
    """p ← shrink p + factor flat."""
    whole = size // W * W
    for first, last, WIDTH in ((0, whole, W), (whole, size, 1)):
        for j in range(first, last, WIDTH):
            value = load(flat + j, WIDTH)
            store(p + j, fma(p.element(value), factor, load(p + j, WIDTH) * shrink))
