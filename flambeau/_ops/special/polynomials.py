"""Orthogonal polynomials: Chebyshev T U V W (and shifted), Hermite H and He, Laguerre, Legendre.

All take (x, n), arrays that broadcast; x is float32 or float64, n any real dtype, cut to int64.
The result has the dtype of x, and is 0 for negative n.  Three-term recurrences: DLMF 18.9;
trigonometric forms of the Chebyshev polynomials: DLMF 18.5.1 to 18.5.4.  The arithmetic stays in
the dtype of x: where a recurrence overflows, torch gives nan, and so does it here.
"""

from collections.abc import Callable

import numpy as np

Array = np.ndarray
First = Callable[[Array], Array]
Step = Callable[[int, Array, Array, Array], Array]
Formula = Callable[[Array, Array], Array]

# From this order on torch takes the trigonometric form inside (-1, 1).
_TRIGONOMETRIC_ORDER = {"t": 6, "u": 8, "v": 8, "w": 8}
_HERMITE_LIMIT = {np.dtype(np.float32): 128, np.dtype(np.float64): 512}


def _prepared(x: Array, n: Array) -> tuple[Array, Array]:
    if x.dtype not in _HERMITE_LIMIT:
        raise TypeError(f"polynomials want float32 or float64, got {x.dtype}")
    with np.errstate(invalid="ignore"):
        order = np.asarray(n).astype(np.int64)
    x, order = np.broadcast_arrays(x, order)
    return np.array(x), order


def _recurrence(x: Array, n: Array, first: Array, step: Step, wanted: Array) -> Array:
    """Degrees 0, 1 and first, then ``step(k, x, current, before)``, caught where n is reached."""
    result = np.where(n < 0, x.dtype.type(0), np.where(n == 0, x.dtype.type(1), first))
    highest = int(n[wanted].max(initial=0))
    before, current = np.ones_like(x), first
    for k in range(1, highest):
        before, current = current, step(k, x, current, before)
        np.copyto(result, current, where=n == k + 1)
    return result


def _alternating(n: Array, dtype: np.dtype) -> Array:
    return np.where(n % 2 == 0, 1, -1).astype(dtype)


def _chebyshev(kind: str, x: Array, n: Array) -> Array:
    """x is already shifted; ``n`` int64."""
    first = _CHEBYSHEV_FIRST[kind](x)
    inside = (np.abs(x) < 1) & (n > _TRIGONOMETRIC_ORDER[kind])
    edge = np.abs(x) == 1
    with np.errstate(all="ignore"):
        result = _recurrence(x, n, first, _chebyshev_step, ~inside & ~edge)
        result[inside] = _CHEBYSHEV_INSIDE[kind](np.arccos(x[inside]), n[inside].astype(x.dtype))
    right = edge & (x > 0) & (n >= 0)
    left = edge & (x < 0) & (n >= 0)
    right_growth, left_growth = _CHEBYSHEV_EDGE[kind]
    result[right] = right_growth(n[right])
    result[left] = left_growth(n[left]) * _alternating(n[left], x.dtype)
    return result


def _chebyshev_step(k: int, x: Array, current: Array, before: Array) -> Array:
    return (x + x) * current - before


def _one(n: Array) -> Array:
    return np.ones_like(n)


_CHEBYSHEV_FIRST: dict[str, First] = {
    "t": lambda x: x.copy(),
    "u": lambda x: x + x,
    "v": lambda x: x + x - 1,
    "w": lambda x: x + x + 1,
}
_CHEBYSHEV_INSIDE: dict[str, Formula] = {
    "t": lambda angle, n: np.cos(n * angle),
    "u": lambda angle, n: np.sin((n + 1) * angle) / np.sin(angle),
    "v": lambda angle, n: np.cos((n + 0.5) * angle) / np.cos(angle * 0.5),
    "w": lambda angle, n: np.sin((n + 0.5) * angle) / np.sin(angle * 0.5),
}
# The sizes at x = 1 and at x = -1; at -1 the sign alternates with n.
_CHEBYSHEV_EDGE: dict[str, tuple[First, First]] = {
    "t": (_one, _one),
    "u": (lambda n: n + 1, lambda n: n + 1),
    "v": (_one, lambda n: 2 * n + 1),
    "w": (lambda n: 2 * n + 1, _one),
}


