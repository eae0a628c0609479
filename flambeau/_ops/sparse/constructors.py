"""Making sparse tensors: `sparse_coo_tensor`, `to_sparse`, and the gradients of embeddings."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any, NoReturn

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core.device import CPU, Cuda, check_available, check_pin
from flambeau._ops.factories.making import shape_of
from flambeau._ops.sparse import table
from flambeau._ops.sparse.entries import check_places, is_ascending, numbers_of
from flambeau._ops.sparse.entries import sparse_mask as read_at_places
from flambeau._ops.sparse.table import by_the_host
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, internal
from flambeau._tensor.conversion import tensor as make_tensor
from flambeau._tensor.sparse import SparseTensor, alias, sparse_tensor
from flambeau._tensor.tensor import Tensor, method, wrap
from flambeau._tensor.with_entries import also_by_class

table.load()


class Invariants:
    """Whether places are checked when a tensor is made: `check_sparse_tensor_invariants`."""

    enabled = False


@composite(
    "sparse_coo_tensor(Tensor indices, Tensor values, int[]? size=None, *,"
    " ScalarType? dtype=None, Device? device=None, bool pin_memory=False,"
    " bool requires_grad=False, bool? check_invariants=None, bool? is_coalesced=None) -> Tensor",
    bare=True,
    method=False,
)
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A sparse tensor with the entries `values` [nnz, *dense sizes] at `indices` [sparse_dim, nnz].

    Without `size` the sparse dims are as large as the indices need; with `size` alone there are no
    entries. Places outside `size` are found here with `check_invariants`, else when first used.

    Raises:
        RuntimeError: shapes do not fit, an index is negative or too large, or `is_coalesced` is
            said of places that repeat or are not in order (the last two with `check_invariants`).

    >>> import flambeau as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if pin_memory is not False:
        check_pinned_parts("sparse_coo_tensor", pin_memory)
    place = check_available(device)
    if values is not None and device is None and isinstance(values, Tensor):
        place = values.device
    if place is not CPU or (isinstance(indices, Tensor) and not indices.is_cpu):
        here = [t.to(CPU) if isinstance(t, Tensor) else t for t in (indices, values)]
        words = {"is_coalesced": is_coalesced, "check_invariants": check_invariants}
        made = sparse_coo_tensor.body(*here, size, dtype=dtype, device=CPU, **words)
        return _finish(made.to(place), requires_grad)
    if values is None:
        wanted = size if size is not None else indices
        return _finish(without_entries(wanted, dtype or dt.default_dtype()), requires_grad)
    places, given = _as_places(indices), _as_values(values, dtype)
    if size is None:
        size = _needed_size(places._data, given)
    size = _as_size(size)
    _check_shapes(places._data, given, size)
    entries = ops._as_entries(given) if given.requires_grad else alias(given)
    result = sparse_tensor(places, entries, size, True if is_coalesced else None)
    if Invariants.enabled if check_invariants is None else check_invariants:
        check(result)
    return _finish(result, requires_grad)


def check_pinned_parts(name: str, pin_memory: Any) -> None:
    """Torch's error where parts should be pinned and there is no GPU to pin them for."""
    if not isinstance(pin_memory, bool):
        raise TypeError(f"{name}(): argument 'pin_memory' must be bool, not "
                        f"{type(pin_memory).__name__}")  # fmt: skip
    if not Cuda.devices():
        check_pin(None)


def check(tensor: SparseTensor) -> None:
    """Raise for places out of range, and for a coalesced tensor that is not."""
    numbers = numbers_of(tensor)
    if tensor._coalesced and not is_ascending(numbers):
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced "
                           "COO tensor")  # fmt: skip


def _finish(tensor: SparseTensor, requires_grad: bool) -> SparseTensor:
    if not isinstance(requires_grad, bool):
        raise TypeError("sparse_coo_tensor(): argument 'requires_grad' must be bool, not "
                        f"{type(requires_grad).__name__}")  # fmt: skip
    if requires_grad and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    if requires_grad and tensor._node is None:
        tensor._entries = alias(tensor._entries)
        tensor.requires_grad = True
    return tensor


