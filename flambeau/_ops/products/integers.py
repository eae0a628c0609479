"""Products of bytes: `_int_mm`, with sums of 32 bits."""

from __future__ import annotations

import numpy as np

from flambeau._ops.products import blas
from flambeau._ops.products.errors import c_name
from flambeau._ops.table.op import kernel
from flambeau._ops.table.outputs import EXACT
from flambeau._runtime import choice

INT8, UINT8, INT32 = (np.dtype(kind) for kind in (np.int8, np.uint8, np.int32))
MATRIX = 2


def of_bytes(left: np.ndarray, right: np.ndarray, result: np.dtype = INT32) -> np.ndarray:
    """`left @ right` of int8 in int32 or int8, sums that wrap round; any batches."""
    kernels = blas.products()
    if kernels is not None and choice.compiled("gemm halves", left.size * right.shape[-1]):
        return kernels.gemm(left, right, result=result)  # type: ignore[no-any-return]
    sums = np.matmul(left.astype(np.float64), right.astype(np.float64))  # which are exact
    return sums.astype(np.int64).astype(result)


def _check(left: np.ndarray, right: np.ndarray) -> None:
    for name, data, allowed, words in (
        ("self", left, (INT8, UINT8), "int8 or uint8"),
        ("mat2", right, (INT8,), "of type int8"),
    ):
        if data.ndim != MATRIX:
            raise RuntimeError(
                f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {data.ndim}"
            )
        if data.dtype not in allowed:
            raise RuntimeError(
                f"int_mm_out_cpu: Expected {name} dtype to be {words} but got {c_name(data)}"
            )
    if left.shape[1] != right.shape[0]:
        raise RuntimeError(
            "int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got "
            f"{left.shape[1]} and {right.shape[0]}"
        )


@kernel("_int_mm(Tensor self, Tensor mat2) -> Tensor", method=False, out=True, out_type=EXACT)
def _int_mm(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product of two matrices of bytes in int32: [N, K] of int8 or uint8, [K, M] of int8.

    >>> import flambeau as torch
    >>> a = torch.full((1, 2), 100, dtype=torch.int8)
    >>> torch._int_mm(a, a.T)
    tensor([[20000]], dtype=torch.int32)
    """
    _check(left, right)
    if left.dtype == INT8:
        return of_bytes(left, right)
    signed = (left ^ np.uint8(128)).view(INT8)  # each number less 128
    return of_bytes(signed, right) + 128 * right.sum(0, dtype=INT32)
