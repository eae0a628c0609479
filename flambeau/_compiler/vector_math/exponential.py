"""exp, exp2, expm1, tanh.

Cody and Waite (Software Manual for the Elementary Functions, 1980): x = n*ln2 + r with ln2 in two
parts, a polynomial in r, 2**n by the bits of the exponent.
"""

from __future__ import annotations

from flambeau._compiler.language import absolute, copysign, fma, select
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.parts import (
    ROUNDER,
    between,
    horner,
    power_of_two,
    scaled,
)
from flambeau._compiler.vector_math.tables import EXP, EXP2, TANH

LOG2E = 1.4426950408889634
# ln 2 in two parts; the first ends in zeros, so that its products with exponents are exact.
LN2_HIGH = {32: float.fromhex("0x1.62e4p-1"), 64: float.fromhex("0x1.62e42fefa38p-1")}
LN2_LOW = {32: float.fromhex("0x1.7f7d1cf79abcap-20"),
           64: float.fromhex("0x1.ef35793c7673p-45")}  # fmt: skip
EXP_RANGE = {32: (-104.0, 89.0), 64: (-746.0, 710.0)}
EXP2_RANGE = {32: (-151.0, 129.0), 64: (-1076.0, 1025.0)}
EXPM1_RANGE = {32: (-18.0, 89.0), 64: (-38.0, 710.0)}
TANH_SPLIT = {32: 1.0, 64: 0.625}
TANH_LIMIT = {32: 20.0, 64: 45.0}
"""Twice the size from which tanh rounds to 1."""


@native
def exp_parts(x, below=0):
    """x + below = n * ln2 + r: exp(r) - 1, n, and n in the low bits of a number."""
    BITS = x.type.bits
    shifted = fma(x, LOG2E, ROUNDER[BITS])
    n = shifted - ROUNDER[BITS]
    high = fma(n, -LN2_HIGH[BITS], x)  # exact
    low = fma(n, -LN2_LOW[BITS], below)
    r = high + low
    return high + fma(r * r, horner(r, EXP[BITS]), low), n, shifted


@native
def exp_inside(x):
    """exp(x) where the result is a normal number."""
    small, n, shifted = exp_parts(x)
    return (1 + small) * power_of_two(shifted)


@native
def exp(x):
    """e**x."""
    small, n, shifted = exp_parts(between(x, *EXP_RANGE[x.type.bits]))
    return scaled(1 + small, shifted)


@native
def exp2(x):
    """2**x."""
    BITS = x.type.bits
    inside = between(x, *EXP2_RANGE[BITS])
    shifted = inside + ROUNDER[BITS]
    r = inside - (shifted - ROUNDER[BITS])
    return scaled(fma(r, horner(r, EXP2[BITS]), 1), shifted)


@native
def expm1(x):
    """e**x - 1, exact to the last place near 0."""
    small, n, shifted = exp_parts(between(x, *EXPM1_RANGE[x.type.bits]))
    half = power_of_two(shifted - 1)  # 2**n itself is infinite for the largest results
    result = 2 * fma(half, small, half - 0.5)
    return select(n == 0, select(x == 0, x, small), result)


@native
def tanh(x):
    """The hyperbolic tangent: an odd polynomial near 0, else 1 - 2 / (exp(2|x|) + 1)."""
    BITS = x.type.bits
    size = absolute(x)
    square = x * x
    near = fma(size * square, horner(square, TANH[BITS]), size)
    double = size + size
    inside = select(TANH_LIMIT[BITS] < double, TANH_LIMIT[BITS], double)
    far = 1 - 2 / (exp_inside(inside) + 1)
    return copysign(select(size < TANH_SPLIT[BITS], near, far), x)
