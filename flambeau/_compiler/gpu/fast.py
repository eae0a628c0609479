"""Functions of numbers by the special function unit: for half types, which round away what they
lose. In bfloat16, `tanh` and `log` have the bits of `vector_math`'s for all 65,536 numbers (as
measured on an H100); `exp` differs for 2 of them, and is used inside of rows only."""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453


@native
def exp(x):
    """The exponential."""
    if x.type.element is f32:
        return fast_exp2(x * LOG2E)
    return fast_exp2(f32(x) * LOG2E)


@native
def log(x):
    """The natural logarithm."""
    return fast_log2(x) * LN2


@native
def tanh(x):
    """The hyperbolic tangent: a series below 0.35, else by the exponential."""
    size = absolute(x)
    z = x * x
    near = fma(size * z, fma(z, fma(z, -0.05396825, 0.13333333), -0.33333333), size)
    far = fma(fast_inverse(fast_exp2(size * (2 * LOG2E)) + 1.0), -2.0, splat(f32(1), x.width))
    return copysign(select(size < 0.35, near, far), x)


SAME_BITS = {"math_tanh": tanh, "math_log": log}
"""What takes the place of functions in bfloat16."""
