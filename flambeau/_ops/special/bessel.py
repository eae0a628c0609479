"""Bessel functions of order zero and one, modified, scaled and spherical ones, and Airy's Ai.

All take one floating array of any shape and return a new array of its shape and dtype.
Formulas: DLMF 10.2, 10.17 (large arguments), 10.25, 10.31 (K near zero), 9.7 (Airy).
The numbers in ``bessel_tables.py`` are Chebyshev series of the functions named below.
"""

import math
from collections.abc import Callable

import numpy as np

from flambeau._compiler.vector_math import bessel_tables as tables
from flambeau._ops.special.evaluation import Array, by_region, chebyshev_series, in_float64

Function = Callable[[Array], Array]

_I_LIMIT = 8.0
_K_LIMIT = 2.0
_J_LIMIT = 5.0
_AIRY_LOW = -5.0
_AIRY_HIGH = 2.0
_AIRY_UNDERFLOW = 103.892
_ZETA_LOW = 2.0 / 3.0 * 5.0**1.5
_ZETA_HIGH = 2.0 / 3.0 * 2.0**1.5
_TWO_OVER_PI = 2.0 / math.pi
_EXP_LIMIT = 700.0


def _near(x: Array, limit: float, series: tuple[float, ...]) -> Array:
    """A series in x, x in [0, limit]."""
    return chebyshev_series(x * (2.0 / limit) - 1.0, series)


def _far(x: Array, limit: float, series: tuple[float, ...]) -> Array:
    """A series in limit/x, x >= limit."""
    return chebyshev_series((2.0 * limit) / x - 1.0, series)


def _i0e(x: Array) -> Array:
    """exp(-|x|) I0(x): I0E_NEAR on [0, 8], I0E_FAR / sqrt(x) beyond."""
    size = np.abs(x)
    near = size <= _I_LIMIT
    regions = [
        (near, lambda x: _near(x, _I_LIMIT, tables.I0E_NEAR)),
        (~near, lambda x: _far(x, _I_LIMIT, tables.I0E_FAR) / np.sqrt(x)),
    ]
    return by_region([size], regions)


def _i1e(x: Array) -> Array:
    """exp(-|x|) I1(x): x I1E_NEAR on [0, 8], I1E_FAR / sqrt(x) beyond; 0 at -0."""
    size = np.abs(x)
    near = size <= _I_LIMIT
    regions = [
        (near, lambda x: x * _near(x, _I_LIMIT, tables.I1E_NEAR)),
        (~near, lambda x: _far(x, _I_LIMIT, tables.I1E_FAR) / np.sqrt(x)),
    ]
    value = by_region([size], regions)
    return np.where(x < 0, -value, value)


def _grown(scaled: Array, x: Array) -> Array:
    """scaled * exp(|x|), in two steps against early overflow; nan at infinity, as torch."""
    size = np.abs(x)
    first = np.minimum(size, _EXP_LIMIT)
    value = scaled * np.exp(first) * np.exp(size - first)
    return np.where(np.isinf(x), np.nan, value)


def _i0(x: Array) -> Array:
    return _grown(_i0e(x), x)


def _i1(x: Array) -> Array:
    return _grown(_i1e(x), x)


def _k0_near(x: Array) -> Array:
    """K0_NEAR(x*x) - log(x/2) I0(x), DLMF 10.31.2."""
    return _near(x * x, _K_LIMIT**2, tables.K0_NEAR) - np.log(0.5 * x) * _i0(x)


def _k1_near(x: Array) -> Array:
    """K1_NEAR(x*x) / x + log(x/2) I1(x), DLMF 10.31.1."""
    return _near(x * x, _K_LIMIT**2, tables.K1_NEAR) / x + np.log(0.5 * x) * _i1(x)


def _k0e_far(x: Array) -> Array:
    """exp(x) K0(x) = K0E_FAR / sqrt(x)."""
    return _far(x, _K_LIMIT, tables.K0E_FAR) / np.sqrt(x)


def _k1e_far(x: Array) -> Array:
    """exp(x) K1(x) = K1E_FAR / sqrt(x)."""
    return _far(x, _K_LIMIT, tables.K1E_FAR) / np.sqrt(x)


def _of_positive(limit: float, near: Function, far: Function, at_zero: float) -> Function:
    """A function of x > 0 from its forms up to a limit and beyond it; nan below 0."""

    def function(x: Array) -> Array:
        regions = [
            (x > limit, far),
            ((x > 0.0) & (x <= limit), near),
            (x == 0.0, lambda x: np.full_like(x, at_zero)),
        ]
        return by_region([x], regions)

    return in_float64(function)


def _minus_root(square: Array, index: int) -> Array:
    """x*x minus the square of a root of J, kept in two pieces."""
    return (square - tables.J_ROOTS[index]) - tables.J_ROOTS_LOW[index]


def _j0_near(x: Array) -> Array:
    square = x * x
    roots = _minus_root(square, 0) * _minus_root(square, 1)
    return roots * _near(square, _J_LIMIT**2, tables.J0_NEAR)


def _j1_near(x: Array) -> Array:
    square = x * x
    return x * _minus_root(square, 2) * _near(square, _J_LIMIT**2, tables.J1_NEAR)


def _y0_near(x: Array) -> Array:
    """Y0_NEAR(x*x) + (2/pi) log(x) J0(x)."""
    regular = _near(x * x, _J_LIMIT**2, tables.Y0_NEAR)
    return regular + _TWO_OVER_PI * np.log(x) * _j0_near(x)


