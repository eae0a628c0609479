"""Random words and what is made of them, with the bits of PyTorch's CPU kernels.

The words are those of the 32-bit Mersenne Twister (Matsumoto and Nishimura, 1998). Formulas and
their rounding are those of `_core.random_fill`, where they are explained; here fused steps are
single instructions.
"""

from __future__ import annotations

from flambeau._compiler.language import (
    cast,
    external,
    f32,
    f64,
    fma,
    i32,
    i64,
    i128,
    load,
    pointer,
    select,
    sqrt,
    static,
    store,
    u32,
    u64,
    unroll,
)
from flambeau._compiler.native import native

BLOCK, SHIFT = 624, 397
LOW_53 = (1 << 53) - 1


# ---- words


@native
def twisted(here, behind, far):
    """The next word of the state from three words of the one before."""
    mixed = (here & 0x80000000) | (behind & 0x7FFFFFFF)
    odd = select((behind & 1) != 0, behind.type(0x9908B0DF), behind.type(0))
    return far ^ (mixed >> 1) ^ odd


@native
def tempered(word):
    """A word of the state as it is handed out."""
    a = word ^ (word >> 11)
    b = a ^ ((a << 7) & 0x9D2C5680)
    c = b ^ ((b << 15) & 0xEFC60000)
    return c ^ (c >> 18)


@native
def twist_run(state, first, last, far, W: static):
    """The words from first to last of the next state, W at a time and then one by one; each meets
    the word `far` places on."""
    whole = first + (last - first) // W * W
    for k in range(first, whole, W):
        store(state + k, twisted(load(state + k, W), load(state + k + 1, W),
                                 load(state + k + far, W)))  # fmt: skip
    for k in range(whole, last):
        state[k] = twisted(state[k], state[k + 1], state[k + far])


@native
def twist(state: pointer(u32), out: pointer(u32), last_block: pointer(u32), blocks: i64, W: static):
    """The next blocks of 624 words, the last one in memory of its own; the state becomes its."""
    for block in range(blocks):
        twist_run(state, 0, BLOCK - SHIFT, SHIFT, W)
        twist_run(state, BLOCK - SHIFT, BLOCK - 1, SHIFT - BLOCK, W)
        last = BLOCK - 1
        state[last] = twisted(state[last], state[0], state[SHIFT - 1])
        for k in range(0, BLOCK, W):
            words = tempered(load(state + k, W))
            if block == blocks - 1:
                store(last_block + k, words)
            else:
                store(out + block * BLOCK + k, words)


@native
def word64(words, i):
    """Two words as one of 64 bits, the first on top."""
    return (u64(words[2 * i]) << 32) | u64(words[2 * i + 1])


@native
def unit64(words, i):
    """A number of [0, 1) with 53 bits."""
    return f64(cast(i64, word64(words, i) & LOW_53)) * 2.0**-53


@native
def unit32(word):
    """A number of [0, 1) with 24 bits; also for vectors."""
    return f32(cast(i32, word & 0xFFFFFF)) * 2.0**-24


# ---- uniform numbers


@native
def spread(units, span, start, end, T: static):
    """Units over [start, end); what rounds up to the end becomes the start."""
    value = T(fma(units, span, start))
    return select(units.type.element(value) == end, T(start), value)


@native
def uniform32(words: pointer(u32), out: pointer(T), n: i64, span: f32, start: f32, end: f32,
              task: i64, tasks: i64, T: static, W: static):  # fmt: skip
    """Numbers of [start, end) with one word each; `out` may be the memory of the words."""
    first, last = n * task // tasks, n * (task + 1) // tasks
    whole = first + (last - first) // W * W
    for i in range(first, whole, W):
        units = unit32(load(words + i, W))
        value = T(fma(units, span, start))
        store(out + i, select(f32(value) == end, T(start), value))
    for i in range(whole, last):
        out[i] = spread(unit32(words[i]), span, start, end, T)


