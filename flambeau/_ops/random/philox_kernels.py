"""Philox's words and what is made of them, for the CPU and for GPUs.

`thread_numbers` is what one thread of a CUDA kernel does; `fill_on_gpu` runs it in threads, and
`fill_on_cpu` goes through the threads by turns. The numbers are those of `_core.philox` and
`_core.philox_fill`, where their formulas are explained.

A number's function gets the four words of a block and the number's place I in it. `HOST` says where
logarithms and exponentials come from: the C library, or `vector_math`; on a GPU the float32 ones,
sine and cosine are the card's own instructions, which PyTorch's kernels use, too: lg2.approx times
log(2) for exponential and geometric numbers, ex2.approx of x / log(2) for exponentials, sin.approx
and cos.approx for normal and Cauchy numbers. The logarithm of normal numbers is exact to a unit of
the last place in CUDA; here, too.
"""

from __future__ import annotations

import math

import numpy as np

from flambeau._compiler import vector_math
from flambeau._compiler.gpu.words import asm, block, fast_exp2, fast_log2, is_emulated, thread
from flambeau._compiler.language import (
    absolute,
    cast,
    ceil,
    external,
    f32,
    f64,
    fma,
    i32,
    i64,
    insert,
    load,
    pointer,
    registers,
    rint,
    select,
    sqrt,
    static,
    store,
    table,
    u8,
    u32,
    u64,
    unroll,
    vector,
)
from flambeau._compiler.native import native
from flambeau._core import special_function_unit as unit
from flambeau._core.philox import KEY_STEPS, MULTIPLIERS, PI_LOW, ROUNDS, TURN

THREADS = 256
LOW_53 = (1 << 53) - 1
SINE = tuple(unit.coefficients().reshape(-1).tolist())
TURNS_OF_ANGLE = float(unit.TURNS)
PLACES = 1 << unit.PLACE_BITS
SEGMENT = 1 << unit.SEGMENT_BITS
LN2 = float(np.float32(math.log(2)))
LOG2_E = float(np.float32(1 / math.log(2)))
PI, PI_SINGLE = math.pi, float(np.float32(math.pi))


# ---- words


@native
def block_of(seed, counter, number):
    """The four words of a thread's block; all are u64."""
    a, b = u32(counter), u32(counter >> 32)
    c, d = u32(number), u32(number >> 32)
    first, second = u32(seed), u32(seed >> 32)
    for ROUND in unroll(ROUNDS):
        p, q = u64(a) * MULTIPLIERS[0], u64(c) * MULTIPLIERS[1]
        a = u32(q >> 32) ^ b ^ (first + (KEY_STEPS[0] * ROUND & 0xFFFFFFFF))
        c = u32(p >> 32) ^ d ^ (second + (KEY_STEPS[1] * ROUND & 0xFFFFFFFF))
        b, d = u32(q), u32(p)
    return a, b, c, d


@native
def unit32(word):
    """A number of (0, 1], f32."""
    return fma(f32(word), 2.0**-32, f32(2.0**-33))


@native
def fraction(low, high, SCALE: static):
    """53 bits of two words in the middle of their step, f64."""
    bits = (u64(low) ^ (u64(high) << 21)) & LOW_53
    return f64(cast(i64, bits)) * SCALE + SCALE / 2


@native
def unit64(w0, w1, w2, w3, I: static):
    """A number of (0, 1], f64."""
    return fraction((w0, w1, w2, w3)[2 * I], (w0, w1, w2, w3)[2 * I + 1], 2.0**-53)


@native
def of_word(w0, w1, w2, w3, I: static):
    """The I-th word."""
    return (w0, w1, w2, w3)[I]


# ---- functions


@native
def log_of(x, HOST: static):
    """The logarithm: of f64 as it is, of f32 rounded once."""
    if HOST:
        return x.type(external("log", f64, f64(x)))
    return vector_math.log(x)


@native
def card_log(x, HOST: static):
    """The logarithm of f32 as CUDA's fast function has it."""
    if HOST or is_emulated():
        return f32(external("log", f64, f64(x)))
    return fast_log2(x) * LN2


