"""`torch.functional`: the module in which PyTorch keeps some of the functions of `torch`."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing
from flambeau._ops.table.namespace import get
from flambeau._ops.table.op import BY_NAME

__all__ = [  # noqa: PLE0604, PLE0605, F822
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes",
    "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu",
    "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__ and name in BY_NAME:
        return get(name)
    return missing(__name__, name)
