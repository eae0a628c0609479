"""Methods of tensors of compressed layouts whose dense forms are no rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from flambeau._core import layout as lay
from flambeau._core.device import check_available
from flambeau._ops.copying.to_arguments import parse_to
from flambeau._ops.sparse import compressed as forms
from flambeau._ops.sparse import shapes
from flambeau._ops.sparse.compressing import as_coo, to_layout
from flambeau._ops.table.namespace import ops
from flambeau._tensor.compressed import (
    BLOCKS,
    CompressedTensor,
    at_places,
    compressed_tensor,
    title,
)
from flambeau._tensor.sparse import alias
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.history import check_inplace


def own(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give such tensors a method of the function's name."""
    setattr(CompressedTensor, function.__name__, function)
    return function


@own
def detach(self: CompressedTensor) -> CompressedTensor:
    """The same memory without history."""
    return at_places(self, alias(self._entries))


CompressedTensor.data = property(detach)  # type: ignore[assignment]
CompressedTensor.mT = property(lambda self: ops.transpose(self, -2, -1))  # type: ignore[attr-defined]


@own
def is_pinned(self: CompressedTensor, device: Any = None) -> bool:
    """Whether the memory of its parts is pinned."""
    return bool(self._entries.is_pinned())  # type: ignore[attr-defined]


@own
def to(self: CompressedTensor, *args: Any, **kwargs: Any) -> CompressedTensor:
    """This tensor in another type; itself where nothing changes and no `copy` is wanted."""
    dtype, place, wants_copy, _ = parse_to(args, kwargs)
    if place is not None and place is not self.device:
        raise NotImplementedError(f"tensors of layout {self._layout} on the device {place.type}")
    if (dtype is None or dtype is self.dtype) and not wants_copy:
        return self
    return forms.to_copy(self, dtype)


@own
def to_dense(self: CompressedTensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """A dense copy."""
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_csr_to_dense")
    return as_coo(self).to_dense(masked_grad=masked_grad)  # type: ignore[attr-defined]


@own
def to_sparse(self: CompressedTensor, sparse_dim: int | None = None, *, layout: Any = None,
              blocksize: Any = None, dense_dim: Any = None) -> Any:  # fmt: skip
    """The same elements in another sparse layout, in coordinates if none is named."""
    if isinstance(sparse_dim, lay.layout):
        sparse_dim, layout = None, sparse_dim
    if layout is lay.strided:
        return self.to_dense()  # type: ignore[attr-defined]
    if layout is not None and layout is not lay.sparse_coo:
        if layout in BLOCKS and blocksize is None and self._layout in BLOCKS:
            blocksize = self.blocksize()
        return to_layout(self, layout, blocksize, dense_dim, "sparse_compressed_to_sparse")
    wanted = self.batch_dims() + 2
    if sparse_dim is not None and sparse_dim != wanted:
        raise RuntimeError(f"sparse_compressed_to_sparse: conversion from {title(self._layout)} to "
                           f"Sparse with sparse_dim argument !={wanted} is not "
                           "supported")  # fmt: skip
    return as_coo(at_places(self, forms.passed(self)))


@own
def to_sparse_coo(self: CompressedTensor) -> Any:
    """As `to_sparse()`."""
    return to_sparse(self)


@own
def copy_(self: CompressedTensor, src: Any, non_blocking: bool = False) -> CompressedTensor:
    """Take over the values of a tensor with the same layout and as many entries."""
    if not isinstance(src, CompressedTensor) or src._layout is not self._layout:
        raise RuntimeError("copy of sparse compressed tensors having different layouts is not "
                           f"supported. self layout is {title(self._layout)} and src layout is "
                           f"{title(src.layout)}")  # fmt: skip
    if src._nnz() != self._nnz():
        raise RuntimeError("copy of sparse compressed tensors having different number of specified "
                           "elements is not supported.")  # fmt: skip
    check_inplace(self, self.requires_grad)
    return forms.replace(self, forms.clone(src))


@own
def item(self: CompressedTensor) -> Any:
    """The one element."""
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return to_dense(self).item()


@own
def __matmul__(self: CompressedTensor, other: Any) -> Any:
    return forms.matmul(self, other) if isinstance(other, Tensor) else NotImplemented


@own
def __rmatmul__(self: CompressedTensor, other: Any) -> Any:
    return forms.matmul(other, self) if isinstance(other, Tensor) else NotImplemented


@own
def matmul(self: CompressedTensor, other: Any) -> Any:
    """The product with a matrix or a vector."""
    return forms.matmul(self, other)


own(shapes.__getitem__)
own(shapes.__iter__)


@own
def __deepcopy__(self: CompressedTensor, memo: dict[int, Any]) -> CompressedTensor:
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    if self._node is not None:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the "
                           "deepcopy protocol at the moment.")  # fmt: skip
    pointers, others = copy.deepcopy(self._pointers, memo), copy.deepcopy(self._others, memo)
    entries = copy.deepcopy(self._entries, memo)
    result = compressed_tensor(pointers, others, entries, self._size, self._layout)
    memo[id(self)] = result
    return result


@own
def __reduce_ex__(self: CompressedTensor, protocol: Any) -> Any:
    parts = alias(self._pointers), alias(self._others), alias(self._entries)
    return compressed_tensor, (*parts, tuple(self._size), self._layout)


def like(tensor: CompressedTensor, number: Any, dtype: Any, device: Any) -> CompressedTensor:
    """A tensor with the size of another one: with its places and a number there, or without
    entries for 0."""
    check_available(device or tensor.device)
    result = forms.to_copy(detach(tensor), dtype)
    if number == 0:
        return forms.zero_(result)
    return at_places(result, result._entries.fill_(1 if number is None else number))  # type: ignore[attr-defined]
