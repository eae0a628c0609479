"""`torch.sparse`: sums and products of sparse tensors, and the check of their places."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily
from flambeau._ops.factories.sparse_typed import TYPES
from flambeau._ops.sparse import compressed as forms
from flambeau._ops.table.namespace import ops
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.with_entries import title
from flambeau.sparse.functions import log_softmax, softmax, spdiags
from flambeau.sparse.invariants import check_sparse_tensor_invariants

__all__ = ["addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm",
           "softmax", "spdiags", "sum"]  # fmt: skip


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

    `reduce`, for a CSR and a dense matrix: how the products of a row are combined, `"sum"`,
    `"mean"`, `"amax"` or `"amin"`; 0 for rows without entries.

    Raises:
        RuntimeError: `reduce` is another word, or the first matrix is not CSR.

    >>> import flambeau as torch
    >>> matrix = torch.tensor([[1., 3.], [0., 5.]]).to_sparse_csr()
    >>> torch.sparse.mm(matrix, torch.ones(2, 1), reduce="mean")
    tensor([[2.],
            [5.]])
    """
    if reduce is None:
        return ops.mm(mat1, mat2)
    if reduce not in REDUCTIONS:
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got "
                           f"{reduce}.")  # fmt: skip
    if not getattr(mat1, "is_sparse_csr", False):
        raise RuntimeError("torch.sparse.mm: Expected self to be sparse CSR tensor.")
    return forms.reduced_mm(mat1, mat2, reduce)


REDUCTIONS = ("sum", "mean", "amax", "amin")


def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0,
                  out: Any = None) -> Any:  # fmt: skip
    """`alpha * (mat1 @ mat2) + beta * input` at the places of a CSR `input` [*, N, M] alone, for
    dense `mat1` [*, N, K] and `mat2` [*, K, M].

    Raises:
        RuntimeError: `input` is not CSR, or shapes or types do not fit.

    >>> import flambeau as torch
    >>> pattern = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(pattern, torch.ones(2, 3), torch.ones(3, 2)).values()
    tensor([4., 4.])
    """
    _check_sampled(input, mat1, mat2)
    result = forms.sampled_addmm(input, mat1, mat2, beta, alpha)
    return result if out is None else out.copy_(result)


def _check_sampled(input: Any, mat1: Any, mat2: Any) -> None:
    if not getattr(input, "is_sparse_csr", False):
        kind = title(input.layout)
        raise RuntimeError(f"sampled_addmm: Expected self to be sparse CSR tensor, but got {kind}")
    if mat1.shape[-1] != mat2.shape[-2]:
        shapes = (f"{a}x{b}" for a, b in (mat1.shape[-2:], mat2.shape[-2:]))
        raise RuntimeError("sampled_addmm: mat1 and mat2 shapes cannot be multiplied "
                           f"({' and '.join(shapes)})")  # fmt: skip
    if (mat1.shape[-2], mat2.shape[-1]) != tuple(input.shape[-2:]):
        raise RuntimeError("sampled_addmm: self.shape[-2] must match mat1.shape[-2], and "
                           "self.shape[-1] must match mat2.shape[-1]")  # fmt: skip
    if not input.dtype is mat1.dtype is mat2.dtype:
        raise RuntimeError("sampled_addmm: Expected mat1 and mat2 to have the dtype of self, "
                           f"{input.dtype}, but got {mat1.dtype} and {mat2.dtype}")  # fmt: skip


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """`beta * mat + alpha * (mat1 @ mat2)` for a sparse `mat1` and dense others."""
    return ops.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


__getattr__ = lazily(__name__)
