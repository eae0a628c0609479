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
LEAST = {4: 1e-12, 8: 1e-20}
"""What is left out of an integral, by the bytes of a result: smaller first weights, and what is
behind the place where the integrand has come down to this part of its beginning."""


@cache
def _lanes() -> int:
    from flambeau._runtime import features

    return features.vector_bits() // 64


@cache
def _kernel(name: str) -> Kernel:
    return kernel(getattr(slope_kernels, name), W=_lanes())


def _integrals(name: str, arrays: tuple[np.ndarray, ...], nodes: np.ndarray,
               weights: np.ndarray, bytes: int) -> np.ndarray:  # fmt: skip
    count = arrays[0].size
    size = -(-count // _lanes()) * _lanes()
    padded = np.ones((len(arrays), size))
    for row, array in zip(padded, arrays, strict=True):
        row[:count] = array
    out = np.empty(size)
    tasks = max(1, min(4 * get_num_threads(), count // GRAIN))
    least = LEAST[bytes]
    first = int(np.searchsorted(weights, least))
    _kernel(name).parallel(tasks, *padded, out, size, nodes[first:], weights[first:],
                           nodes.size - first, float(np.log(least)))  # fmt: skip
    return out[:count]


def gamma(a: np.ndarray, z: np.ndarray, digamma: np.ndarray, nodes: np.ndarray,
          weights: np.ndarray, bytes: int) -> np.ndarray:  # fmt: skip
    """How gamma numbers z move with their concentrations a, whose digamma is given, for results
    of so many bytes."""
    return _integrals("gamma_slopes", (a, z, digamma), nodes, weights, bytes)


def beta(x: np.ndarray, a: np.ndarray, b: np.ndarray, digammas: np.ndarray, nodes: np.ndarray,
         weights: np.ndarray, bytes: int) -> np.ndarray:  # fmt: skip
    """How shares x move with their concentrations a, over 1 - x; `digammas` are
    digamma(a) - digamma(a + b)."""
    return _integrals("beta_slopes", (x, a, b, digammas), nodes, weights, bytes)
