"""fmod, remainder, floor and truncated division, hypot: exact but for the last rounding."""

from __future__ import annotations

from flambeau._compiler.language import (
    absolute,
    any_lane,
    copysign,
    f32,
    f64,
    floor,
    fma,
    larger,
    rint,
    select,
    smaller,
    sqrt,
    trunc,
    unroll,
)
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.parts import INFINITY, NAN

STRIDE = {32: 2.0**100, 64: 2.0**600}
"""What a divisor is multiplied by where the quotient is beyond all numbers; twice is enough."""
LARGE, SMALL = 2.0**500, 2.0**-500
SHRINK, GROW = 2.0**-600, 2.0**600


@native
def fmod(x, y):
    """x - n*y with n = x / y rounded towards 0: exact, the sign is that of x.

    x - rint(x / y) * y is a number without rounding; where the quotient has more digits than a
    number the rest is divided again.
    """
    by = absolute(y)
    rest = absolute(x)
    todo = rest >= by
    while any_lane(todo):
        step = by
        for _ in unroll(2):
            beyond = absolute(rest / step) == INFINITY
            step = select(beyond, step * STRIDE[x.type.bits], step)
        left = fma(-rint(rest / step), step, rest)
        rest = select(todo, left, rest)
        todo = absolute(rest) >= by
    rest = select(rest < 0, rest + by, rest)
    rest = copysign(rest, x)
    return select((y == 0) | (y != y), NAN, rest)


@native
def remainder(x, y):
    """x - n*y with n = x / y rounded down: Python's %, with the sign of y; zeros keep x's."""
    rest = fmod(x, y)
    return select((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


@native
def floor_divide(x, y):
    """x / y rounded down, from the exact remainder; IEEE's quotient where y is 0."""
    rest = fmod(x, y)
    quotient = (x - rest) / y
    quotient = select((rest != 0) & ((y < 0) != (rest < 0)), quotient - 1, quotient)
    down = floor(quotient)
    down = select(quotient - down > 0.5, down + 1, down)
    down = select(quotient == 0, copysign(down, x / y), down)
    return select(y == 0, x / y, down)


@native
def trunc_divide(x, y):
    """x / y rounded towards 0."""
    return trunc(x / y)


@native
def hypot(x, y):
    """sqrt(x*x + y*y) without overflow; infinite if either is."""
    first, second = absolute(x), absolute(y)
    infinite = (first == INFINITY) | (second == INFINITY)
    if x.type.bits == 32:
        a, b = f64(first), f64(second)
        return select(infinite, INFINITY, f32(sqrt(fma(a, a, b * b))))
    large, small = larger(first, second), smaller(second, first)
    shrink, grow = large > LARGE, large < SMALL
    scale = select(shrink, x.type(SHRINK), select(grow, x.type(GROW), 1))
    back = select(shrink, x.type(GROW), select(grow, x.type(SHRINK), 1))
    a, b = large * scale, small * scale
    return select(infinite, INFINITY, sqrt(fma(a, a, b * b)) * back)