def _as_places(indices: Any) -> Tensor:
    made: Any = indices if isinstance(indices, Tensor) else make_tensor(indices)
    if made.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(made.shape)}")
    return alias(made.to(dt.int64))


def _as_values(values: Any, dtype: Any) -> Any:
    made: Any = values if isinstance(values, Tensor) else make_tensor(values)
    made = made.reshape(1) if made.ndim == 0 else made
    return made if dtype is None else made.to(dtype)


def _as_size(size: Any) -> tuple[int, ...]:
    shape = shape_of((size,), "sparse_coo_tensor")
    if prod([max(n, 1) for n in shape]) >= 2**63:  # places are counted in int64
        raise RuntimeError("numel: integer multiplication overflow")
    return shape


def _needed_size(places: np.ndarray, values: Any) -> tuple[int, ...]:
    """One more than the largest index of each sparse dim, and the dense sizes."""
    check_places(places, [np.inf] * places.shape[0])
    largest = places.max(1, initial=-1) + 1
    return (*largest.tolist(), *values.shape[1:])


def _check_shapes(places: np.ndarray, values: Any, size: tuple[int, ...]) -> None:
    sparse_dim, count = places.shape
    dense_dim = values.ndim - 1
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
            f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    if values.shape[0] != count:
        raise RuntimeError("indices and values must have same nnz, but got nnz from indices: "
                           f"{count}, nnz from values: {values.shape[0]}")  # fmt: skip
    expected = [count, *size[sparse_dim:]]
    if list(values.shape) != expected:
        raise RuntimeError(f"values has incorrect size, expected {expected}, got "
                           f"{list(values.shape)}")  # fmt: skip


def without_entries(size: Any, dtype: Any, sparse_dim: int | None = None) -> SparseTensor:
    """A sparse tensor of a size without entries; all dims are sparse if not said otherwise."""
    shape = _as_size(size)
    count = len(shape) if sparse_dim is None else sparse_dim
    places = wrap(np.empty((count, 0), np.int64))
    return sparse_tensor(places, wrap(np.empty((0, *shape[count:]), dtype.numpy_dtype)), shape)


@internal(
    "_as_entries(Tensor values) -> Tensor",
    node="SparseCooTensorWithDimsAndTensorsBackward0",
    backward={"values": lambda grad: grad},
)
def as_entries(values: np.ndarray) -> np.ndarray:
    """Values as the entries of a new sparse tensor: the same memory."""
    return values


# ---- from dense tensors


@method
@partial(by_the_host, "to_sparse")
def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
    dense_dim: Any = None,
) -> Tensor:  # fmt: skip
    """The slices that hold something other than 0, as a coalesced sparse tensor.

    The first `sparse_dim` dims are sparse, or all but the last `dense_dim`, all if neither is
    given. Asked for `torch.strided`, this tensor; for a compressed layout, one of that, as
    `to_sparse_csr` and its kin.

    Raises:
        RuntimeError: there are not so many dims.

    >>> import flambeau as torch
    >>> torch.tensor([0.0, 3.0, 0.0]).to_sparse().indices()
    tensor([[1]])
    """
    if isinstance(sparse_dim, lay.layout):
        sparse_dim, layout = None, sparse_dim
    if layout is lay.strided:
        return self
    if layout is not None and layout is not lay.sparse_coo:
        from flambeau._ops.sparse.compressing import to_layout

        return to_layout(self, layout, blocksize, dense_dim)  # type: ignore[no-any-return]
    if blocksize is not None:
        raise RuntimeError("dense_to_sparse: conversion from Strided to Sparse with blocksize "
                           "argument given is not supported")  # fmt: skip
    data = self._data
    if dense_dim is not None:
        sparse_dim = data.ndim - _dense_dims(data.ndim, dense_dim)
    count = data.ndim if sparse_dim is None else sparse_dim
    if count == 0 and data.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    if not 0 <= count <= data.ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{data.ndim}] "
                           f"range, but {count} is given")  # fmt: skip
    sizes = data.shape[:count]
    filled = (data != 0).reshape(*sizes, prod(data.shape[count:])).any(-1)
    numbers = np.flatnonzero(filled)
    places = np.stack(np.unravel_index(numbers, sizes)) if count else np.empty((0, len(numbers)))
    rows = ops.reshape(self, (prod(sizes), *data.shape[count:]))
    entries = ops.index_select(rows, 0, wrap(numbers))
    result = sparse_tensor(wrap(places.astype(np.int64)), entries, data.shape, True)
    result._title = "ToSparseBackward1" if sparse_dim is None else "ToSparseBackward0"
    return result


