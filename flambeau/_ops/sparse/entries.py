"""Places as numbers, and what follows from them: coalescing, dense copies, reading at places."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.missing import NotImplementedInFlambeau, not_implemented_text
from flambeau._ops.sparse.table import method, on_sparse
from flambeau._ops.table.namespace import ops
from flambeau._tensor.compressed import CompressedTensor
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.sparse import SparseTensor, alias, sparse_tensor
from flambeau._tensor.tensor import Tensor, provides, wrap


def check_places(places: np.ndarray, sizes: Any) -> None:
    """Torch's RuntimeError for a coordinate that is negative or not below its dim's size."""
    if not places.size:
        return
    places = numbers_under(places)
    lowest, highest = places.min(1), places.max(1)
    for dim, size in enumerate(sizes):
        if lowest[dim] < 0:
            raise RuntimeError(f"found negative index {lowest[dim]} for dim {dim}")
        if highest[dim] >= size:
            raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {size} "
                               f"but found index {highest[dim]}")  # fmt: skip


def numbers_of(tensor: SparseTensor) -> np.ndarray:
    """The place of each entry as one number, counted row-major: int64 [nnz].

    This is where every operator finds places out of range, which construction does not look for.
    """
    places, sizes = tensor._places._data, tensor._size[: tensor.sparse_dim()]
    check_places(places, sizes)
    places = numbers_under(places)
    numbers = np.zeros(places.shape[1], np.int64)
    for coordinates, size in zip(places, sizes, strict=True):
        numbers *= size
        numbers += coordinates
    return numbers


def is_ascending(numbers: np.ndarray) -> bool:
    """Whether every number is above the one before it."""
    return bool((numbers[1:] > numbers[:-1]).all())


def groups_of(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each distinct number, in order, where it first is; and for each entry, its group."""
    _, first, group = np.unique(numbers, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


@method
def coalesce(self: SparseTensor) -> SparseTensor:
    """The same tensor with each place once, in row-major order; itself if it is so already."""
    if self._coalesced:
        return self
    if self._nnz() < 2:
        return sparse_tensor(self._places, self._entries, self._size, True)
    first, group = groups_of(numbers_of(self))
    entries = sum_groups(self._entries, group, len(first))
    places = wrap(np.ascontiguousarray(self._places._data[:, first]))
    result = sparse_tensor(places, entries, self._size, True)
    result._title = "CoalesceBackward0"
    return result


def sum_groups(entries: Tensor, group: np.ndarray, count: int) -> Any:
    """The sums of the entries of each group: [count, dense sizes]."""
    zeros = wrap(np.zeros((count, *entries._data.shape[1:]), entries._data.dtype))
    return ops.index_add(zeros, 0, wrap(group), entries)


@method
def to_dense(self: SparseTensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """A dense copy; entries at one place add up.

    Raises:
        NotImplementedInFlambeau: with `masked_grad=False` gradients would reach places without
            entries; they are only recorded for entries.
    """
    if masked_grad is False and self.requires_grad and modes.grad.enabled:
        raise NotImplementedInFlambeau(
            not_implemented_text("Tensor.to_dense(masked_grad=False) with gradients")
        )
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    rows = prod(self._size[: self.sparse_dim()])
    return sum_groups(self._entries, numbers_of(self), rows).view(tuple(self._size))


def read_at(dense: Any, mask: SparseTensor) -> Any:
    """The slices of a dense tensor at the places of a mask of its shape: [nnz, dense sizes]."""
    rows = dense.reshape(-1, *mask._size[mask.sparse_dim() :])
    return ops.index_select(rows, 0, wrap(numbers_of(mask)))


@method
def sparse_mask(self: Any, mask: Any) -> Any:
    """A sparse tensor with the places of `mask` and this tensor's values there."""
    if isinstance(mask, CompressedTensor):
        from flambeau._ops.sparse.compressed import read_at as read_at_compressed

        return read_at_compressed(self, mask)
    if not isinstance(mask, SparseTensor):
        raise NotImplementedError(
            "Could not run 'aten::sparse_mask' with a mask that is not sparse."
        )
    if tuple(self.shape) != tuple(mask._size):
        raise RuntimeError("sparse_mask(): operands have incompatible sizes; self has size "
                           f"{list(self.shape)} but mask has size {list(mask._size)}")  # fmt: skip
    dense = self.to_dense() if isinstance(self, SparseTensor) else self
    return with_places(mask, read_at(dense, mask))


def passed(tensor: SparseTensor | CompressedTensor) -> Any:
    """The entries for a result that shares their memory; a leaf's get a node of their own."""
    entries = tensor._entries
    return ops._as_entries(entries) if entries.requires_grad else alias(entries)


def with_places(pattern: SparseTensor, entries: Any, title: str | None = None) -> SparseTensor:
    """A sparse tensor with the places of another one and new entries."""
    result = sparse_tensor(alias(pattern._places), entries, pattern._size, pattern._coalesced)
    result._title = title
    return result


@provides("sparse_grad")
def sparse_grad(tensor: SparseTensor, of_entries: Tensor) -> SparseTensor:
    """The gradient of a sparse leaf from that of its entries, which agree where a place repeats."""
    if tensor._coalesced:
        return with_places(tensor, of_entries)
    first, _ = groups_of(numbers_of(tensor))
    places = wrap(np.ascontiguousarray(tensor._places._data[:, first]))
    return sparse_tensor(places, wrap(of_entries._data[first]), tensor._size, True)


@provides("own_sparse")
def own_sparse(grad: SparseTensor) -> SparseTensor:
    """A gradient whose memory nobody else holds, row-major, without history."""
    data = grad._entries._data
    fresh = data.base is None and data.flags.c_contiguous
    entries = wrap(data if fresh else data.copy())
    return sparse_tensor(alias(grad._places), entries, grad._size, grad._coalesced)


on_sparse("clone")(lambda tensor, memory_format: with_places(
    tensor, ops.clone(tensor._entries), "CloneBackward0"
))  # fmt: skip
