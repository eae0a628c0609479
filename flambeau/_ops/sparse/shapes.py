"""Other orders of dims, joining, and resizing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from flambeau._core.layout import Size
from flambeau._ops.sparse.arithmetic import is_sparse, replace
from flambeau._ops.sparse.entries import passed
from flambeau._ops.sparse.table import method, on_sparse
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.views.basic import _permutation_error
from flambeau._tensor.sparse import SparseTensor, alias, sparse_tensor
from flambeau._tensor.tensor import wrap


@on_sparse("permute")
def permute(tensor: SparseTensor, dims: Sequence[int]) -> SparseTensor:
    """Put the dims in another order; sparse dims stay before dense ones."""
    if len(dims) != tensor.ndim or len({dim % tensor.ndim for dim in dims}) != tensor.ndim:
        raise _permutation_error(np.empty((0,) * tensor.ndim), dims)
    order = [wrap_dim(dim, tensor.ndim) for dim in dims]
    count = tensor.sparse_dim()
    if any((dim < count) != (place < count) for place, dim in enumerate(order)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not "
            "allowed.Only transpositions within sparse and dense dimensions are supported."
        )
    result = _in_order(tensor, order, "PermuteBackward0")
    result._coalesced = tensor._coalesced and order[:count] == list(range(count))
    return result


def _in_order(tensor: SparseTensor, order: list[int], title: str) -> SparseTensor:
    count = tensor.sparse_dim()
    sparse, dense = order[:count], order[count:]
    in_place = sparse == list(range(count))
    entries: Any = passed(tensor)
    if dense != list(range(count, tensor.ndim)):
        entries = ops.permute(entries, [0, *[1 + dim - count for dim in dense]])
    places = alias(tensor._places)
    if not in_place:
        places = wrap(np.ascontiguousarray(tensor._places._data[sparse]))
    size = [tensor._size[dim] for dim in order]
    coalesced = tensor._coalesced and (in_place or not tensor._nnz())
    result = sparse_tensor(places, entries, size, coalesced)
    result._title = title
    return result


SparseTensor.T = property(  # type: ignore[attr-defined]
    lambda self: permute(self, list(range(self.ndim))[::-1])
)


@on_sparse("transpose.int")
def transpose(tensor: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Exchange two sparse dims."""
    dim0, dim1 = wrap_dim(dim0, tensor.ndim), wrap_dim(dim1, tensor.ndim)
    count = tensor.sparse_dim()
    if dim0 >= count or dim1 >= count:
        raise RuntimeError("sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
                           f"{count}, d0: {dim0}, d1: {dim1}")  # fmt: skip
    order = list(range(tensor.ndim))
    order[dim0], order[dim1] = dim1, dim0
    return _in_order(tensor, order, "TransposeBackward0")


SparseTensor.mT = property(lambda self: transpose(self, -2, -1))  # type: ignore[attr-defined]


@method
def adjoint(self: SparseTensor) -> SparseTensor:
    """The last two dims exchanged, conjugated."""
    if self.ndim < 2:  # noqa: PLR2004
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. "
                           f"Got {self.ndim}-D tensor.")  # fmt: skip
    return ops.conj(transpose(self, -2, -1))  # type: ignore[no-any-return]


SparseTensor.mH = property(adjoint)  # type: ignore[attr-defined]


@on_sparse("t")
def t(tensor: SparseTensor) -> SparseTensor:
    """The transpose of a matrix."""
    if tensor.sparse_dim() > 2 or tensor.dense_dim():
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{tensor.sparse_dim()} sparse and {tensor.dense_dim()} dense dimensions"
        )
    return _in_order(tensor, list(range(tensor.ndim))[::-1], "TBackward0")


@on_sparse("unsqueeze")
def unsqueeze(tensor: SparseTensor, dim: int) -> SparseTensor:
    """A new dim of size 1: sparse in front of the dense dims, else dense."""
    dim = wrap_dim(dim, tensor.ndim + 1)
    size = [*tensor._size[:dim], 1, *tensor._size[dim:]]
    count = tensor.sparse_dim()
    if dim > count:
        entries = ops.unsqueeze(tensor._entries, 1 + dim - count)
        return sparse_tensor(alias(tensor._places), entries, size)
    places = np.insert(tensor._places._data, dim, 0, 0)
    return sparse_tensor(wrap(places), passed(tensor), size)


@on_sparse("cat")
def cat(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """One tensor after the other along a sparse dim."""
    for position, tensor in enumerate(tensors):
        if not is_sparse(tensor):
            raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found at "
                               f"position {position}.")  # fmt: skip
    first = tensors[0]
    dim = wrap_dim(dim, first.ndim)
    if dim >= first.sparse_dim():
        raise NotImplementedError("cat along a dense dim of sparse tensors is not implemented in "
                                  "flambeau")  # fmt: skip
    parts, length = [], 0
    for position, tensor in enumerate(tensors):
        _check_joined(first, tensor, dim, position)
        places = tensor._places._data.copy()
        places[dim] += length
        length += tensor._size[dim]
        parts.append(places)
    entries = ops.cat([tensor._entries for tensor in tensors])
    size = [length if place == dim else n for place, n in enumerate(first._size)]
    return sparse_tensor(wrap(np.concatenate(parts, 1)), entries, size)


