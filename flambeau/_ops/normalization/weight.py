"""Weights by length and direction: `_weight_norm`, `norm_except_dim` (arXiv:1602.07868)."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.binder import plain_type_name, require_tensor
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite


@composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", method=False)
def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The norm of order `pow` over all dims but `dim`, which stay with size 1; -1: over all dims.

    >>> import flambeau as torch
    >>> torch.norm_except_dim(torch.tensor([[3., 4.], [5., 12.]]))
    tensor([[ 5.],
            [13.]])
    """
    require_tensor("norm_except_dim", "v", 1, v)
    if not isinstance(dim, int):
        raise TypeError(
            "norm_except_dim(): argument 'dim' (position 3) must be int, not "
            f"{plain_type_name(dim)}"
        )
    if dim == -1:
        return ops._norm(v, pow)
    if not v.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    kept = wrap_dim(dim, v.ndim)
    if 0 < kept < v.ndim - 1:
        return norm_except_dim.body(v.transpose(0, kept), pow, 0).transpose(0, kept)
    size = v.shape[kept]
    shape = [size if n == kept else 1 for n in range(v.ndim)]
    v = v.contiguous()
    rows = v.view(size, -1) if kept == 0 else v.view(-1, size)
    return ops._norm(rows, pow, 1 if kept == 0 else 0).view(shape)


@composite("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", method=False)
def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """g v / |v|, the norm over all dims but `dim`; -1: over all dims."""
    return v * (g / ops.norm_except_dim(v, 2, dim))