def _y1_near(x: Array) -> Array:
    """x Y1_NEAR(x*x) + (2/pi) (log(x) J1(x) - 1/x)."""
    regular = x * _near(x * x, _J_LIMIT**2, tables.Y1_NEAR)
    return regular + _TWO_OVER_PI * (np.log(x) * _j1_near(x) - 1.0 / x)


def _hankel(x: Array, order: int) -> tuple[Array, Array, Array, Array]:
    """sqrt(2/(pi x)) P, sqrt(2/(pi x)) Q, and cos, sin of x - (order + 1/2) pi/2 (DLMF 10.17).

    The angle is never formed: cos and sin of x are combined, so that large x lose nothing.
    """
    series = (tables.HANKEL_P0, tables.HANKEL_Q0), (tables.HANKEL_P1, tables.HANKEL_Q1)
    inverse = _J_LIMIT / x
    t = 2.0 * inverse * inverse - 1.0
    # 1/sqrt(pi x) holds the sqrt(2) of the amplitude and the sqrt(1/2) of the angle.
    amplitude = 1.0 / np.sqrt(np.pi * x)
    first = amplitude * chebyshev_series(t, series[order][0])
    second = amplitude * chebyshev_series(t, series[order][1]) / x
    cosine, sine = np.cos(x), np.sin(x)
    if order == 0:
        return first, second, cosine + sine, sine - cosine
    return first, second, sine - cosine, -(cosine + sine)


def _hankel_j(x: Array, order: int) -> Array:
    first, second, cosine, sine = _hankel(x, order)
    return first * cosine - second * sine


def _hankel_y(x: Array, order: int) -> Array:
    first, second, cosine, sine = _hankel(x, order)
    return first * sine + second * cosine


def _j0(x: Array) -> Array:
    size = np.abs(x)
    near = size <= _J_LIMIT
    return by_region([size], [(near, _j0_near), (~near, lambda x: _hankel_j(x, 0))])


def _j1(x: Array) -> Array:
    size = np.abs(x)
    near = size <= _J_LIMIT
    value = by_region([size], [(near, _j1_near), (~near, lambda x: _hankel_j(x, 1))])
    return np.where(np.signbit(x), -value, value)


def _spherical_j0(x: Array) -> Array:
    """sin(x)/x, 1 at zero, 0 at infinity."""
    safe = np.where((x == 0.0) | np.isinf(x), 1.0, x)
    value = np.where(np.isinf(x), 0.0, np.sin(safe) / safe)
    return np.where(x == 0.0, 1.0, value)


def _airy(x: Array) -> Array:
    regions = [
        ((x >= _AIRY_LOW) & (x <= _AIRY_HIGH), _airy_central),
        ((x > _AIRY_HIGH) & (x <= _AIRY_UNDERFLOW), _airy_decaying),
        ((x > _AIRY_UNDERFLOW) & np.isfinite(x), lambda x: 0.0 * x),
        ((x < _AIRY_LOW) & np.isfinite(x), _airy_oscillating),
    ]
    return by_region([x], regions)


def _airy_central(x: Array) -> Array:
    return _near(x - _AIRY_LOW, _AIRY_HIGH - _AIRY_LOW, tables.AIRY_CENTRAL)


def _airy_decaying(x: Array) -> Array:
    """exp(-zeta) / (2 sqrt(pi) x**(1/4)) AIRY_DECAYING(1/zeta), DLMF 9.7.5."""
    root = np.sqrt(x)
    zeta = 2.0 / 3.0 * x * root
    series = _far(zeta, _ZETA_HIGH, tables.AIRY_DECAYING)
    return np.exp(-zeta) * series / (2.0 * math.sqrt(math.pi) * np.sqrt(root))


def _airy_oscillating(x: Array) -> Array:
    """DLMF 9.7.9: cosine and sine of zeta - pi/4 with series in 1/zeta**2."""
    size = -x
    root = np.sqrt(size)
    zeta = 2.0 / 3.0 * size * root
    t = 2.0 * np.square(_ZETA_LOW / zeta) - 1.0
    cosine, sine = np.cos(zeta), np.sin(zeta)
    first = (cosine + sine) * chebyshev_series(t, tables.AIRY_COSINE)
    second = (sine - cosine) * chebyshev_series(t, tables.AIRY_SINE) / zeta
    return (first + second) / np.sqrt(2.0 * np.pi * root)


i0 = in_float64(_i0)
i0e = in_float64(_i0e)
i1 = in_float64(_i1)
i1e = in_float64(_i1e)
modified_bessel_i0 = i0
modified_bessel_i1 = i1
modified_bessel_k0 = _of_positive(_K_LIMIT, _k0_near, lambda x: np.exp(-x) * _k0e_far(x), np.inf)
modified_bessel_k1 = _of_positive(_K_LIMIT, _k1_near, lambda x: np.exp(-x) * _k1e_far(x), np.inf)
scaled_modified_bessel_k0 = _of_positive(
    _K_LIMIT, lambda x: np.exp(x) * _k0_near(x), _k0e_far, np.inf
)
scaled_modified_bessel_k1 = _of_positive(
    _K_LIMIT, lambda x: np.exp(x) * _k1_near(x), _k1e_far, np.inf
)
bessel_j0 = in_float64(_j0)
bessel_j1 = in_float64(_j1)
bessel_y0 = _of_positive(_J_LIMIT, _y0_near, lambda x: _hankel_y(x, 0), -np.inf)
bessel_y1 = _of_positive(_J_LIMIT, _y1_near, lambda x: _hankel_y(x, 1), -np.inf)
spherical_bessel_j0 = in_float64(_spherical_j0)
airy_ai = in_float64(_airy)
