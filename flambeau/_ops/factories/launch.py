"""Launches the kernel of evenly spaced numbers."""

from __future__ import annotations

from functools import cache

import numpy as np

from flambeau._ops.factories import kernels
from flambeau._runtime.launch import Kernel, kernel


@cache
def _kernel() -> Kernel:
    return kernel(kernels.spaced)


def spaced(steps: int, first: float, step: float, last: float) -> np.ndarray:
    """float32 numbers from `first` to `last`, which lie `step` apart."""
    out = np.empty(steps, np.float32)
    _kernel()(out, steps, first, step, last)
    return out
