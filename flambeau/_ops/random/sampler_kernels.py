"""Samplers that reject, one number after another: each takes as many words as it happens to need.

Formulas, their order and their rounding are those of `_core.random_sample`, where they are
explained. The generator lies in memory while a kernel runs: `state` is the engine's, `block` the
624 words that are made of it, `place` holds the next one's number and how often the block was
made anew, `waiting` the second number of a normal pair and whether there is one.
"""

from __future__ import annotations

from flambeau._compiler.language import (
    absolute,
    cast,
    ceil,
    external,
    f32,
    f64,
    floor,
    i64,
    pointer,
    select,
    sqrt,
    static,
    table,
    u32,
    u64,
)
from flambeau._compiler.native import native
from flambeau._ops.random.kernels import BLOCK, LOW_53, twist

THIRD = 0.3333333432674408
SQUEEZE = 0.03310000151395798
TURN = 6.283185307179586
LOWEST_INTEGER = -(2.0**63)
"""What the processor makes of a number that no 64-bit integer holds."""
TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip
"""log(k!) less Stirling's formula, for k below ten."""


# ---- draws


@native(outline=True)
def renew(state, block, place, W: static):
    """The next block of words."""
    twist(state, block, block, i64(1), W)
    place[0] = 0
    place[1] = place[1] + 1


@native
def next_word(state, block, place, W: static):
    """The next word, as u64."""
    if place[0] == BLOCK:
        renew(state, block, place, W)
    at = place[0]
    place[0] = at + 1
    return u64(block[at])


@native(outline=True)
def unit(state, block, place, W: static):
    """The next number of [0, 1), of two words."""
    high = next_word(state, block, place, W)
    low = next_word(state, block, place, W)
    return f64(cast(i64, ((high << 32) | low) & LOW_53)) * 2.0**-53


@native(outline=True)
def normal(state, block, place, waiting, W: static):
    """The next standard normal number; they are made in pairs."""
    value = waiting[0]
    if waiting[1] != 0.0:
        waiting[1] = 0.0
    else:
        angle = unit(state, block, place, W) * TURN
        size = unit(state, block, place, W)
        radius = sqrt(external("log1p", f64, -size) * -2.0)
        waiting[0] = radius * external("sin", f64, angle)
        waiting[1] = 1.0
        value = radius * external("cos", f64, angle)
    return value


@native
def rounded(value, SINGLE: static):
    """A number as an f32 would hold it where SINGLE."""
    return f64(f32(value)) if SINGLE else value


# ---- gamma


@native
def gamma_above(alpha, scale, state, block, place, waiting, SINGLE: static, W: static):
    """`scale` times a gamma number of a concentration of 1 and more (Marsaglia and Tsang)."""
    d = rounded(alpha - THIRD, SINGLE)
    c = 1.0 / sqrt(d * 9.0)
    value = f64(0.0)
    searching = i64(1)
    while searching != 0:
        x = normal(state, block, place, waiting, W)
        y = c * x + 1.0
        if (y <= 0.0) == False:  # noqa: E712
            v = y * y * y
            u = 1.0 - unit(state, block, place, W)
            square = x * x
            if u < 1.0 - SQUEEZE * square * square:
                searching = 0
            else:
                bound = 0.5 * square + d * (1.0 - v + external("log", f64, v))
                if external("log", f64, u) < bound:
                    searching = 0
            value = scale * d * v
    return value


@native
def gamma(alphas: pointer(f64), out: pointer(f64), n: i64, state: pointer(u32),
          block: pointer(u32), place: pointer(i64), waiting: pointer(f64), SINGLE: static,
          W: static):  # fmt: skip
    """Gamma numbers of scale 1; SINGLE: the concentrations are singles, and what is computed of
    them alone is one too."""
    for i in range(n):
        alpha = alphas[i]
        if alpha == 0.0:
            out[i] = 0.0
        else:
            scale = f64(1.0)
            if alpha < 1.0:
                power = f64(f32(1.0) / f32(alpha)) if SINGLE else 1.0 / alpha
                rest = 1.0 - unit(state, block, place, W)
                scale = external("pow", f64, rest, power)
                alpha = rounded(alpha + 1.0, SINGLE)
            out[i] = gamma_above(alpha, scale, state, block, place, waiting, SINGLE, W)


# ---- Poisson


@native
def poisson_by_rejection(rate, state, block, place, W: static):
    """A number of a rate of 10 and more (Hormann)."""
    log_rate = external("log", f64, rate)
    b = 0.931 + 2.53 * sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    k = f64(0.0)
    searching = i64(1)
    while searching != 0:
        u = unit(state, block, place, W) - 0.5
        v = unit(state, block, place, W)
        us = 0.5 - absolute(u)
        number = floor((2.0 * a / us + b) * u + rate + 0.43)
        fits = absolute(number) < -LOWEST_INTEGER
        k = select(fits, number, f64(LOWEST_INTEGER))
        if (us >= 0.07) & (v <= squeeze):
            searching = 0
        elif (k >= 0.0) & ((us >= 0.013) | (v <= us)):
            left = external("log", f64, v) + external("log", f64, inverse_alpha)
            left = left - external("log", f64, a / (us * us) + b)
            if left <= k * log_rate - rate - external("lgamma", f64, k + 1.0):
                searching = 0
    return k


