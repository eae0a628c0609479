"""matrix_exp, matrix_power, cross and vander, over batches."""

import numpy as np

from flambeau._ops.linalg.checks import (
    HALF_TYPES,
    Array,
    check_floating,
    check_square,
    real_dtype,
    type_name,
)
from flambeau._ops.linalg.lu import inv

# Higham, SIAM J. Matrix Anal. Appl. 26 (2005): Pade degrees with the largest 1-norm that each
# one serves at full accuracy (table 2.3; for float32 section 2 of the same paper).
_PADE_DOUBLE = ((3, 1.495585217958292e-2), (5, 2.539398330063230e-1), (7, 9.504178996162932e-1))
_PADE_DOUBLE += ((9, 2.097847961257068), (13, 5.371920351148152))
_PADE_SINGLE = ((3, 4.258730016922831e-1), (5, 1.880152677804762), (7, 3.925724783138660))
_PADE = {np.dtype(np.float32): _PADE_SINGLE, np.dtype(np.float64): _PADE_DOUBLE}


def matrix_exp(a: Array) -> Array:
    """exp(A) by Pade approximation with scaling and squaring; half types through float32."""
    name = "linalg.matrix_exp"
    check_square(a, name)
    check_floating(a, name)
    if a.dtype in HALF_TYPES:
        return matrix_exp(a.astype(np.float32)).astype(a.dtype)
    if a.size == 0:
        return a.copy()
    flat = a.reshape(-1, *a.shape[-2:])
    with np.errstate(all="ignore"):
        norms = np.abs(flat).sum(-2).max(-1)
        finite = np.isfinite(norms)
        whole = np.where(finite[:, None, None], flat, 0)
        result = _scaled_and_squared(whole, np.where(finite, norms, 0))
    result[~finite] = np.nan
    return result.reshape(a.shape)


def _scaled_and_squared(a: Array, norms: Array) -> Array:
    rows = _PADE[real_dtype(a.dtype)]
    largest = norms.max()
    degree, limit = next((row for row in rows if largest <= row[1]), rows[-1])
    squarings = np.maximum(0, np.ceil(np.log2(np.maximum(norms, limit) / limit))).astype(int)
    result = _pade(a * np.exp2(-squarings)[:, None, None].astype(norms.dtype), degree)
    for count in range(1, squarings.max() + 1):
        more = squarings >= count
        result[more] = result[more] @ result[more]
    return result


def _pade(a: Array, degree: int) -> Array:
    """[degree/degree] Pade approximant of exp: (V - U)^-1 (V + U), U odd and V even in A."""
    coefficients = _pade_coefficients(degree)
    identity = np.eye(a.shape[-1], dtype=a.dtype)
    square = a @ a
    even = np.broadcast_to(identity * coefficients[degree - 1], a.shape)
    odd = np.broadcast_to(identity * coefficients[degree], a.shape)
    for k in range(degree - 3, -1, -2):
        even = square @ even + identity * coefficients[k]
        odd = square @ odd + identity * coefficients[k + 1]
    odd = a @ odd
    return np.linalg.solve(even - odd, even + odd)


def _pade_coefficients(degree: int) -> list[float]:
    """b_k / b_0 with b_k = (2q-k)! q! / ((2q)! k! (q-k)!)."""
    coefficients = [1.0]
    for k in range(1, degree + 1):
        ratio = (degree - k + 1) / (k * (2 * degree - k + 1))
        coefficients.append(coefficients[-1] * ratio)
    return coefficients


def matrix_power(a: Array, n: int) -> Array:
    """A multiplied n times by itself; negative n inverts first, zero gives identities."""
    check_square(a, "linalg.matrix_power")
    if n < 0:
        return matrix_power(inv(a), -n)
    if a.dtype in HALF_TYPES:
        return matrix_power(a.astype(np.float32), n).astype(a.dtype)
    result = None
    power = a
    while n:
        if n & 1:
            result = power if result is None else result @ power
        n >>= 1
        if n:
            power = power @ power
    if result is None:
        return np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape).copy()
    return result.copy() if result is a else result


FEW = 4096
"""Vectors of so few elements are multiplied as a whole: four copies, but few calls of NumPy."""


def cross(a: Array, b: Array, dim: int = -1) -> Array:
    """The cross product along ``dim``, which has length three; the other dims broadcast."""
    if a.ndim != b.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if not -a.ndim <= dim < a.ndim:
        bounds = f"[{-a.ndim}, {a.ndim - 1}]"
        raise IndexError(
            f"Dimension out of range (expected to be in range of {bounds}, but got {dim})"
        )
    if a.shape[dim] != 3 or b.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. "
            f"Got {a.shape[dim]} and {b.shape[dim]}"
        )
    if a.dtype == np.bool_:
        raise NotImplementedError(f"\"cross\" not implemented for '{type_name(a)}'")
    if max(a.size, b.size) <= FEW:
        second, third = [1, 2, 0], [2, 0, 1]
        left = a.take(second, dim) * b.take(third, dim)
        return left - a.take(third, dim) * b.take(second, dim)
    a, b = a.swapaxes(dim, 0), b.swapaxes(dim, 0)
    rows = [a[i, ...] * b[j, ...] - a[j, ...] * b[i, ...] for i, j in ((1, 2), (2, 0), (0, 1))]
    shape = [3, *rows[0].shape]
    shape[0], shape[dim] = shape[dim], shape[0]
    result = np.empty(shape, rows[0].dtype)
    result.swapaxes(dim, 0)[...] = rows
    return result


def vander(x: Array, columns: int | None = None) -> Array:
    """Powers 0 to columns - 1 of x in a new last dim; integers become int64."""
    if x.dtype == np.bool_ or x.dtype in HALF_TYPES:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, "
            f"but got {type_name(x)}"
        )
    if columns is None:
        columns = x.shape[-1] if x.ndim else 1
    if columns <= 1:
        raise RuntimeError("N must be greater than 1.")
    dtype = np.dtype(np.int64) if x.dtype.kind in "iu" else x.dtype
    powers = np.ones((*x.shape, columns), dtype)
    powers[..., 1:] = x[..., None]
    return np.cumprod(powers, axis=-1, dtype=dtype)