@native
def sine_at(place):
    """The sine of a place in the turn (i32 of 25 bits), by segments; f64."""
    quarter = place >> unit.PLACE_BITS
    inside = place & (PLACES - 1)
    inside = select((quarter & 1) != 0, (PLACES - 1) - inside, inside)
    row = i64(inside >> unit.SEGMENT_BITS) * 3
    distance = f64(inside & (SEGMENT - 1)) * 2.0**-unit.PLACE_BITS
    rows = table(f64, SINE)
    value = (rows[row + 2] * distance + rows[row + 1]) * distance + rows[row]
    return select((quarter & 2) != 0, -value, value)


@native
def turns_of(angle):
    """An angle's size in turns of 2**-25, cut towards zero; i32."""
    exact = f64(absolute(angle)) * TURNS_OF_ANGLE
    turns = f32(exact)
    bits = cast(i32, turns)
    cut = cast(f32, select(f64(turns) > exact, bits - 1, bits))
    return i32(cut * (4.0 * PLACES))


@native
def wave(angle, COSINE: static, HOST: static):
    """The special function unit's sine or cosine, f32."""
    if HOST or is_emulated():
        if COSINE:
            return f32(sine_at(turns_of(angle) + PLACES))
        value = f32(sine_at(turns_of(angle)))
        return select(angle < 0.0, -value, value)
    if COSINE:
        return asm(f32, "cos.approx.ftz.f32 $0, $1;", "=f,f", angle)
    return asm(f32, "sin.approx.ftz.f32 $0, $1;", "=f,f", angle)


@native
def half_turns(x, COSINE: static, HOST: static):
    """sin(pi x) or cos(pi x) in f64: x is reduced first, which is exact."""
    quarter = rint(x * 2.0)
    part = x - quarter * 0.5
    angle = part * PI
    rest = fma(part, PI, -angle) + part * PI_LOW
    quarters = i64(quarter) + (1 if COSINE else 0)
    if HOST:
        sine, cosine = external("sin", f64, angle), external("cos", f64, angle)
    else:
        sine, cosine = vector_math.sin(angle), vector_math.cos(angle)
    value = select((quarters & 1) != 0, cosine - sine * rest, sine + cosine * rest)
    return select((quarters & 2) != 0, -value, value)


# ---- numbers: of the words of a block, the I-th; p, q and r are parameters


