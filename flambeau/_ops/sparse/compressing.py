"""From and to compressed layouts: coordinates in between, whatever the two layouts are."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._core import layout as lay
from flambeau._ops.sparse.entries import coalesce
from flambeau._ops.table.namespace import ops
from flambeau._tensor.compressed import (
    BLOCKS,
    ROWS,
    CompressedTensor,
    compressed_tensor,
    title,
)
from flambeau._tensor.sparse import SparseTensor, sparse_tensor
from flambeau._tensor.tensor import Tensor, wrap

NODES = {
    lay.sparse_csr: "ToSparseCsrBackward0",
    lay.sparse_csc: "ToSparseCscBackward0",
    lay.sparse_bsr: "ToSparseBsrBackward0",
    lay.sparse_bsc: "ToSparseBscBackward0",
}


# ---- to coordinates


def coordinates(tensor: CompressedTensor) -> np.ndarray:
    """The place of each entry: int64 [batch dims + 2, all entries], counted in blocks."""
    pointers, others = tensor._pointers._data, tensor._others._data
    batch, lines, count = pointers.shape[:-1], pointers.shape[-1] - 1, others.shape[-1]
    matrices = prod(batch)
    lengths = np.diff(pointers.astype(np.int64), axis=-1).reshape(matrices * lines)
    if lengths.min(initial=0) < 0 or lengths.sum() != matrices * count:
        raise RuntimeError("the pointers of a compressed tensor do not agree with its entries")
    line = np.repeat(np.tile(np.arange(lines), matrices), lengths)
    other = others.reshape(-1).astype(np.int64)
    places = (line, other) if tensor.compresses_rows else (other, line)
    matrix = np.unravel_index(np.repeat(np.arange(matrices), count), batch) if batch else ()
    return np.stack([*matrix, *places])


def flat_entries(tensor: CompressedTensor) -> Any:
    """The entries of all matrices, one after the other."""
    entries: Any = tensor._entries
    kept = tuple(entries.shape[tensor.batch_dims() + 1 :])
    return entries.reshape(-1, *kept) if tensor.batch_dims() else entries


def as_coo(tensor: CompressedTensor) -> SparseTensor:
    """The same elements by their coordinates, in the order of the entries."""
    places, entries = coordinates(tensor), flat_entries(tensor)
    if tensor._layout in BLOCKS:
        high, wide = tensor.blocksize()
        down, across = np.divmod(np.arange(high * wide), max(wide, 1))
        rows = (places[-2, :, None] * high + down).reshape(-1)
        columns = (places[-1, :, None] * wide + across).reshape(-1)
        matrix = np.repeat(places[:-2], high * wide, axis=1)
        places = np.stack([*matrix, rows, columns])
        entries = entries.reshape(-1, *entries.shape[3:])
    ordered = tensor._layout is lay.sparse_csr
    result = sparse_tensor(wrap(places), entries, tensor._size, ordered)
    result._title = "ToSparseBackward1"
    return result


# ---- from coordinates


def compress(coo: SparseTensor, layout: Any, blocksize: Any = None) -> CompressedTensor:
    """A tensor in a compressed layout; all but the last two of its sparse dims are a batch.

    Raises:
        RuntimeError: there is no matrix, blocks do not fit, or the matrices of a batch have
            different numbers of entries.
    """
    coo = coalesce(coo)
    places, size, dims = coo._places._data, coo._size, coo.sparse_dim()
    name = str(layout).rpartition("_")[2]
    if dims < 2:
        raise RuntimeError(f"coo_to_sparse_{name}: conversion from Sparse to {title(layout)} for "
                           f"input tensors with sparse_dim()!=2 is not supported")  # fmt: skip
    batch, matrix = tuple(size[: dims - 2]), (size[dims - 2], size[dims - 1])
    high, wide = (1, 1) if layout not in BLOCKS else tuple(blocksize)
    check_blocks(name, matrix, (high, wide))
    rows, columns = places[dims - 2] // high, places[dims - 1] // wide
    lines, line, other = matrix[0] // high, rows, columns
    width = matrix[1] // wide
    if layout not in ROWS:
        lines, width, line, other = width, lines, columns, rows
    lead = np.ravel_multi_index(tuple(places[: dims - 2]), batch) if batch else np.int64(0)
    keys = (lead * lines + line) * max(width, 1) + other
    if layout in BLOCKS:
        keys, group = np.unique(keys, return_inverse=True)
        entries = _in_blocks(coo, group, len(keys), (high, wide))
    else:
        order = np.argsort(keys, kind="stable")
        keys, entries = keys[order], _in_order(coo._entries, order)
    pointers, others = _pointers(keys, prod(batch), lines, max(width, 1))
    count = others.shape[-1]
    if batch:
        entries = entries.reshape(*batch, count, *entries.shape[1:])
    parts = pointers.reshape(*batch, lines + 1), others.reshape(*batch, count)
    result = compressed_tensor(wrap(parts[0]), wrap(parts[1]), entries, size, layout)
    result._title = NODES[layout]
    return result


def check_blocks(name: str, matrix: tuple[int, int], block: tuple[int, int]) -> None:
    """Blocks have two positive sizes that divide those of the matrix; RuntimeError otherwise."""
    if len(block) != 2 or min(block) <= 0:
        raise RuntimeError(f"blocksize needs to be a tuple of two positive sizes, got {block}")
    if matrix[0] % block[0] or matrix[1] % block[1]:
        sizes, parts = (f"({a},{b})" for a, b in (matrix, block))
        raise RuntimeError(f"dense_to_sparse_{name}: tensor sparse size {sizes} must be divisible "
                           f"by given blocksize {parts}")  # fmt: skip


def _in_order(entries: Any, order: np.ndarray) -> Any:
    if (order[1:] > order[:-1]).all():
        return entries
    return ops.index_select(entries, 0, wrap(order))


def _in_blocks(coo: SparseTensor, group: np.ndarray, count: int, block: tuple[int, int]) -> Any:
    """Entries in the blocks that they belong to: [count, high, wide, *dense]."""
    (high, wide), (rows, columns) = block, coo._places._data[-2:]
    position = (group * high + rows % high) * wide + columns % wide
    dense = coo._entries._data.shape[1:]
    zeros = wrap(np.zeros((count * high * wide, *dense), coo._entries._data.dtype))
    filled = ops.index_add(zeros, 0, wrap(position), coo._entries)
    return filled.reshape(count, high, wide, *dense)


def _pointers(keys: np.ndarray, matrices: int, lines: int, width: int) -> Any:
    """Where lines begin, and the place of each entry in its line, for each matrix."""
    line = keys // width
    counts = np.bincount(line, minlength=matrices * lines).reshape(matrices, lines)
    totals = counts.sum(1)
    if matrices and (totals != totals[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    pointers = np.zeros((matrices, lines + 1), np.int64)
    np.cumsum(counts, axis=1, out=pointers[:, 1:])
    count = int(totals[0]) if matrices else 0
    return pointers, (keys % width).reshape(matrices, count)


# ---- between layouts


def to_layout(tensor: Any, layout: Any, blocksize: Any = None, dense_dim: int | None = None,
              start: str = "dense_to_sparse") -> Any:  # fmt: skip
    """A dense or sparse tensor in a compressed layout.

    A dense one [*batch, R, C, *dense] keeps what is not 0; `dense_dim` says how many dims come
    after the matrix.
    """
    if blocksize is None and layout in BLOCKS:
        raise RuntimeError(f"{start}: conversion from {title(tensor.layout)} to {title(layout)} "
                           "without blocksize argument given is not supported")  # fmt: skip
    if blocksize is not None and layout not in BLOCKS:
        raise RuntimeError(f"{start}: conversion from {title(tensor.layout)} to {title(layout)} "
                           "with blocksize argument given is not supported")  # fmt: skip
    if isinstance(tensor, CompressedTensor):
        if tensor._layout is layout and (layout not in BLOCKS
                                         or tuple(blocksize) == tensor.blocksize()):  # fmt: skip
            return tensor
        name = str(layout).rpartition("_")[2]
        if tensor._layout in BLOCKS and layout not in BLOCKS:
            raise RuntimeError(f"sparse_compressed_to_sparse_{name}: expected SparseCsr or "
                               f"SparseCsc layout but got {title(tensor._layout)}")  # fmt: skip
        return compress(as_coo(tensor), layout, blocksize)
    if isinstance(tensor, SparseTensor):
        return compress(tensor, layout, blocksize)
    return _from_dense(tensor, layout, blocksize, dense_dim or 0)


def _from_dense(tensor: Any, layout: Any, blocksize: Any, dense_dim: int) -> Any:
    if tensor.ndim - dense_dim < 2:
        raise RuntimeError(f"dense_to_sparse: conversion from Strided to {title(layout)} needs a "
                           f"matrix, but got {tensor.ndim - dense_dim} dims")  # fmt: skip
    if layout in BLOCKS:
        where = tensor.ndim - dense_dim
        matrix = tensor.shape[where - 2], tensor.shape[where - 1]
        check_blocks(str(layout).rpartition("_")[2], matrix, tuple(blocksize))
    return compress(tensor.to_sparse(tensor.ndim - dense_dim), layout, blocksize)


def restored(tensor: Tensor, pattern: CompressedTensor) -> CompressedTensor:
    """A coordinate tensor in the layout of another one."""
    blocks = pattern.blocksize() if pattern._layout in BLOCKS else None
    return compress(tensor, pattern._layout, blocks)  # type: ignore[arg-type]
