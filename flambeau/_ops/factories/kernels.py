"""The kernel of evenly spaced numbers."""

from __future__ import annotations

from flambeau._compiler.language import f32, f64, i64, pointer
from flambeau._compiler.native import native


@native
def spaced(out: pointer(f32), n: i64, first: f64, step: f64, last: f64):
    """n numbers, counted from the nearer end; products of numbers of float32 are exact."""
    half = n // 2
    for k in range(half):
        out[k] = f32(first + f64(k) * step)
    for k in range(half, n):
        out[k] = f32(last - f64(n - 1 - k) * step)