@native
def uniform32(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """Of [q, r), where p is r - q: what rounds to the end becomes the start."""
    value = T(fma(unit32(of_word(w0, w1, w2, w3, I)), f32(p), f32(q)))
    return select(f32(value) == f32(r), T(f32(q)), value)


@native
def uniform64(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """The same in double precision."""
    value = fma(unit64(w0, w1, w2, w3, I), p, q)
    return select(value == r, q, value)


@native
def standard32(w0, w1, w2, w3, I: static, HOST: static):
    """A standard normal number, f32."""
    logarithm = log_of(unit32(of_word(w0, w1, w2, w3, I & 2)), HOST)
    turn = fma(f32(of_word(w0, w1, w2, w3, I | 1)), f32(TURN), f32(TURN / 2))
    return sqrt(logarithm * -2.0) * wave(turn, I & 1, HOST)


@native
def standard64(w0, w1, w2, w3, I: static, HOST: static):
    """A standard normal number, f64."""
    radius = sqrt(log_of(fraction(w0, w1, 2.0**-53), HOST) * -2.0)
    return radius * half_turns(fraction(w2, w3, 2.0**-52), I, HOST)


@native
def normal32(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """A normal number of deviation p and mean q."""
    return T(fma(standard32(w0, w1, w2, w3, I, HOST), f32(p), f32(q)))


@native
def normal64(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """The same in double precision."""
    return fma(standard64(w0, w1, w2, w3, I, HOST), p, q)


@native
def log_normal32(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """The exponential of a normal number."""
    value = fma(standard32(w0, w1, w2, w3, I, HOST), f32(p), f32(q))
    if HOST or is_emulated():
        return T(f32(external("exp", f64, f64(value))))
    return T(fast_exp2(value * LOG2_E))


@native
def log_normal64(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """The same in double precision."""
    value = fma(standard64(w0, w1, w2, w3, I, HOST), p, q)
    return external("exp", f64, value) if HOST else vector_math.exp(value)


@native
def exponential32(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """p times the logarithm of a unit, where p is below 0; units next to 1 give half a step."""
    u = unit32(of_word(w0, w1, w2, w3, I))
    near = u >= 1.0 - 2.0**-24
    return T(select(near, f32(-(2.0**-24)), card_log(u, HOST)) * f32(p))


@native
def exponential64(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """The same in double precision."""
    u = unit64(w0, w1, w2, w3, I)
    return select(u >= 1.0 - 2.0**-53, f64(-(2.0**-53)), log_of(u, HOST)) * p


@native
def geometric32(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """The logarithm of a unit over p, rounded up."""
    u = unit32(of_word(w0, w1, w2, w3, I))
    if HOST:
        return number(ceil(external("log", f64, f64(u)) / p), T)
    return number(f64(ceil(card_log(u, HOST) / f32(p))), T)


@native
def geometric64(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """The same in double precision."""
    return number(ceil(log_of(unit64(w0, w1, w2, w3, I), HOST) / p), T)


@native
def cauchy32(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """A Cauchy number of scale p and median q."""
    u = unit32(of_word(w0, w1, w2, w3, I))
    low, high = f32(2.0**-23), f32(1.0 - 2.0**-23)
    inner = select(u > high, high, select(u < low, low, u))
    angle = (inner - 0.5) * PI_SINGLE
    if HOST or is_emulated():
        turns = turns_of(angle)
        size = sine_at(turns) / sine_at(turns + PLACES)
        tangent = f32(select(angle < 0.0, -size, size))
    else:
        tangent = wave(angle, 0, HOST) / wave(angle, 1, HOST)
    return T(fma(tangent, f32(p), f32(q)))


@native
def bernoulli32(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """1 where a unit is below p."""
    return select(unit32(of_word(w0, w1, w2, w3, I)) < f32(p), T(1), T(0))


@native
def bernoulli64(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """The same in double precision."""
    return select(unit64(w0, w1, w2, w3, I) < p, T(1), T(0))


@native
def number(value, T: static):
    """A number as any type: integers by way of 64 bits, half types by way of f32."""
    if T.is_float:
        return T(f32(value)) if T.bits == 16 else T(value)
    return T(i64(value))


@native
def integers32(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """q + word % p."""
    return number(q + i64(of_word(w0, w1, w2, w3, I) % u32(p)), T)


@native
def integers64(w0, w1, w2, w3, p, q, r, I: static, T: static, HOST: static):
    """q + (two words, the first on top) % p; a p of 0 stands for 2**64."""
    word = (u64((w0, w1, w2, w3)[2 * I]) << 32) | u64((w0, w1, w2, w3)[2 * I + 1])
    divisor = cast(u64, p)
    rest = word % select(divisor == 0, u64(1), divisor)
    return number(q + cast(i64, select(divisor == 0, word, rest)), T)


# ---- threads


@native
def thread_numbers(out, n, seed, counter, threads, me, p, q, r, NUMBER: static, UNROLL: static,
                   T: static, HOST: static):  # fmt: skip
    """All that thread `me` of so many writes: in each round, its numbers `threads` apart."""
    at = counter
    for start in range(me, n, threads * UNROLL):
        w0, w1, w2, w3 = block_of(cast(u64, seed), cast(u64, at), cast(u64, me))
        for I in unroll(UNROLL):
            if start + I * threads < n:
                out[start + I * threads] = NUMBER(w0, w1, w2, w3, p, q, r, I, T, HOST)
        at = at + 1


@native
def fill_on_gpu(out: pointer(T), state: pointer(i64), n: i64, seed: i64, counter: i64,
                threads: i64, p: P, q: P, r: P, NUMBER: static, UNROLL: static, T: static,
                P: static, IN_GRAPH: static):  # fmt: skip
    """Blocks of 256 threads, threads / 256 of them. IN_GRAPH: the seed, and a counter that
    `counter` is added to, stand in `state`."""
    me = block() * THREADS + thread()
    if IN_GRAPH:
        thread_numbers(out, n, state[0], counter + state[1], threads, me, p, q, r, NUMBER, UNROLL,
                       T, False)  # fmt: skip
    else:
        thread_numbers(out, n, seed, counter, threads, me, p, q, r, NUMBER, UNROLL, T, False)


@native
def drop_on_gpu(x: pointer(T), out: pointer(T), mask: pointer(u8), state: pointer(i64), n: i64,
                seed: i64, counter: i64, threads: i64, keep: f64, scale: f64, T: static,
                LANES: static, IN_GRAPH: static):  # fmt: skip
    """Dropout of dense arrays: a thread serves LANES neighbours with words that follow each other,
    then those `threads` * LANES further on. `mask` says what was kept, `out` is that times scale.
    IN_GRAPH: see `fill_on_gpu`.
    """
    me = block() * THREADS + thread()
    first, from_seed = counter, seed
    if IN_GRAPH:
        first, from_seed = counter + state[1], state[0]
    if LANES == 1:
        drop_single(x, out, mask, n, from_seed, first, threads, me, keep, scale, T)
    else:
        drop(x, out, mask, n, from_seed, first, threads, me, keep, scale, T, LANES)


@native
def drop(x, out, mask, n, seed, counter, threads, me, keep, scale, T: static, LANES: static):
    """What one thread does of it."""
    for start in range(me * LANES, n, threads * LANES):
        first = (start - me * LANES) // threads
        words = registers(vector(u32, LANES), 1)
        for BLOCK in unroll(max(1, LANES // 4)):
            at = counter + first // 4 + BLOCK
            w0, w1, w2, w3 = block_of(cast(u64, seed), cast(u64, at), cast(u64, me))
            for LANE in unroll(min(LANES, 4)):
                word = (w0, w1, w2, w3)[LANE]
                if LANES == 2:
                    word = select(first % 4 == 0, word, (w2, w3)[LANE])
                words[0] = insert(words[0], BLOCK * 4 + LANE, word)
        place = start
        kept = unit32(words[0]) < f32(keep)
        store(mask + place, select(kept, u8(1), u8(0)), align=LANES)
        values = load(x + place, LANES, align=LANES * T.size)
        if T.bits == 64:
            store(out + place, values * select(kept, T(1), T(0)) * scale, align=LANES * T.size)
        else:
            dropped = f32(values) * select(kept, f32(1), f32(0)) * f32(scale)
            store(out + place, T(dropped), align=LANES * T.size)


@native
def drop_single(x, out, mask, n, seed, counter, threads, me, keep, scale, T: static):
    """The same one element at a time: the words of a block go to elements `threads` apart."""
    for start in range(me, n, threads):
        turn = (start - me) // threads
        w0, w1, w2, w3 = block_of(cast(u64, seed), cast(u64, counter + turn // 4), cast(u64, me))
        kept = unit32(nth(w0, w1, w2, w3, turn % 4)) < f32(keep)
        mask[start] = select(kept, u8(1), u8(0))
        if T.bits == 64:
            out[start] = x[start] * select(kept, T(1), T(0)) * scale
        else:
            out[start] = T(f32(x[start]) * select(kept, f32(1), f32(0)) * f32(scale))


@native
def nth(w0, w1, w2, w3, i):
    """One of four words."""
    low = select(i == 0, w0, w1)
    return select(i < 2, low, select(i == 2, w2, w3))


@native
def fill_on_cpu(out: pointer(T), n: i64, seed: i64, counter: i64, threads: i64, p: P, q: P, r: P,
                task: i64, tasks: i64, NUMBER: static, UNROLL: static, T: static,
                P: static):  # fmt: skip
    """The same on the CPU: each task goes through some of the threads."""
    busy = select(threads < n, threads, n)
    for me in range(busy * task // tasks, busy * (task + 1) // tasks):
        thread_numbers(out, n, seed, counter, threads, me, p, q, r, NUMBER, UNROLL, T, True)