@native
def poisson_by_product(rate, state, block, place, W: static):
    """A number of a small rate: how many units multiply to what is above exp(-rate)."""
    limit = external("exp", f64, -rate)
    product = unit(state, block, place, W)
    count = f64(0.0)
    while product > limit:
        product = product * unit(state, block, place, W)
        count = count + 1.0
    return count


@native
def poisson(rates: pointer(f64), out: pointer(f64), n: i64, state: pointer(u32),
            block: pointer(u32), place: pointer(i64), waiting: pointer(f64),
            W: static):  # fmt: skip
    """Poisson numbers; those from the first wrong rate on are NaN."""
    i = i64(0)
    right = i64(1)
    while i < n:
        rate = rates[i]
        value = f64(0.0)
        if (rate >= 0.0) == False:  # noqa: E712
            right = 0
        if right == 0:
            value = f64(float("nan"))
        elif rate >= 10.0:
            value = poisson_by_rejection(rate, state, block, place, W)
        elif rate > 0.0:
            value = poisson_by_product(rate, state, block, place, W)
        out[i] = value
        i = i + 1


# ---- binomial


@native
def stirling_tail(k):
    """log(k!) less Stirling's formula."""
    above = k + 1.0
    square = above * above
    tail = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / above
    if k < 10.0:
        tail = table(f64, TAILS)[i64(k)]
    return tail


@native(outline=True)
def log_ratio(n, m, k, r):
    """The logarithm of the probability of k over that of the mode m."""
    ratio = (m + 0.5) * external("log", f64, (m + 1.0) / (r * (n - m + 1.0)))
    ratio = ratio + (n + 1.0) * external("log", f64, (n - m + 1.0) / (n - k + 1.0))
    ratio = ratio + (k + 0.5) * external("log", f64, r * (n - k + 1.0) / (k + 1.0))
    ratio = ratio + (stirling_tail(m) + stirling_tail(n - m))
    return ratio - stirling_tail(k) - stirling_tail(n - k)


@native
def binomial_by_rejection(count, chance, state, block, place, T: static, W: static):
    """A number for many expected successes (Hormann). Names in formulas are the paper's."""
    deviation = f64(sqrt(count * chance * (1.0 - chance)))
    n = f64(count)
    p = f64(chance)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = f64(count * chance) + 0.5
    squeeze = 0.92 - 4.2 / b
    r = f64(chance / (1.0 - chance))
    alpha = (2.83 + 5.1 / b) * deviation
    m = f64(floor((count + 1.0) * chance))
    k = f64(0.0)
    searching = i64(1)
    while searching != 0:
        u = unit(state, block, place, W) - 0.5
        v = unit(state, block, place, W)
        us = 0.5 - absolute(u)
        k = floor((2.0 * a / us + b) * u + c)
        if ((k < 0.0) | (k > n)) == False:  # noqa: E712
            if (us >= 0.07) & (v <= squeeze):
                searching = 0
            else:
                left = external("log", f64, v * alpha / (a / (us * us) + b))
                if left <= log_ratio(n, m, k, r):
                    searching = 0
    return T(k)


@native
def binomial_by_gaps(count, chance, state, block, place, T: static, W: static):
    """A number for few expected successes: how many gaps between them fit into `count` trials."""
    log_failure = f64(external("log1pf" if T.bits == 32 else "log1p", T, -chance))
    limit = f64(count)
    total = f64(0.0)
    successes = select(limit == limit, f64(-1.0), limit)
    while total <= limit:
        gap = external("log", f64, unit(state, block, place, W)) / log_failure
        total = total + ceil(gap)
        successes = successes + 1.0
    return T(successes)


@native
def few_or_many(count, chance, state, block, place, T: static, W: static):
    """A number for a chance of at most one half."""
    value = T(0.0)
    if count * chance >= 10.0:
        value = binomial_by_rejection(count, chance, state, block, place, T, W)
    else:
        value = binomial_by_gaps(count, chance, state, block, place, T, W)
    return value


@native
def binomial(counts: pointer(T), chances: pointer(T), out: pointer(T), n: i64,
             state: pointer(u32), block: pointer(u32), place: pointer(i64), waiting: pointer(f64),
             T: static, W: static):  # fmt: skip
    """Successes in so many trials; what is computed of the arguments alone is of their type."""
    for i in range(n):
        count = counts[i]
        chance = chances[i]
        value = T(0.0)
        if (count <= 0.0) | (chance <= 0.0):
            value = T(0.0)
        elif chance >= 1.0:
            value = count
        elif chance <= 0.5:
            value = few_or_many(count, chance, state, block, place, T, W)
        elif chance > 0.5:
            failure = T(1.0 - f64(chance))
            value = count - few_or_many(count, failure, state, block, place, T, W)
        else:
            value = T(float("nan"))
        out[i] = value
