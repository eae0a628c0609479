"""Functions of sparse tensors that are made of dense ones: softmax by groups, diagonals."""

from __future__ import annotations

from typing import Any, NoReturn

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._tensor.overriding import asks
from flambeau._tensor.sparse import SparseTensor


def spmm(input: Any, mat2: Any) -> Any:
    """The product of a sparse or dense matrix and a dense one: `torch.mm`.

    >>> import flambeau as torch
    >>> torch.dsmm(torch.eye(2).to_sparse(), torch.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    return ops.mm(input, mat2)


dsmm = spmm


@asks
def hspmm(mat1: Any, mat2: Any) -> SparseTensor:
    """The product of a sparse [N, K] and a dense [K, M] as a hybrid sparse tensor: its first dim is
    sparse, and rows that no entry of `mat1` reaches are left out.

    >>> import flambeau as torch
    >>> torch.hspmm(torch.tensor([[0., 0.], [0., 2.]]).to_sparse(), torch.ones(2, 3)).values()
    tensor([[2., 2., 2.]])
    """
    mat1 = _matrix("hspmm", mat1, mat2).coalesce()  # type: ignore[attr-defined]
    rows, columns = mat1.indices()
    kept, group = ops.unique_consecutive(rows, return_inverse=True)
    parts = ops.index_select(mat2, 0, columns) * mat1.values().unsqueeze(1)
    values = ops.new_zeros(parts, (kept.shape[0], mat2.shape[1])).index_add(0, group, parts)
    size = (mat1.shape[0], mat2.shape[1])
    return ops.sparse_coo_tensor(kept[None], values, size, is_coalesced=True)


@asks
def smm(input: Any, mat: Any) -> SparseTensor:
    """The product of a sparse [N, K] and a dense [K, M] as a sparse tensor with all elements of the
    rows that entries of `input` reach.

    >>> import flambeau as torch
    >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 2))._nnz()
    4
    """
    return _spread(hspmm(input, mat))


@asks
def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> SparseTensor:
    """`beta * input + alpha * (mat1 @ mat2)` for sparse `input` and `mat1` and a dense `mat2`; the
    result is sparse and not coalesced.

    >>> import flambeau as torch
    >>> eye = torch.eye(2).to_sparse()
    >>> torch.sspaddmm(eye, eye, torch.ones(2, 2), alpha=3).to_dense()
    tensor([[4., 3.],
            [3., 4.]])
    """
    if not isinstance(input, SparseTensor):
        raise NotImplementedError(
            "Could not run 'aten::sspaddmm' with arguments from the 'CPU' backend."
        )
    product = _spread(hspmm(mat1, mat2))
    indices = ops.cat([input._indices(), product._indices()], 1)
    entries = ops.cat([input._entries * beta, product._entries * alpha])  # type: ignore[operator]
    return ops.sparse_coo_tensor(indices, entries, product.shape)


def _matrix(name: str, input: Any, dense: Any) -> SparseTensor:
    if not isinstance(input, SparseTensor) or isinstance(dense, SparseTensor):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend."
        )
    if input.ndim != 2 or dense.ndim != 2:
        raise RuntimeError(
            f"{name}: matrices expected, got {input.ndim}D and {dense.ndim}D tensors"
        )
    if input.shape[1] != dense.shape[0]:
        raise RuntimeError(f"{name}: Argument #3: Expected dim 0 size {input.shape[1]}, got "
                           f"{dense.shape[0]}")  # fmt: skip
    return input


def _spread(hybrid: SparseTensor) -> SparseTensor:
    """A matrix with sparse rows as one whose elements are all sparse."""
    indices: Any = hybrid._indices()
    rows, width = indices[0], hybrid.shape[1]
    columns = ops.arange(width).repeat(rows.shape[0])
    indices = ops.stack([rows.repeat_interleave(width), columns])
    values = ops.reshape(hybrid._entries, (-1,))
    return ops.sparse_coo_tensor(indices, values, hybrid.shape, is_coalesced=True)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The softmax along a dim over the elements that are there: others count as minus infinity.

    >>> import flambeau as torch
    >>> torch.sparse.softmax(torch.eye(2).to_sparse(), 0).values()
    tensor([1., 1.])
    """
    return _normalised(input, dim, dtype, "softmax", _softmax_in_groups)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`, without the way over it."""
    return _normalised(input, dim, dtype, "log_softmax", _log_softmax_in_groups)


def _normalised(given: Any, dim: int, dtype: Any, name: str, in_groups: Any) -> Any:
    input: Any = given
    if not isinstance(given, SparseTensor):
        raise NotImplementedError(
            f"Could not run 'aten::_sparse_{name}' with arguments from the 'CPU' backend."
        )
    dim = wrap_dim(dim, input.dim())
    if dtype is not None:
        input = input.to(dtype)
    if not input.is_floating_point():
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.scalar_name}'")
    input = input.coalesce()
    indices, values = input.indices(), input.values()
    sparse_dims = input.sparse_dim()
    if dim >= sparse_dims:
        found = getattr(ops, name)(values, dim - sparse_dims + 1)
    elif not values.shape[0]:
        found = values
    else:
        found = in_groups(values, *_groups(indices, dim, input.shape))
    return ops.sparse_coo_tensor(indices, found, input.shape, device=found.device,
                                 is_coalesced=True)  # fmt: skip


def _groups(indices: Any, dim: int, shape: Any) -> tuple[Any, int]:
    """Which elements differ in nothing but their place along a dim: a number for each, and how
    many numbers there are."""
    keys = ops.new_zeros(indices, indices.shape[1])
    for other in range(indices.shape[0]):
        if other != dim:
            keys = keys * shape[other] + indices[other]
    found, group = ops.unique(keys, return_inverse=True)
    return group, found.shape[0]


def _shifted(values: Any, group: Any, count: int) -> Any:
    """Values less the largest of their group."""
    largest = ops.new_full(values, (count, *values.shape[1:]), -float("inf"))
    places = group.reshape(-1, *(1,) * (values.dim() - 1)).expand(values.shape)
    largest = largest.scatter_reduce(0, places, values.detach(), "amax")
    return values - largest[group]


def _sums(values: Any, group: Any, count: int) -> Any:
    sums = ops.new_zeros(values, (count, *values.shape[1:])).index_add(0, group, values)
    return sums[group]


def _softmax_in_groups(values: Any, group: Any, count: int) -> Any:
    powers = _shifted(values, group, count).exp()
    return powers / _sums(powers, group, count)


def _log_softmax_in_groups(values: Any, group: Any, count: int) -> Any:
    shifted = _shifted(values, group, count)
    return shifted - _sums(shifted.exp(), group, count).log()


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """A sparse matrix with rows of `diagonals` as diagonals: column j of it holds element j of
    each, as far as it lies inside; `offsets` says which diagonals.

    >>> import flambeau as torch
    >>> torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([1]), (3, 3)).coalesce().indices()
    tensor([[0, 1],
            [1, 2]])
    """
    if layout not in (None, lay.sparse_coo):
        _refuse_layout(layout)
    diagonals = diagonals if diagonals.dim() == 2 else diagonals[None]
    offsets = offsets if offsets.dim() == 1 else offsets[None]
    _check_diagonals(diagonals, offsets, shape)
    rows, columns, values = [], [], []
    for diagonal, offset in zip(diagonals, offsets.tolist(), strict=True):
        first = max(offset, 0)
        last = min(shape[1], shape[0] + offset, diagonals.shape[1])
        if last < first:
            raise RuntimeError(f"Trying to create tensor with negative dimension {last - first}: "
                               f"[2, {last - first}]")  # fmt: skip
        column = ops.arange(first, last, device=diagonals.device)
        rows.append(column - offset)
        columns.append(column)
        values.append(diagonal[first:last])
    indices = ops.stack([ops.cat(rows), ops.cat(columns)])
    return ops.sparse_coo_tensor(indices, ops.cat(values), tuple(shape), device=diagonals.device)


def _refuse_layout(layout: Any) -> NoReturn:
    if layout is lay.strided:
        raise RuntimeError("Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
                           "Strided")  # fmt: skip
    raise NotImplementedError(f"layout {layout} is not implemented in flambeau")


def _check_diagonals(diagonals: Any, offsets: Any, shape: Any) -> None:
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(f"Number of diagonals ({diagonals.shape[0]}) does not match the number "
                           f"of offsets ({offsets.shape[0]})")  # fmt: skip
    if offsets.dtype is not dt.int64:
        name = offsets.dtype.scalar_name
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {name}")
    if len(set(offsets.tolist())) < offsets.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