def chebyshev_polynomial_t(x: Array, n: Array) -> Array:
    """T_n(x) = cos(n arccos x)."""
    return _chebyshev("t", *_prepared(x, n))


def chebyshev_polynomial_u(x: Array, n: Array) -> Array:
    """U_n(x) = sin((n+1) angle) / sin(angle), angle = arccos x."""
    return _chebyshev("u", *_prepared(x, n))


def chebyshev_polynomial_v(x: Array, n: Array) -> Array:
    """V_n(x) = cos((n+1/2) angle) / cos(angle/2), angle = arccos x."""
    return _chebyshev("v", *_prepared(x, n))


def chebyshev_polynomial_w(x: Array, n: Array) -> Array:
    """W_n(x) = sin((n+1/2) angle) / sin(angle/2), angle = arccos x."""
    return _chebyshev("w", *_prepared(x, n))


def _shifted(kind: str, x: Array, n: Array) -> Array:
    x, n = _prepared(x, n)
    return _chebyshev(kind, x + x - 1, n)


def shifted_chebyshev_polynomial_t(x: Array, n: Array) -> Array:
    """T_n(2x - 1)."""
    return _shifted("t", x, n)


def shifted_chebyshev_polynomial_u(x: Array, n: Array) -> Array:
    """U_n(2x - 1)."""
    return _shifted("u", x, n)


def shifted_chebyshev_polynomial_v(x: Array, n: Array) -> Array:
    """V_n(2x - 1)."""
    return _shifted("v", x, n)


def shifted_chebyshev_polynomial_w(x: Array, n: Array) -> Array:
    """W_n(2x - 1)."""
    return _shifted("w", x, n)


def _hermite(x: Array, n: Array, factor: int, step: Step) -> Array:
    """nan above the order where the largest values of the dtype are passed, as torch has it."""
    x, n = _prepared(x, n)
    limit = _HERMITE_LIMIT[x.dtype]
    with np.errstate(all="ignore"):
        result = _recurrence(x, n, x * factor, step, n <= limit)
    return np.where(n > limit, x.dtype.type(np.nan), result)


def _fused(a: Array, b: Array, c: Array) -> Array:
    """a b - c, in float32 rounded once: torch's build contracts it, and the recurrence amplifies
    the difference."""
    if a.dtype != np.float32:
        return a * b - c
    return (a.astype(np.float64) * b - c).astype(np.float32)


def hermite_polynomial_h(x: Array, n: Array) -> Array:
    """The physicists' H_n: H_{k+1} = 2x H_k - 2k H_{k-1}."""
    return _hermite(
        x, n, 2, lambda k, x, current, before: _fused(x + x, current, 2 * k * before)
    )  # fmt: skip


def hermite_polynomial_he(x: Array, n: Array) -> Array:
    """The probabilists' He_n: He_{k+1} = x He_k - k He_{k-1}."""
    return _hermite(x, n, 1, lambda k, x, current, before: _fused(x, current, k * before))


def laguerre_polynomial_l(x: Array, n: Array) -> Array:
    """L_n: (k+1) L_{k+1} = (2k + 1 - x) L_k - k L_{k-1}."""
    x, n = _prepared(x, n)
    with np.errstate(all="ignore"):
        result = _recurrence(x, n, 1 - x, _laguerre_step, x != 0)
    return np.where((x == 0) & (n >= 0), x.dtype.type(1), result)


def _laguerre_step(k: int, x: Array, current: Array, before: Array) -> Array:
    return ((2 * k + (1 - x)) * current - k * before) / (k + 1)


def legendre_polynomial_p(x: Array, n: Array) -> Array:
    """P_n: (k+1) P_{k+1} = (2k + 1) x P_k - k P_{k-1}."""
    x, n = _prepared(x, n)
    edge = np.abs(x) == 1
    with np.errstate(all="ignore"):
        result = _recurrence(x, n, x.copy(), _legendre_step, ~edge)
    at_edge = np.where(x > 0, x.dtype.type(1), _alternating(n, x.dtype))
    return np.where(edge & (n >= 0), at_edge, result)


def _legendre_step(k: int, x: Array, current: Array, before: Array) -> Array:
    return ((2 * k + 1) * x * current - k * before) / (k + 1)