def _dense_dims(ndim: int, dense_dim: int) -> int:
    if not 0 <= dense_dim <= ndim:
        raise RuntimeError(f"dense_to_sparse: dense_dim argument must be in [0,{ndim}] range, but "
                           f"{dense_dim} is given")  # fmt: skip
    if ndim and dense_dim == ndim:
        raise RuntimeError("dense_to_sparse: dense_dim argument must be !=self.dim() when "
                           "self.dim()>0")  # fmt: skip
    return dense_dim


def _not_dense(name: str) -> None:
    def refuse(self: Tensor) -> NoReturn:
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend."
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises NotImplementedError: the tensor is not sparse."
    method(also_by_class(refuse))


for _name in ("_nnz", "_indices", "_values", "_dimI", "_dimV"):
    _not_dense(_name)


@method
def to_sparse_coo(self: Tensor) -> SparseTensor:
    """As `to_sparse()`: a sparse tensor of the same shape, with the places of what is not 0.

    >>> import flambeau as torch
    >>> torch.tensor([0.0, 3.0]).to_sparse_coo().values()
    tensor([3.])
    """
    return self.to_sparse()  # type: ignore[attr-defined, no-any-return]


@method
def sparse_mask(self: Tensor, mask: Any) -> SparseTensor:
    """A sparse tensor with the places of `mask`, of the same shape, and this tensor's values there.

    >>> import flambeau as torch
    >>> mask = torch.tensor([0.0, 1.0]).to_sparse()
    >>> torch.tensor([5.0, 6.0]).sparse_mask(mask).to_dense()
    tensor([0., 6.])
    """
    return read_at_places(self, mask)


@method
def sparse_resize_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Give a sparse tensor another shape. Only for sparse ones: this one is not.

    Raises NotImplementedError.

    >>> import flambeau as torch
    >>> try:
    ...     torch.ones(2).sparse_resize_((3,), 1, 0)
    ... except NotImplementedError:
    ...     print("not sparse")
    not sparse
    """
    raise NotImplementedError(
        "Could not run 'aten::sparse_resize_' with arguments from the 'CPU' backend."
    )


# ---- gradients


def gradient_of_rows(grad: Any, indices: Any, size: Any, padding_idx: int) -> SparseTensor:
    """The gradient of a table from those of the rows looked up: an entry for each, as torch.

    `grad`: [*, D]; `indices`: [*], of any integer type. Rows of `padding_idx` are left out.
    """
    numbers = indices._data.reshape(-1).astype(np.int64)
    rows = grad.reshape(numbers.size, size[-1])
    if padding_idx >= 0:
        kept = np.flatnonzero(numbers != padding_idx)
        numbers, rows = numbers[kept], ops.index_select(rows, 0, wrap(kept))
    result = sparse_tensor(wrap(numbers[None]), rows, size, None)
    result._title = "SparseCooTensorWithDimsAndTensorsBackward0"
    return result


def gradient_of_elements(grad: Any, size: Any, dim: int, index: Any) -> SparseTensor:
    """The gradient of a tensor of which `gather` has read elements: an entry for each, as torch."""
    dims = len(size)
    shape = index._data.shape or (1,)
    places = np.indices(shape, np.int64).reshape(len(shape), index._data.size)[:dims]
    if dims:
        places[wrap_dim(dim, dims)] = index._data.reshape(-1)
    result = sparse_tensor(wrap(places), grad.reshape(index._data.size), size, None)
    result._title = "SparseCooTensorWithDimsAndTensorsBackward0"
    return result
