"""Functions of numbers by the special function unit: for half types, which round away what they
lose."""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native

LOG2E = 1.4426950408889634


@native
def exp(x):
    """The exponential."""
    if x.type.element is f32:
        return fast_exp2(x * LOG2E)
    return fast_exp2(f32(x) * LOG2E)
