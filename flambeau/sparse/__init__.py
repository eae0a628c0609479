"""`torch.sparse`: sums and products of sparse tensors, and the check of their places."""

from __future__ import annotations

from typing import Any

from flambeau._ops.factories.sparse_typed import TYPES
from flambeau._ops.table.namespace import ops
from flambeau._tensor.sparse import SparseTensor
from flambeau.sparse.functions import log_softmax, softmax, spdiags
from flambeau.sparse.invariants import check_sparse_tensor_invariants

__all__ = ["addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "softmax", "spdiags",
           "sum"]  # fmt: skip


globals().update(TYPES)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of the elements of a sparse tensor: dense, or over some dims sparse.

    The result is sparse while a sparse dim is left. Integers keep their type over dims.

    >>> import flambeau as torch
    >>> torch.sparse.sum(torch.eye(3).to_sparse(), 0).to_dense()
    tensor([1., 1., 1.])
    """
    if not isinstance(input, SparseTensor):
        raise RuntimeError("coalesce expected sparse coordinate tensor layout but got Strided")
    if isinstance(dim, (tuple, list)) and not dim:
        return input
    return ops.sum(input, dim, dtype=dtype)


def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of a sparse [N, K] and a dense [K, M], dense; of two sparse ones, sparse.

    Raises:
        NotImplementedError: `reduce` is given, which PyTorch has for CSR tensors.
    """
    if reduce is not None:
        raise NotImplementedError("torch.sparse.mm with reduce is not implemented in flambeau")
    return ops.mm(mat1, mat2)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """`beta * mat + alpha * (mat1 @ mat2)` for a sparse `mat1` and dense others."""
    return ops.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def __getattr__(name: str) -> Any:
    from flambeau._core.missing import missing

    return missing(__name__, name)
