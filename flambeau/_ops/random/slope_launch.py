"""Launches the integrals behind implicit derivatives.

Arrays are float64 of shape (n,); what is behind their last whole vector is computed of ones.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from flambeau._core.settings import get_num_threads
from flambeau._ops.random import slope_kernels
from flambeau._runtime.launch import Kernel, kernel

GRAIN = 512
"""Numbers that are worth a task."""


@cache
def _lanes() -> int:
    from flambeau._runtime import features

    return features.vector_bits() // 64


@cache
def _kernel(name: str) -> Kernel:
    return kernel(getattr(slope_kernels, name), W=_lanes())


def _integrals(name: str, arrays: tuple[np.ndarray, ...], nodes: np.ndarray,
               weights: np.ndarray) -> np.ndarray:  # fmt: skip
    count = arrays[0].size
    size = -(-count // _lanes()) * _lanes()
    padded = np.ones((len(arrays), size))
    for row, array in zip(padded, arrays, strict=True):
        row[:count] = array
    out = np.empty(size)
    tasks = max(1, min(4 * get_num_threads(), count // GRAIN))
    _kernel(name).parallel(tasks, *padded, out, size, nodes, weights, nodes.size)
    return out[:count]


def gamma(a: np.ndarray, z: np.ndarray, digamma: np.ndarray, nodes: np.ndarray,
          weights: np.ndarray) -> np.ndarray:  # fmt: skip
    """How gamma numbers z move with their concentrations a, whose digamma is given."""
    return _integrals("gamma_slopes", (a, z, digamma), nodes, weights)


def beta(x: np.ndarray, a: np.ndarray, b: np.ndarray, digammas: np.ndarray, nodes: np.ndarray,
         weights: np.ndarray) -> np.ndarray:  # fmt: skip
    """How shares x move with their concentrations a, over 1 - x; `digammas` are
    digamma(a) - digamma(a + b)."""
    return _integrals("beta_slopes", (x, a, b, digammas), nodes, weights)
