"""Implicit derivatives of gamma and beta numbers, by quadrature.

With the distribution function F and the density p, a number z moves with its parameter a by
`-(dF/da) / p`. The derivative below the integral sign gives, from either end,

    dz/da = -1/p(z) * integral from 0 to z of (d log p / da)(t) p(t) dt
          = +1/p(z) * integral from z to the end of the same,

and of the two the one is taken whose integrand only falls away from z: no digits cancel. With
`t = z * exp(-+s)` the integral runs over s from 0 to infinity, where the double exponential rule
(Takahasi and Mori, 1974) needs few nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._ops.launching.modules import launcher
from flambeau._ops.special.by_name import digamma
from flambeau._runtime import choice

STEP = 0.09
_TURNS = np.arange(-4.2, 7.2, STEP)
NODES = np.exp(_TURNS - np.exp(-_TURNS))
WEIGHTS = STEP * NODES * (1 + np.exp(-_TURNS))

Integrand = Callable[[np.ndarray], np.ndarray]


def gamma(concentration: np.ndarray, output: np.ndarray) -> np.ndarray:
    """How `output`, drawn from a gamma distribution of scale 1, moves with its concentration."""
    a, z = np.broadcast_arrays(concentration, output)
    shape, dtype = a.shape, output.dtype
    a, z = a.ravel().astype(np.float64), z.ravel().astype(np.float64)
    kernels = _compiled(z)
    if kernels is not None:
        size = max(4, dtype.itemsize)
        return _as(kernels.gamma(a, z, digamma(a), NODES, WEIGHTS, size), shape, dtype)
    slope = np.where(z < a, _gamma_below(a, z), _gamma_above(a, z))
    return _as(slope, shape, dtype)


def _compiled(array: np.ndarray) -> Any:
    """The module of the kernels where they are faster, else None."""
    if not choice.compiled("random slopes", array.size):
        return None
    return launcher("random.slope_launch")


def _gamma_below(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    centre = np.log(z) - digamma(a)
    width = 1 / (np.abs(a - z) + np.minimum(np.sqrt(z), a))

    def integrand(s: np.ndarray) -> np.ndarray:
        return (s - centre) * np.exp(-a * s - z * np.expm1(-s))

    return z * _integral(integrand, width)


def _gamma_above(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    centre = np.log(z) - digamma(a)
    width = np.minimum(1 / (np.abs(z - a) + np.sqrt(z)), 1 + np.log1p(1 / z))

    def integrand(s: np.ndarray) -> np.ndarray:
        return (centre + s) * np.exp(a * s - z * np.expm1(s))

    return z * _integral(integrand, width)


def dirichlet(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """How a share `x` moves with its concentration `alpha`, over `1 - x`.

    A share has the beta distribution of `alpha` and of the rest of the `total`.
    """
    x, alpha, total = np.broadcast_arrays(x, alpha, total)
    shape, dtype = x.shape, x.dtype
    x, a, total = (array.ravel().astype(np.float64) for array in (x, alpha, total))
    b = total - a
    kernels = _compiled(x)
    if kernels is not None:
        size = max(4, dtype.itemsize)
        digammas = digamma(a) - digamma(a + b)
        return _as(kernels.beta(x, a, b, digammas, NODES, WEIGHTS, size), shape, dtype)
    below = x * total < a
    slope = np.where(below, _beta_below(x, a, b), _beta_above(x, a, b))
    return _as(slope / (1 - x), shape, dtype)


def _beta_below(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """From 0 to x, with `t = x * exp(-s)`."""
    centre = np.log(x) - digamma(a) + digamma(a + b)
    odds = x / (1 - x)
    curve = np.minimum(np.sqrt(np.maximum(b - 1, 0) * odds / (1 - x)), a)
    width = 1 / (np.maximum(a - (b - 1) * odds, 0) + curve)

    def integrand(s: np.ndarray) -> np.ndarray:
        rest = np.log1p(-odds * np.expm1(-s))
        return (s - centre) * np.exp(-a * s + (b - 1) * rest)

    return x * _integral(integrand, width)


def _beta_above(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """From x to 1, with `1 - t = (1 - x) * exp(-s)`."""
    odds = (1 - x) / x
    centre = np.log(x) - digamma(a) + digamma(a + b)
    curve = np.minimum(np.sqrt(np.maximum(a - 1, 0) * odds / x), b)
    width = 1 / (np.maximum(b - (a - 1) * odds, 0) + curve)

    def integrand(s: np.ndarray) -> np.ndarray:
        rise = np.log1p(-odds * np.expm1(-s))
        return (centre + rise) * np.exp(-b * s + (a - 1) * rise)

    return (1 - x) * _integral(integrand, width)


def _integral(integrand: Integrand, width: np.ndarray) -> np.ndarray:
    """From 0 to infinity, for an integrand that falls off over about `width`."""
    total = np.zeros_like(width)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        with np.errstate(all="ignore"):
            term = integrand(node * width) * weight
        total += np.where(np.isfinite(term), term, 0)
    return total * width


def _as(values: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return values.astype(dtype).reshape(shape)