def _check_joined(first: SparseTensor, tensor: SparseTensor, dim: int, position: int) -> None:
    apart = [n for place, n in enumerate(first._size) if place != dim]
    if apart != [n for place, n in enumerate(tensor._size) if place != dim]:
        raise RuntimeError(
            f"All tensors must have the same shape: {list(first._size)} (except in the "
            f"concatenating dimension), but found shape: {list(tensor._size)} at position "
            f"{position}."
        )
    dims, found = (f"{t.sparse_dim()}, {t.dense_dim()}" for t in (first, tensor))
    if dims != found:
        raise RuntimeError(
            f"All tensors must have the same sparse_dim and dense_dim: {dims}, but tensor at "
            f"position {position} has {found}."
        )


# ---- resizing


@method
def sparse_resize_(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Another size in place. With entries, dims keep their number and do not shrink."""
    size = tuple(size)
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
            f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    if not self._nnz():
        return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)
    counts = (("sparse", self.sparse_dim(), sparse_dim), ("dense", self.dense_dim(), dense_dim))
    for kind, mine, wanted in counts:
        if mine != wanted:
            _refuse(f"changing the number of {kind} dimensions (from {mine} to {wanted})")
    _check_growth("sparse", self._size[:sparse_dim], size[:sparse_dim])
    _check_growth("dense", self._size[sparse_dim:], size[sparse_dim:])
    if self._size[sparse_dim:] != size[sparse_dim:]:
        raise NotImplementedError("sparse_resize_ of dense dims is not implemented in flambeau")
    self._size = Size(size)
    return self


def _check_growth(kind: str, mine: Any, wanted: Any) -> None:
    if any(new < old for old, new in zip(mine, wanted, strict=True)):
        sizes = f"(from {list(mine)} to {list(wanted)})"
        _refuse(f"shrinking the size of {kind} dimensions {sizes}")


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(f"{what} on a non-empty sparse tensor is not supported.")


@method
def sparse_resize_and_clear_(
    self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int
) -> SparseTensor:
    """Another size and numbers of dims in place, without entries."""
    places = wrap(np.empty((sparse_dim, 0), np.int64))
    entries = np.empty((0, *tuple(size)[sparse_dim:]), self.dtype.numpy_dtype)
    self._size = Size(size)
    return replace(self, places, wrap(entries), True)


@method
def resize_as_sparse_(self: SparseTensor, the_template: SparseTensor) -> SparseTensor:
    """The size of another sparse tensor, in place."""
    return sparse_resize_(
        self, the_template._size, the_template.sparse_dim(), the_template.dense_dim()
    )


@on_sparse("select.int")
def select(tensor: SparseTensor, dim: int, index: int) -> Any:
    """The part at one index of a dim, without the dim: sparse while a sparse dim is left."""
    dim, count = wrap_dim(dim, tensor.ndim), tensor.sparse_dim()
    size = tensor._size[dim]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size "
                         f"{list(tensor._size)} at dimension {dim}")  # fmt: skip
    index %= size
    rest = [*tensor._size[:dim], *tensor._size[dim + 1 :]]
    if dim >= count:
        entries = ops.select(tensor._entries, 1 + dim - count, index)
        return sparse_tensor(alias(tensor._places), entries, rest, tensor._coalesced)
    there = np.flatnonzero(tensor._places._data[dim] == index)
    entries = ops.index_select(tensor._entries, 0, wrap(there))
    if count == 1:
        return ops.sum(entries, 0)
    places = np.delete(tensor._places._data[:, there], dim, 0)
    result = sparse_tensor(wrap(np.ascontiguousarray(places)), entries, rest, tensor._coalesced)
    result._title = "SelectBackward0"
    return result


@on_sparse("unbind.int")
def unbind(tensor: Any, dim: int = 0) -> tuple[Any, ...]:
    """The parts at every index of a dim, without the dim."""
    return tuple(ops.select(tensor, dim, k) for k in range(tensor.size(dim)))


@method
def __iter__(self: Any) -> Iterator[Any]:
    if not self.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(ops.unbind(self, 0))


@method
def __getitem__(self: Any, index: Any) -> Any:
    result: Any = self
    for one in index if isinstance(index, tuple) else (index,):
        if not isinstance(one, int):
            raise NotImplementedError(f"an index of a tensor of layout {self.layout} is made of "
                                      f"ints, got {type(one).__name__}")  # fmt: skip
        result = ops.select(result, 0, one)
    return result
