"""Sums and norms of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._ops.sparse.entries import coalesce
from flambeau._ops.sparse.table import method, on_sparse
from flambeau._ops.table.dims import wrap_dims
from flambeau._ops.table.namespace import ops
from flambeau._tensor.sparse import SparseTensor, sparse_tensor
from flambeau._tensor.tensor import wrap


@on_sparse("sum.dim_IntList")
def total(tensor: SparseTensor, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum of all elements, dense; over some dims sparse while a sparse dim is left."""
    if dim is None and not keepdim:
        return ops.sum(tensor._entries, dtype=dtype)
    dims = wrap_dims(dim, tensor.ndim)
    if dtype is not None:
        tensor = tensor.to(dtype)  # type: ignore[attr-defined]
    result = _over_dims(coalesce(tensor), dims)
    for kept in sorted(dims) if keepdim else ():
        result = ops.unsqueeze(result, kept)
    return result


def _over_dims(tensor: SparseTensor, dims: Any) -> Any:
    sparse_dim = tensor.sparse_dim()
    dense = [1 + dim - sparse_dim for dim in dims if dim >= sparse_dim]
    entries = tensor._entries
    if dense:
        entries = ops.sum(entries, dense, dtype=tensor.dtype)
    kept = [dim for dim in range(sparse_dim) if dim not in dims]
    if not kept:
        return ops.sum(entries, 0, dtype=tensor.dtype)
    places = np.ascontiguousarray(tensor._places._data[kept])
    size = [n for dim, n in enumerate(tensor._size) if dim not in dims]
    result = coalesce(sparse_tensor(wrap(places), entries, size, len(kept) == sparse_dim))
    result._title = "SparseSumBackward0"
    return result


@method
def norm(self: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False,
         dtype: Any = None) -> Any:  # fmt: skip
    """The vector norm of all elements."""
    if dim is not None and len(wrap_dims(dim, self.ndim)) != self.ndim:
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must "
                           "either be empty or contain all dimensions of the input")  # fmt: skip
    return ops.norm(coalesce(self)._entries, 2 if p in (None, "fro") else p, dtype=dtype)
