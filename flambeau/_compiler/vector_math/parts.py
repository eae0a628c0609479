"""What the functions are made of: polynomials, exponents, constants by the bits of a type.

Everything works on a number or a vector of f32 or f64. Integers are made of floats, and floats of
integers, by adding 1.5 * 2**23 (or 2**52): the sum's low bits are the integer. That rounds to
nearest even, and needs no conversion between 64-bit integers and floats, which AVX2 lacks.
"""

from __future__ import annotations

from flambeau._compiler.language import (
    cast,
    f32,
    f64,
    fma,
    i32,
    i64,
    select,
    u32,
    u64,
    unroll,
)
from flambeau._compiler.native import native

INFINITY = float("inf")
NAN = float("nan")
UNSIGNED = {32: u32, 64: u64}
SIGNED = {32: i32, 64: i64}
DIGITS = {32: 23, 64: 52}
ROUNDER = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}
ONE_BITS = {32: 0x3F800000, 64: 0x3FF0000000000000}


@native
def horner(x, table: static):
    """A polynomial by Horner's rule; the table begins with the highest power."""
    total = x.type(table[0])
    for c in unroll(table[1:]):
        total = fma(total, x, c)
    return total


@native
def power_of_two(shifted):
    """2**n for n in the low bits of `shifted`; n within the exponents of normal numbers."""
    BITS = shifted.type.bits
    word = cast(UNSIGNED[BITS], shifted) << DIGITS[BITS]
    return cast(FLOAT[BITS], word + ONE_BITS[BITS])


@native
def scaled(p, shifted):
    """p * 2**n for n in the low bits of `shifted`; in two steps, so that the result may be
    subnormal or infinite."""
    BITS = p.type.bits
    word = cast(UNSIGNED[BITS], shifted)
    half = word >> 1
    one = ONE_BITS[BITS]
    first = cast(FLOAT[BITS], (half << DIGITS[BITS]) + one)
    second = cast(FLOAT[BITS], (word - half << DIGITS[BITS]) + one)
    return p * first * second


@native
def between(x, low: static, high: static):
    """x kept within two constants, two instructions; nan stays nan."""
    y = select(low > x, low, x)
    return select(high < y, high, y)


FLOAT = {32: f32, 64: f64}
