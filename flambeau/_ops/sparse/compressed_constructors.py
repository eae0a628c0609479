"""Making compressed sparse tensors: `sparse_csr_tensor` and its kin, and `to_sparse_csr`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core.device import check_available
from flambeau._ops.sparse import compressed  # noqa: F401  (what such tensors can do)
from flambeau._ops.sparse.compressing import to_layout
from flambeau._ops.sparse.constructors import Invariants, check_pinned_parts
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite
from flambeau._tensor.compressed import (
    BLOCKS,
    LAYOUTS,
    ROWS,
    CompressedTensor,
    compressed_tensor,
    title,
)
from flambeau._tensor.conversion import tensor as make_tensor
from flambeau._tensor.sparse import alias
from flambeau._tensor.tensor import Tensor, method, wrap

INDEX_TYPES = (dt.int32, dt.int64)


@composite(
    "sparse_compressed_tensor(Tensor compressed_indices, Tensor plain_indices, Tensor values,"
    " int[]? size=None, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,"
    " bool pin_memory=False, bool requires_grad=False, bool? check_invariants=None) -> Tensor",
    bare=True,
    method=False,
)
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> CompressedTensor:
    """A sparse tensor in one of the compressed layouts, from its parts.

    `compressed_indices` [*batch, lines + 1] say where each line begins in `plain_indices`
    [*batch, nnz] and `values` [*batch, nnz, *block, *dense]; lines are rows for `sparse_csr` and
    `sparse_bsr`, columns for `sparse_csc` and `sparse_bsc`. Without `size` the matrix is as large
    as they need. Parts that contradict one another are found here with `check_invariants`.

    Raises:
        RuntimeError: no compressed layout is given, or the shapes and types of parts do not fit.

    >>> import flambeau as torch
    >>> torch.sparse_compressed_tensor([0, 1, 3], [1, 0, 2], [1., 2., 3.],
    ...                                layout=torch.sparse_csr).to_dense()
    tensor([[0., 1., 0.],
            [2., 0., 3.]])
    """
    if layout not in LAYOUTS:
        kind = "none" if layout is None else title(layout)
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but "
                           f"got {kind}")  # fmt: skip
    if pin_memory is not False:
        check_pinned_parts("sparse_compressed_tensor", pin_memory)
    place = check_available(device if device is not None else getattr(values, "device", None))
    if not place.type == "cpu":
        raise NotImplementedError(f"tensors of layout {layout} on the device {place.type}")
    pointers, others = _as_indices(compressed_indices), _as_indices(plain_indices)
    given: Any = values if isinstance(values, Tensor) else make_tensor(values)
    given = given if dtype is None else given.to(dtype)
    size = _needed_size(pointers, others, given, layout) if size is None else tuple(size)
    result = from_parts(pointers, others, given, size, layout)
    result._title = "SparseCompressedTensorBackward0"
    if Invariants.enabled if check_invariants is None else check_invariants:
        check(result)
    if requires_grad and not given.requires_grad:
        result.requires_grad = True
    return result


def from_parts(pointers: Tensor, others: Tensor, values: Any, size: Any,
               layout: Any) -> CompressedTensor:  # fmt: skip
    """A tensor of these parts, whose types and shapes fit; RuntimeError otherwise. What indices say
    is not looked at: `check` does that."""
    _check_types(pointers, others, layout)
    _check_shapes(pointers, others, values, size, layout)
    entries = ops._as_entries(values) if values.requires_grad else alias(values)
    return compressed_tensor(pointers, others, entries, size, layout)


def _as_indices(indices: Any) -> Tensor:
    return alias(indices if isinstance(indices, Tensor) else make_tensor(indices))


def _names(layout: Any) -> tuple[str, str]:
    rows = layout in ROWS
    return ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")


def _check_types(pointers: Tensor, others: Tensor, layout: Any) -> None:
    first, second = _names(layout)
    if pointers.dtype is not others.dtype:
        kinds = f"{pointers.dtype.scalar_name} and {others.dtype.scalar_name}"
        raise RuntimeError(f"{first} and {second} must have the same dtype, bot got {kinds}, "
                           "respectively")  # fmt: skip
    if pointers.dtype not in INDEX_TYPES:
        raise RuntimeError(f"{first} and {second} must be an int32 or int64 type, but got "
                           f"{pointers.dtype.scalar_name}")  # fmt: skip


def _needed_size(pointers: Tensor, others: Tensor, values: Any, layout: Any) -> tuple[int, ...]:
    batch = tuple(pointers.shape[:-1])
    blocks = 2 if layout in BLOCKS else 0
    after = len(batch) + 1
    high, wide = tuple(values.shape[after : after + 2]) if blocks else (1, 1)
    lines = pointers.shape[-1] - 1
    width = int(others._data.max(initial=-1)) + 1
    rows, columns = (lines, width) if layout in ROWS else (width, lines)
    return (*batch, rows * high, columns * wide, *values.shape[after + blocks :])


def _check_shapes(pointers: Tensor, others: Tensor, values: Any, size: Any, layout: Any) -> None:
    first, second = _names(layout)
    batch, count = pointers.ndim - 1, values.shape[pointers.ndim - 1]
    if others.shape[-1] != count:
        raise RuntimeError(f"{second}.shape[-1] must be equal to nnz (={count}) as defined by "
                           f"values.shape[{batch}], but got {others.shape[-1]}")  # fmt: skip
    blocks = 2 if layout in BLOCKS else 0
    dense = values.ndim - batch - 1 - blocks
    if len(size) != batch + 2 + dense or dense < 0:
        raise RuntimeError(f"tensor dimensionality must be sum of batch, base, and dense "
                           f"dimensionalities (={batch} + 2 + {dense}) but got "
                           f"{len(size)}")  # fmt: skip
    block = values.shape[batch + 1 : batch + 3] if blocks else (1, 1)
    axis = 0 if layout in ROWS else 1
    lines = size[batch + axis] // max(block[axis], 1)
    if pointers.shape[-1] != lines + 1:
        kind = ("row" if layout in ROWS else "column") + (" block" if blocks else "")
        raise RuntimeError(f"{first}.shape[-1] must be equal to the number of {kind}s + 1 "
                           f"(={lines + 1}), but got {pointers.shape[-1]}")  # fmt: skip
    if tuple(values.shape[batch + 1 + blocks :]) != tuple(size[batch + 2 :]):
        raise RuntimeError("values have dense sizes that differ from those of the tensor")


def check(tensor: CompressedTensor) -> None:
    """Raise for parts that contradict one another."""
    first, second = _names(tensor._layout)
    pointers, others = tensor._pointers._data, tensor._others._data
    axis = tensor.batch_dims() + (1 if tensor.compresses_rows else 0)
    width = tensor._size[axis] // tensor.blocksize()[1 if tensor.compresses_rows else 0]
    count = others.shape[-1]
    _require((pointers[..., 0] == 0).all(), f"{first}[..., 0] == 0")
    _require((pointers[..., -1] == count).all(), f"{first}[..., -1] == nnz")
    steps = np.diff(pointers, axis=-1)
    lines = "nrows" if tensor.compresses_rows else "ncols"
    fits = ((steps >= 0) & (steps <= width)).all()
    plain = "ncols" if tensor.compresses_rows else "nrows"
    _require(fits, f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {plain}")
    _require(((others >= 0) & (others < width)).all(), f"0 <= {second} < {plain}")
    for starts, row in zip(
        pointers.reshape(-1, pointers.shape[-1]), others.reshape(-1, count), strict=True
    ):
        begins = np.zeros(count + 1, bool)
        begins[starts] = True
        ascending = (np.diff(row) > 0) | begins[1:count]
        _require(ascending.all(), f"{second}[..., {first}[..., i - 1]:{first}[..., i]] for all "
                 f"i = 1, ..., {lines} are sorted and distinct along the last dimension "
                 "values")  # fmt: skip


def _require(holds: Any, what: str) -> None:
    if not holds:
        raise RuntimeError(f"`{what}` is not satisfied.")


# ---- one layout each


REST = (
    "Tensor values, int[]? size=None, *, ScalarType? dtype=None, Device? device=None,"
    " bool pin_memory=False, bool requires_grad=False, bool? check_invariants=None) -> Tensor"
)


@composite(
    f"sparse_csr_tensor(Tensor crow_indices, Tensor col_indices, {REST}", bare=True, method=False
)
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None,
                      **options: Any) -> Any:  # fmt: skip
    """A tensor of layout `torch.sparse_csr`, from its parts.

    `crow_indices` [*batch, rows + 1] say where they begin
    in `col_indices` [*batch, nnz] and `values` [*batch, nnz, *dense].
    Options and errors are those of `sparse_compressed_tensor`.

    >>> import flambeau as torch
    >>> torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1., 2.])._nnz()
    2
    """
    parts = crow_indices, col_indices, values, size
    return sparse_compressed_tensor.body(*parts, layout=lay.sparse_csr, **options)


@composite(
    f"sparse_csc_tensor(Tensor ccol_indices, Tensor row_indices, {REST}", bare=True, method=False
)
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None,
                      **options: Any) -> Any:  # fmt: skip
    """A tensor of layout `torch.sparse_csc`, from its parts.

    `ccol_indices` [*batch, columns + 1] say where they begin
    in `row_indices` [*batch, nnz] and `values` [*batch, nnz, *dense].
    Options and errors are those of `sparse_compressed_tensor`.

    >>> import flambeau as torch
    >>> torch.sparse_csc_tensor([0, 1, 2], [0, 1], [1., 2.])._nnz()
    2
    """
    parts = ccol_indices, row_indices, values, size
    return sparse_compressed_tensor.body(*parts, layout=lay.sparse_csc, **options)


@composite(
    f"sparse_bsr_tensor(Tensor crow_indices, Tensor col_indices, {REST}", bare=True, method=False
)
def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None,
                      **options: Any) -> Any:  # fmt: skip
    """A tensor of layout `torch.sparse_bsr`, from its parts.

    `crow_indices` [*batch, rows + 1] say where rows of blocks begin
    in `col_indices` [*batch, nnz] and `values` [*batch, nnz, b0, b1, *dense].
    Options and errors are those of `sparse_compressed_tensor`.

    >>> import flambeau as torch
    >>> torch.sparse_bsr_tensor([0, 1, 2], [0, 1], [[[1., 2.]], [[3., 4.]]])._nnz()
    2
    """
    parts = crow_indices, col_indices, values, size
    return sparse_compressed_tensor.body(*parts, layout=lay.sparse_bsr, **options)


@composite(
    f"sparse_bsc_tensor(Tensor ccol_indices, Tensor row_indices, {REST}", bare=True, method=False
)
def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None,
                      **options: Any) -> Any:  # fmt: skip
    """A tensor of layout `torch.sparse_bsc`, from its parts.

    `ccol_indices` [*batch, columns + 1] say where columns of blocks begin
    in `row_indices` [*batch, nnz] and `values` [*batch, nnz, b0, b1, *dense].
    Options and errors are those of `sparse_compressed_tensor`.

    >>> import flambeau as torch
    >>> torch.sparse_bsc_tensor([0, 1, 2], [0, 1], [[[1., 2.]], [[3., 4.]]])._nnz()
    2
    """
    parts = ccol_indices, row_indices, values, size
    return sparse_compressed_tensor.body(*parts, layout=lay.sparse_bsc, **options)


@method
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Any:
    """This tensor with its rows compressed: what is not 0, or the entries of a sparse one.

    The shape stays: (R, C), or (*, R, C) with as many entries in each matrix of the batch.

    >>> import flambeau as torch
    >>> torch.tensor([[0., 1.], [2., 0.]]).to_sparse_csr().col_indices()
    tensor([1, 0])
    """
    return to_layout(self, lay.sparse_csr, None, dense_dim)


@method
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Any:
    """This tensor with its columns compressed: what is not 0, or the entries of a sparse one.

    The shape stays: (R, C), or (*, R, C) with as many entries in each matrix of the batch.

    >>> import flambeau as torch
    >>> torch.tensor([[0., 1.], [2., 0.]]).to_sparse_csc().row_indices()
    tensor([1, 0])
    """
    return to_layout(self, lay.sparse_csc, None, dense_dim)


@method
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """This tensor as blocks of a size, rows of blocks compressed; blocks of zeros are left out.

    >>> import flambeau as torch
    >>> torch.eye(4).to_sparse_bsr((2, 2)).values().shape
    torch.Size([2, 2, 2])
    """
    return to_layout(self, lay.sparse_bsr, blocksize, dense_dim)


@method
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """This tensor as blocks of a size, columns of blocks compressed; blocks of zeros are left out.

    >>> import flambeau as torch
    >>> torch.eye(4).to_sparse_bsc((2, 2)).row_indices()
    tensor([0, 1])
    """
    return to_layout(self, lay.sparse_bsc, blocksize, dense_dim)


def empty_of(size: Any, dtype: Any, layout: Any, blocksize: Any = None) -> CompressedTensor:
    """A tensor of a size without entries."""
    *batch, rows, columns = size
    high, wide = blocksize or (1, 1)
    lines = (rows // high if layout in ROWS else columns // wide) + 1
    block = (high, wide) if layout in BLOCKS else ()
    parts = np.zeros((*batch, lines), np.int64), np.zeros((*batch, 0), np.int64)
    entries = wrap(np.zeros((*batch, 0, *block), dtype.numpy_dtype))
    return compressed_tensor(wrap(parts[0]), wrap(parts[1]), entries, size, layout)
