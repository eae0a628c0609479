"""Launches the samplers that reject. One thread draws: what a number takes is known when it is
drawn.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler import types
from flambeau._core.generator import Generator
from flambeau._ops.random import sampler_kernels
from flambeau._runtime.launch import Kernel, kernel

SINGLE = np.dtype(np.float32)


@cache
def _kernel(name: str, **statics: Any) -> Kernel:
    from flambeau._runtime import features

    lanes = min(8, features.vector_bits() // 32)
    return kernel(getattr(sampler_kernels, name), **statics, W=lanes)


def standard_gamma(alphas: np.ndarray, single: bool, generator: Generator) -> np.ndarray:
    """Gamma numbers, float64 of shape (n,) as the concentrations, which are singles if `single`."""
    out = np.empty_like(alphas)
    run = _kernel("gamma", SINGLE=single)
    generator.one_by_one(lambda *stream: run(alphas, out, alphas.size, *stream))
    return out


def poisson(rates: np.ndarray, generator: Generator) -> np.ndarray:
    """Poisson numbers, float64 of shape (n,) as the rates; NaN from the first wrong rate on."""
    out = np.empty_like(rates)
    run = _kernel("poisson")
    generator.one_by_one(lambda *stream: run(rates, out, rates.size, *stream))
    return out


def binomial(counts: np.ndarray, chances: np.ndarray, generator: Generator) -> np.ndarray:
    """Successes, float32 or float64 of shape (n,) as both arguments."""
    out = np.empty_like(counts)
    run = _kernel("binomial", T=types.OF_NUMPY[counts.dtype.name])
    generator.one_by_one(lambda *stream: run(counts, chances, out, out.size, *stream))
    return out
