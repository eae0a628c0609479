"""Large products of complex numbers as products of real ones, which all threads share.

Rows of the left operand are read as they lie, real and imaginary parts in turns: twice as many
numbers. On the right every number becomes a block of four, so that the result's parts lie in turns:

    (a, b) @ ( c, d)  =  (ac - bd, ad + bc)
             (-d, c)

So bits do not depend on the number of threads; how BLAS cuts such products does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._ops.products import blas

REAL = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}


def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """`left @ right` of matrices or batches of one complex type that fit; None without kernels."""
    kernels = blas.products() if left.dtype in REAL else None
    if kernels is None:
        return None
    if left.shape[-2] >= right.shape[-1] or left.shape[:-2] != right.shape[:-2]:
        return by_real(left, right, kernels)
    turned = by_real(right.swapaxes(-1, -2), left.swapaxes(-1, -2), kernels)
    return np.ascontiguousarray(turned.swapaxes(-1, -2))


def by_real(left: np.ndarray, right: np.ndarray, kernels: Any) -> np.ndarray:
    """The product, by kernels for real numbers; the right operand should be the smaller one."""
    found = kernels.gemm(np.ascontiguousarray(left).view(REAL[left.dtype]), spread(right))
    return found.view(left.dtype)  # type: ignore[no-any-return]


def spread(right: np.ndarray) -> np.ndarray:
    """Every number as a block of two rows and two columns."""
    *batch, depth, columns = right.shape
    found = np.empty((*batch, depth, 2, columns, 2), REAL[right.dtype])
    found[..., 0, :, 0] = found[..., 1, :, 1] = right.real
    found[..., 0, :, 1] = right.imag
    np.negative(right.imag, out=found[..., 1, :, 0])
    return found.reshape(*batch, 2 * depth, 2 * columns)
