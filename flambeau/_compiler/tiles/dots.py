"""Dots: sums + products of groups, one group of 32 bits in each lane of i32.

Each is a kernel of (total, a, b, W) that returns `total` with the products added. The names of the
instructions are Intel's and Arm's; what they round, and when, is in Intel's Software Developer's
Manual and in the Arm Architecture Reference Manual.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._compiler.types import Scalar

BFLOAT = Scalar("bfloat", "bfloat", "float", 16)
"""bfloat16 as LLVM names it, for its intrinsics."""
HIGH = -65536
"""The upper half of an i32."""
SMALLEST = 1.1754943508222875e-38
"""The smallest normal number of float32."""
LARGEST = 3.4028234663852886e38
EDGE = 2.0**127
"""The largest, and half of what is too large."""


def every(step, first, width):
    """first, first + step, ...: `width` lanes."""
    return tuple(range(first, first + step * width, step))


@native
def flushed(x):
    """x with subnormal numbers as zeros of their sign."""
    return select(absolute(x) < SMALLEST, copysign(x.type(0.0), x), x)


@native
def lower_number(group, W: static):
    """The first bfloat16 of each group as f32."""
    return cast(vector(f32, W), group << 16)


@native
def upper_number(group, W: static):
    """The second bfloat16 of each group as f32."""
    return cast(vector(f32, W), group & i32(HIGH))


# ---- one number for each lane


@native
def multiply_add(total, a, b, W: static):
    """Numbers of the type of the sums: fma."""
    return fma(a, b, total)


# ---- pairs of bfloat16


@native
def bfloat16_512(total, a, b, W: static):
    """vdpbf16ps (AVX512-BF16)."""
    left = cast(vector(BFLOAT, 32), a)
    right = cast(vector(BFLOAT, 32), b)
    return intrinsic("llvm.x86.avx512bf16.dpbf16ps.512", vector(f32, 16), total, left, right)


@native
def bfloat16_loops(total, a, b, W: static):
    """vdpbf16ps by fma: the second number of each pair first; subnormal numbers count as 0."""
    first = fma(flushed(upper_number(a, W)), flushed(upper_number(b, W)), flushed(total))
    second = fma(flushed(lower_number(a, W)), flushed(lower_number(b, W)), flushed(first))
    return flushed(second)


@native
def bfloat16_wide(total, a, b, W: static):
    """Pairs of bfloat16 by two fma, subnormal numbers and all: for processors without bfloat16."""
    first = fma(upper_number(a, W), upper_number(b, W), total)
    return fma(lower_number(a, W), lower_number(b, W), first)


@native
def bfloat16_128(total, a, b, W: static):
    """bfdot of 128 bits (NEON with BF16)."""
    left = cast(vector(BFLOAT, 8), a)
    right = cast(vector(BFLOAT, 8), b)
    return intrinsic("llvm.aarch64.neon.bfdot.v4f32.v8bf16", vector(f32, 4), total, left, right)


@native
def rest_of_sum(a, b, total):
    """a + b - total, exactly, for total = a + b (Knuth, The Art of Computer Programming, 4.2.2)."""
    back = total - a
    return (a - (total - back)) + (b - back)


@native
def odd_sum(a, b, W: static):
    """a + b rounded to odd: a sum that lies between two numbers is the one whose last bit is 1,
    between the largest and 2^128 the largest, from there on infinite."""
    total = a + b
    rest = rest_of_sum(a, b, total)
    bits = cast(vector(i32, W), total)
    away = select((rest > 0) == (total > 0), bits + 1, bits - 1)
    inexact = ((rest > 0) | (rest < 0)) & ((bits & 1) == 0)
    found = select(inexact, cast(vector(f32, W), away), total)
    half = a * 0.5 + b * 0.5  # whose rest says whether the sum itself reaches 2^128
    short = rest_of_sum(a * 0.5, b * 0.5, half) * copysign(f32(1.0), half) < 0
    rounded_up = (absolute(total) > LARGEST) & (absolute(half) == EDGE) & short
    return select(rounded_up, copysign(f32(LARGEST), half), found)


@native
def bfloat16_odd(total, a, b, W: static):
    """bfdot: both products of a pair are added, then their sum joins, each sum rounded to odd;
    subnormal numbers count as 0 at every step."""
    lower = flushed(flushed(lower_number(a, W)) * flushed(lower_number(b, W)))
    upper = flushed(flushed(upper_number(a, W)) * flushed(upper_number(b, W)))
    return flushed(odd_sum(flushed(total), flushed(odd_sum(lower, upper, W)), W))


# ---- groups of four bytes: unsigned of a, signed of b


@native
def bytes_512(total, a, b, W: static):
    """vpdpbusd (AVX512-VNNI)."""
    return intrinsic("llvm.x86.avx512.vpdpbusd.512", vector(i32, 16), total, a, b)


@native
def bytes_256(total, a, b, W: static):
    """vpdpbusd of 256 bits (AVX-VNNI)."""
    return intrinsic("llvm.x86.avx512.vpdpbusd.256", vector(i32, 8), total, a, b)


@native
def byte_products(total, a, b, W: static, SIGNED: static):
    """Four products of i32 for each sum, which wraps round; b is signed, and a if SIGNED."""
    sums = registers(vector(i32, W), 1, total)
    for SHIFT in unroll(0, 32, 8):
        left = (a << (24 - SHIFT)) >> 24 if SIGNED else (a >> SHIFT) & 255
        right = (b << (24 - SHIFT)) >> 24
        sums[0] = sums[0] + left * right
    return sums[0]


@native
def bytes_loops(total, a, b, W: static):
    """vpdpbusd by multiplications."""
    return byte_products(total, a, b, W, False)


# ---- groups of four bytes: signed of both


@native
def signed_bytes_128(total, a, b, W: static):
    """sdot of 128 bits (NEON with dot products)."""
    left = cast(vector(i8, 16), a)
    right = cast(vector(i8, 16), b)
    return intrinsic("llvm.aarch64.neon.sdot.v4i32.v16i8", vector(i32, 4), total, left, right)


@native
def signed_bytes_loops(total, a, b, W: static):
    """sdot by multiplications."""
    return byte_products(total, a, b, W, True)


# ---- pairs of int16


@native
def words(total, a, b, W: static):
    """Pairs of int16; x86 has an instruction for just this (vpmaddwd), which LLVM finds."""
    left = cast(vector(i16, 2 * W), a)
    right = cast(vector(i16, 2 * W), b)
    even = i32(shuffle(left, None, every(2, 0, W))) * i32(shuffle(right, None, every(2, 0, W)))
    odd = i32(shuffle(left, None, every(2, 1, W))) * i32(shuffle(right, None, every(2, 1, W)))
    return total + (even + odd)
