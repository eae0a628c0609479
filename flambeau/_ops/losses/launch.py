"""Launches the kernel of the negative log-likelihood."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler.types import OF_NUMPY
from flambeau._ops.losses import kernels
from flambeau._runtime.launch import Kernel, kernel
from flambeau._runtime.observed import flags


@cache
def _kernel(dtype: np.dtype[Any], index: np.dtype[Any]) -> Kernel:
    return kernel(kernels.likelihood, T=OF_NUMPY[dtype.name], I=OF_NUMPY[index.name])


def likelihood(scores: np.ndarray, target: np.ndarray, ignore_index: int,
               mean: bool) -> np.ndarray | None:  # fmt: skip
    """Minus the sum or mean of the scores [N, C] at targets [N], both row-major; None where a
    target is no class."""
    out, bad = np.empty((), scores.dtype), flags(1)
    run = _kernel(scores.dtype, target.dtype)
    run(scores, target, out, bad, *scores.shape, ignore_index, int(mean))
    return None if bad[0] else out
