"""Products of sparse matrices: with dense ones, vectors, and one another."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._ops.sparse.arithmetic import is_sparse
from flambeau._ops.sparse.entries import coalesce, numbers_of, sum_groups
from flambeau._ops.sparse.table import on_sparse, refusal
from flambeau._ops.table.namespace import ops
from flambeau._tensor.sparse import SparseTensor, sparse_tensor
from flambeau._tensor.tensor import wrap


@on_sparse("mm")
def mm(left: Any, right: Any) -> Any:
    """[N, K] times [K, M]: dense [N, M] if one of them is dense, else sparse."""
    if is_sparse(left) and is_sparse(right):
        return _of_sparse(left, right)
    if is_sparse(left):
        return _times_dense(left, right)
    return _times_dense(right.t(), left.t()).t()


@on_sparse("matmul")
def matmul(left: Any, right: Any) -> Any:
    """A product of matrices, or of a matrix and a vector."""
    if left.ndim == right.ndim == 2:
        return mm(left, right)
    if is_sparse(left) and left.ndim == 2 and right.ndim == 1:
        return mv(left, right)
    raise refusal("matmul")


@on_sparse("mv")
def mv(matrix: Any, vector: Any) -> Any:
    """[N, K] times [K]: dense [N]."""
    if not is_sparse(matrix) or is_sparse(vector):
        raise refusal("mv")
    if matrix.size(-1) != vector.size(-1):
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    return _times_dense(matrix, vector.unsqueeze(1)).squeeze(1)


@on_sparse("addmm")
def addmm(addend: Any, left: Any, right: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * addend + alpha * (left @ right)`, which broadcasts the addend."""
    result = mm(left, right) * alpha
    return result if beta == 0 else addend * beta + result


def _times_dense(sparse: SparseTensor, dense: Any) -> Any:
    """Every entry adds its multiple of a row of `dense` to a row of the result."""
    _check_operands(sparse, dense)
    numbers_of(sparse)  # places out of range
    rows, columns = sparse._places._data
    parts = ops.index_select(dense, 0, wrap(np.ascontiguousarray(columns)))
    parts = parts * sparse._entries.unsqueeze(1)  # type: ignore[attr-defined]
    return sum_groups(parts, np.ascontiguousarray(rows), sparse._size[0])


def _check_operands(sparse: SparseTensor, dense: Any) -> None:
    if sparse.sparse_dim() != 2 or sparse.dense_dim():
        raise RuntimeError(f"addmm: matrices expected, got {sparse.sparse_dim()}D tensor")
    if dense.ndim != 2:
        raise RuntimeError(f"addmm: matrices expected, got {dense.ndim}D tensor")
    if dense.shape[0] != sparse._size[1]:
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {sparse._size[1]}, "
                           f"got {dense.shape[0]}")  # fmt: skip
    if dense.dtype is not sparse.dtype:
        raise RuntimeError(f"expected scalar type {sparse.dtype.scalar_name} but found "
                           f"{dense.dtype.scalar_name}")  # fmt: skip


def _of_sparse(left: SparseTensor, right: SparseTensor) -> SparseTensor:
    """Every entry (n, k) of `left` meets the entries of row k of `right`."""
    _check_operands(left, right)
    left, right = coalesce(left), coalesce(right)
    numbers_of(left)
    numbers_of(right)
    starts = np.searchsorted(right._places._data[0], np.arange(right._size[0] + 1))
    inner = left._places._data[1]
    counts = (starts[1:] - starts[:-1])[inner]
    mine = np.repeat(np.arange(len(inner)), counts)
    within = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = starts[inner][mine] + within
    places = np.stack([left._places._data[0][mine], right._places._data[1][theirs]])
    entries = ops.index_select(left._entries, 0, wrap(mine)) * ops.index_select(
        right._entries, 0, wrap(theirs)
    )
    size = (left._size[0], right._size[1])
    return coalesce(sparse_tensor(wrap(places), entries, size, False))