@native
def uniform64(words: pointer(u32), out: pointer(f64), n: i64, span: f64, start: f64, end: f64,
              task: i64, tasks: i64):  # fmt: skip
    """The same with two words each, in double precision."""
    for i in range(n * task // tasks, n * (task + 1) // tasks):
        out[i] = spread(unit64(words, i), span, start, end, f64)


# ---- normal numbers


LOG_P = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
         -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
COS_P = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
SIN_P = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
QUARTER_PI = (0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)


@native
def log_single(value):
    """The natural logarithm of positive normal numbers, by the Cephes polynomial."""
    bits = cast(i32, value)
    fraction = cast(f32, (bits & 0x7FFFFF) | 0x3F000000)
    below = fraction < 0.707106781186547524
    exponent = f32((bits >> 23) - select(below, bits.type(127), bits.type(126)))
    x = (fraction - 1.0) + select(below, fraction, value.type(0))
    square = x * x
    result = fma(x, LOG_P[0], value.type(LOG_P[1]))
    for coefficient in LOG_P[2:]:
        result = fma(result, x, value.type(coefficient))
    result = fma(result * x, square, exponent * -2.12194440e-4)
    result = (result - square * 0.5) + x
    return fma(exponent, value.type(0.693359375), result)


@native
def cos_sin_single(angle):
    """Cosine and sine of angles in [0, 2 pi], by the Cephes polynomials."""
    octant = (i32(angle * 1.27323954473516) + 1) & -2
    turns = f32(octant)
    x = angle
    for part in QUARTER_PI:
        x = fma(-turns, angle.type(part), x)
    square = x * x
    cosine = fma(square, COS_P[0], angle.type(COS_P[1]))
    cosine = fma(cosine, square, angle.type(COS_P[2])) * square
    cosine = fma(cosine, square, -(square * 0.5)) + 1.0
    sine = fma(square, SIN_P[0], angle.type(SIN_P[1]))
    sine = fma(sine, square, angle.type(SIN_P[2])) * square
    sine = fma(sine, x, x)
    swapped = (octant & 2) != 0
    cosine_bits = cast(i32, select(swapped, sine, cosine)) ^ (((octant + 2) & 4) << 29)
    sine_bits = cast(i32, select(swapped, cosine, sine)) ^ ((octant & 4) << 29)
    return cast(f32, cosine_bits), cast(f32, sine_bits)


@native
def normal32(words: pointer(u32), out: pointer(f32), blocks: i64, mean: f32, std: f32,
             task: i64, tasks: i64, W: static):  # fmt: skip
    """Box and Muller over blocks of 16: eight radii, eight angles; eight cosines, eight sines.
    `out` may be the memory of the words."""
    for block in range(blocks * task // tasks, blocks * (task + 1) // tasks):
        for k in unroll(0, 8, W):
            low = 16 * block + k
            unit = unit32(load(words + low, W))
            angle = unit32(load(words + low + 8, W)) * 6.283185307179586
            radius = sqrt(log_single(1.0 - unit) * -2.0)
            cosine, sine = cos_sin_single(angle)
            store(out + low, fma(cosine * radius, std, mean))
            store(out + low + 8, fma(sine * radius, std, mean))


@native
def normal64(words: pointer(u32), out: pointer(f64), blocks: i64, mean: f64, std: f64,
             task: i64, tasks: i64):  # fmt: skip
    """The same in double precision, with the C library's functions and two words a number."""
    for item in range(8 * blocks * task // tasks, 8 * blocks * (task + 1) // tasks):
        low = item // 8 * 16 + item % 8
        radius = sqrt(external("log", f64, 1.0 - unit64(words, low)) * -2.0)
        angle = unit64(words, low + 8) * 6.283185307179586
        out[low] = fma(radius * external("cos", f64, angle), std, mean)
        out[low + 8] = fma(radius * external("sin", f64, angle), std, mean)


@native
def exponential(words: pointer(u32), out: pointer(T), n: i64, scale: f64, task: i64, tasks: i64,
                T: static):  # fmt: skip
    """scale * log(1 - u) with two words each."""
    for i in range(n * task // tasks, n * (task + 1) // tasks):
        value = scale * external("log1p", f64, -unit64(words, i))
        out[i] = T(f32(value)) if T.bits == 16 else T(value)


# ---- choices


@native
def bernoulli(words: pointer(u32), out: pointer(T), n: i64, bound: i64, task: i64, tasks: i64,
              T: static):  # fmt: skip
    """1 where a word of 53 bits is below the bound, else 0; two words each."""
    for i in range(n * task // tasks, n * (task + 1) // tasks):
        below = cast(i64, word64(words, i) & LOW_53) < bound
        out[i] = select(below, T(1), T(0))


@native
def bernoulli_each(words: pointer(u32), chances: pointer(f32), out: pointer(T), n: i64,
                   task: i64, tasks: i64, T: static):  # fmt: skip
    """1 where a number of 24 bits is below its own chance; one word each."""
    for i in range(n * task // tasks, n * (task + 1) // tasks):
        out[i] = select(unit32(words[i]) < chances[i], T(1), T(0))


@native
def remainder32(word, magic, extent):
    """word % extent by two products, where magic is 2**64 / extent rounded up (Lemire and others,
    2019); an extent of 1 has the magic 0."""
    low = magic * u64(word)
    return i64((i128(low) * i128(extent)) >> 64)


@native
def number(value, T: static):
    """An integer as any type; half types are rounded by way of f32."""
    return T(f32(value)) if T.is_float and T.bits == 16 else T(value)


@native
def integers32(words: pointer(u32), out: pointer(T), n: i64, extent: i64, magic: i64, low: i64,
               task: i64, tasks: i64, T: static):  # fmt: skip
    """low + word % extent, one word each."""
    for i in range(n * task // tasks, n * (task + 1) // tasks):
        out[i] = number(low + remainder32(words[i], cast(u64, magic), extent), T)


@native
def integers64(words: pointer(u32), out: pointer(T), n: i64, extent: i64, low: i64,
               task: i64, tasks: i64, T: static):  # fmt: skip
    """low + word % extent, two words each; an extent of 0 stands for 2**64."""
    divisor = cast(u64, extent)
    for i in range(n * task // tasks, n * (task + 1) // tasks):
        word = word64(words, i)
        if extent != 0:
            word = word % divisor
        out[i] = number(low + cast(i64, word), T)


@native
def shuffle_places(words: pointer(u32), order: pointer(T), n: i64, T: static):
    """The numbers below n, each swapped with one of those from it on (Fisher and Yates)."""
    for i in range(n):
        order[i] = T(i)
    for i in range(n - 1):
        other = i + i64(words[i] % u32(n - i))
        held = order[i]
        order[i] = order[other]
        order[other] = held


@native
def first_from(sums, n, unit):
    """The place of the first of n ascending numbers that is not below a unit."""
    low = i64(0)
    high = i64(n)
    while low < high:
        middle = (low + high) // 2
        below = f64(sums[middle]) < unit
        low = select(below, middle + 1, low)
        high = select(below, high, middle)
    return low


@native
def categories(weights: pointer(T), sums: pointer(T), words: pointer(u32), out: pointer(i64),
               rows: i64, n: i64, count: i64, task: i64, tasks: i64, T: static):  # fmt: skip
    """For each row of n weights `count` places, drawn in its cumulative sums with two words each;
    `sums` is memory to work in, as large as the weights."""
    for row in range(rows * task // tasks, rows * (task + 1) // tasks):
        given = weights + row * n
        mine = sums + row * n
        total = T(0)
        for k in range(n):
            total = total + given[k]
            mine[k] = total
        for k in range(n):
            mine[k] = mine[k] / total
        mine[n - 1] = T(1)
        for draw in range(row * count, (row + 1) * count):
            out[draw] = first_from(mine, n, unit64(words, draw))
