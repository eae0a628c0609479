"""`hash_tensor`: one number for many, to tell tensors apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._ops.reductions.sums import finished, refuse
from flambeau._ops.table.dims import wrap_dims
from flambeau._ops.table.op import reduction


def _bits(data: np.ndarray) -> np.ndarray:
    """Elements as 64-bit floats, signed or unsigned integers, seen as bits."""
    wide = {"b": np.uint64, "u": np.uint64, "i": np.int64}.get(data.dtype.kind, np.float64)
    return data.astype(wide).view(np.uint64)


@reduction(
    "hash_tensor(Tensor self, int[1]? dim=None, *, bool keepdim=False, int mode=0) -> Tensor",
    out_type="Expected result to be of dtype uint64, but got {have}",
)
def hash_tensor(data: np.ndarray, dim: Any, keepdim: bool, mode: int) -> np.ndarray:
    """The exclusive or of all elements' 64-bit patterns over dims, as uint64 (mode 0).

    >>> import flambeau as torch
    >>> torch.hash_tensor(torch.tensor([5, 3]))
    tensor(6, dtype=torch.uint64)
    """
    if mode:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    axes = wrap_dims(dim, data.ndim)
    if not data.size and (dim is None or dim == []):
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() "
                           "== 0. Specify the reduction dim with the 'dim' argument.")  # fmt: skip
    for axis in axes:
        if data.shape[axis] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {axis} to have non-zero size.")
    refuse(data, "bool int float", "xor_sum_cpu")
    found = np.bitwise_xor.reduce(_bits(data), axes, keepdims=keepdim)  # type: ignore[call-overload]
    return finished(found, np.uint64)
