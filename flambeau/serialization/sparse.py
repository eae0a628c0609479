"""Sparse tensors in files: `torch._utils._rebuild_sparse_tensor`, with its parts checked.

What the indices say can only be checked when their storage has its content, which in legacy files
comes after the pickle. So tensors are noted where they are built and checked when all is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pickle import UnpicklingError
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.layout import _Constant, sparse_coo
from flambeau._tensor.compressed import LAYOUTS, CompressedTensor
from flambeau._tensor.sparse import SparseTensor, sparse_tensor
from flambeau._tensor.tensor import Tensor, storage_of
from flambeau.serialization.checks import CopyBudget, brief, expect

LARGEST = 2**63 - 1
MAX_DIMS = 64


class Unchecked(threading.local):
    """The sparse tensors that the innermost load of this thread has built; None: no load runs.

    `budget` is how many indices they may have in all, since each tensor's are read through.
    """

    tensors: list[SparseTensor | CompressedTensor] | None = None
    budget: CopyBudget | None = None


unchecked = Unchecked()


@contextmanager
def checked_sparse_tensors(file_size: int) -> Iterator[None]:
    """Check the sparse tensors that are built inside, at the end. Raises UnpicklingError."""
    outer = unchecked.tensors, unchecked.budget
    unchecked.tensors, unchecked.budget = [], CopyBudget(file_size)
    try:
        yield
        for tensor in unchecked.tensors:
            check(tensor)
    finally:
        unchecked.tensors, unchecked.budget = outer


def rebuild_sparse_tensor(layout: Any, data: Any) -> SparseTensor | CompressedTensor:
    """A sparse tensor from (indices, values, size, is_coalesced); old files lack the last. Of
    a compressed layout from (pointers, other indices, values, size)."""
    if layout in LAYOUTS:
        return rebuild_compressed_tensor(layout, data)
    if layout is not sparse_coo:
        kind = repr(layout) if isinstance(layout, _Constant) else brief(layout)
        raise NotImplementedError(
            f"torch._utils._rebuild_sparse_tensor: tensors of layout {kind} are not supported"
        )
    expect(type(data) is tuple and len(data) in (3, 4), "a sparse tensor has three or four parts")
    indices, values, size, coalesced = (*data, None)[:4]
    expect(coalesced is None or type(coalesced) is bool, "is_coalesced must be a bool")
    for part in (indices, values):
        expect(type(part) is Tensor, f"a sparse tensor is made of tensors, got {brief(part)}")
    _check_parts(indices, values, size)
    if unchecked.budget is not None:
        unchecked.budget.spend(max(indices._data.size, indices._data.shape[1]))
    result = sparse_tensor(indices, values, size, coalesced)
    if unchecked.tensors is None:
        check(result)
    else:
        unchecked.tensors.append(result)
    return result


def rebuild_compressed_tensor(layout: Any, data: Any) -> CompressedTensor:
    """A tensor of a compressed layout from (pointers, other indices, values, size)."""
    expect(type(data) is tuple and len(data) == 4, "a compressed sparse tensor has four parts")
    pointers, others, values, size = data
    for part in (pointers, others, values):
        expect(type(part) is Tensor, f"a sparse tensor is made of tensors, got {brief(part)}")
    _check_size(size)
    for indices in (pointers, others):
        own = storage_of(indices).nbytes() if indices._data.size else 0
        expect(indices._data.nbytes <= own, INDICES_OVERLAP)
        if unchecked.budget is not None:
            unchecked.budget.spend(indices._data.size)
    from flambeau._ops.sparse.compressed_constructors import from_parts

    try:
        result = from_parts(pointers, others, values, tuple(size), layout)
    except (RuntimeError, IndexError) as error:
        raise UnpicklingError(str(error)) from None
    if unchecked.tensors is None:
        check(result)
    else:
        unchecked.tensors.append(result)
    return result


def _check_size(size: Any) -> None:
    expect(isinstance(size, tuple) and len(size) <= MAX_DIMS, "the size must be a short tuple")
    expect(all(type(n) is int and n >= 0 for n in size), f"{brief(size)} is no size of a tensor")
    expect(prod(max(n, 1) for n in size) <= LARGEST, f"a tensor cannot have the size {size}")


INDICES_OVERLAP = "the indices of a sparse tensor share memory with one another"


def _check_parts(indices: Any, values: Any, size: Any) -> None:
    """Types and shapes: the content is still to come."""
    _check_size(size)
    places, entries = indices._data, values._data
    expect(indices.dtype is dt.int64, "the indices of a sparse tensor are of type int64")
    expect(places.ndim == 2 and entries.ndim > 0, "indices and values have too few or many dims")
    sparse_dim, count = places.shape
    # Indices are read through: a view that repeats few bytes could keep that going for years.
    own = storage_of(indices).nbytes() if places.size else 0
    expect(places.nbytes <= own, INDICES_OVERLAP)
    wanted = (count, *size[sparse_dim:])
    expect(
        sparse_dim <= len(size) and entries.shape == wanted,
        f"indices {places.shape} and values {entries.shape} do not fit the size {tuple(size)}",
    )


def check(tensor: SparseTensor | CompressedTensor) -> None:
    """The content of the indices. UnpicklingError for places out of range, or not in order."""
    from flambeau._ops.sparse import compressed_constructors, constructors

    try:
        if isinstance(tensor, CompressedTensor):
            compressed_constructors.check(tensor)
        else:
            constructors.check(tensor)
    except RuntimeError as error:
        raise UnpicklingError(str(error)) from None


def reduce_sparse(tensor: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The call that rebuilds a sparse tensor, as torch writes it."""
    if isinstance(tensor, CompressedTensor):
        alone = tensor.detach()  # type: ignore[attr-defined]
        data = (alone._pointers, alone._others, alone._entries, tensor.size())
        return rebuild_sparse_tensor, (tensor.layout, data)
    parts = (tensor._indices(), tensor._values(), tensor.size(), tensor.is_coalesced())
    return rebuild_sparse_tensor, (tensor.layout, parts)
