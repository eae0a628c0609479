"""Methods of sparse tensors whose dense forms are no rows: copies, casts, hooks, saving."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from flambeau._core import layout as lay
from flambeau._core.device import check_available
from flambeau._ops.copying.to_arguments import parse_to
from flambeau._ops.sparse.arithmetic import is_sparse, replace
from flambeau._ops.sparse.compressing import to_layout
from flambeau._ops.sparse.entries import with_places
from flambeau._ops.sparse.products import matmul as product
from flambeau._ops.sparse.table import method, on_sparse, refusal
from flambeau._ops.table.namespace import ops
from flambeau._tensor.sparse import SparseTensor, alias, sparse_tensor
from flambeau._tensor.tensor import Tensor, constructors
from flambeau.autograd.history import check_inplace


@method
def new(self: SparseTensor, *args: Any, device: Any = None) -> SparseTensor:
    """A sparse tensor of this one's type: `x.new(2, 3)`, `x.new(indices, values)`."""
    from flambeau._ops.factories.sparse_typed import legacy_sparse  # it imports what this does

    check_available(self.device if device is None else device)
    return legacy_sparse(self.dtype, args)


# ---- copies


@method
def detach(self: SparseTensor) -> SparseTensor:
    """The same memory without history."""
    return sparse_tensor(alias(self._places), alias(self._entries), self._size, self._coalesced)


@method
def detach_(self: SparseTensor) -> SparseTensor:
    """Cut this tensor off from its history."""
    self._entries, self._title = alias(self._entries), None
    return self


SparseTensor.data = property(detach)  # type: ignore[assignment]


@method
def to(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
    """This tensor in another type; itself where nothing changes and no `copy` is wanted."""
    dtype, place, wants_copy, _ = parse_to(args, kwargs)
    if place is not None and place is not self.device:
        return constructors["to_device"](self, place, dtype, wants_copy, None)  # type: ignore[no-any-return]
    if (dtype is None or dtype is self.dtype) and not wants_copy:
        return self
    entries = ops._to_copy(self._entries, dtype=dtype or self.dtype)
    return with_places(self, entries, "ToCopyBackward0")


@method
def __deepcopy__(self: SparseTensor, memo: dict[int, Any]) -> SparseTensor:
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    if self._node is not None:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the "
                           "deepcopy protocol at the moment.")  # fmt: skip
    parts = copy.deepcopy(self._places, memo), copy.deepcopy(self._entries, memo)
    result = memo[id(self)] = sparse_tensor(*parts, self._size, self._coalesced)
    if self._given_grad is not None:
        result.grad = copy.deepcopy(self._given_grad, memo)
    return result


@method
def __reduce_ex__(self: SparseTensor, protocol: Any) -> Any:
    parts = alias(self._places), alias(self._entries), tuple(self._size), self._coalesced
    return sparse_tensor, parts


@method
def to_sparse(
    self: SparseTensor, sparse_dim: int | None = None, *, layout: Any = None,
    blocksize: Any = None, dense_dim: Any = None,
) -> Any:  # fmt: skip
    """This tensor, which is sparse already, or its dense form where `torch.strided` is asked."""
    if layout is lay.strided:
        return self.to_dense()
    if layout is not None and layout is not lay.sparse_coo:
        return to_layout(self, layout, blocksize, dense_dim, "to_sparse")
    for name, value in (("blocksize", blocksize), ("dense_dim", dense_dim)):
        if value is not None:
            raise RuntimeError(f"to_sparse: conversion from Sparse to Sparse with {name} argument "
                               "given is not supported")  # fmt: skip
    if sparse_dim is not None and sparse_dim != self.sparse_dim():
        raise RuntimeError("to_sparse: conversion from Sparse to Sparse with sparse_dim argument "
                           "!=self.sparse_dim() is not supported")  # fmt: skip
    return self


@method
def new_zeros(self: SparseTensor, *size: Any, dtype: Any = None, **options: Any) -> SparseTensor:
    """A sparse tensor of a shape, with the type of this one and no entries."""
    options.setdefault("device", self.device)
    return ops.zeros(  # type: ignore[no-any-return]
        *size, dtype=dtype or self.dtype, layout=lay.sparse_coo, **options
    )


def like(tensor: SparseTensor, dtype: Any, device: Any) -> SparseTensor:
    """A sparse tensor of the same size, and of the same sparse dims, without entries."""
    from flambeau._ops.sparse.constructors import without_entries

    check_available(device or tensor.device)
    return without_entries(tensor._size, dtype or tensor.dtype, tensor.sparse_dim())


@method
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Take over the places and values of another sparse tensor."""
    if not (is_sparse(self) and is_sparse(src)):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{self.type()} and src type = {src.type()}"
        )
    check_inplace(self, self.requires_grad)
    self._size = src._size
    entries = ops._to_copy(src._entries, dtype=self.dtype)
    return replace(self, ops.clone(src._places), entries, src._coalesced)


@method
def resize_(self: SparseTensor, *size: Any, memory_format: Any = None) -> SparseTensor:
    """Raises NotImplementedError: see `sparse_resize_`."""
    raise refusal("resize_")


@method
def contiguous(self: SparseTensor, memory_format: Any = None) -> SparseTensor:
    """Raises RuntimeError: a sparse tensor has no order in memory."""
    raise RuntimeError("unsupported memory format option Contiguous")


# ---- numbers


@method
def item(self: SparseTensor) -> Any:
    """The one element."""
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return self.to_dense().item()  # type: ignore[attr-defined]


@method
def __float__(self: SparseTensor) -> float:
    return float(item(self))


@method
def __int__(self: SparseTensor) -> int:
    return int(item(self))


@method
def __bool__(self: SparseTensor) -> bool:
    if self.numel() > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(item(self))


# ---- products, hooks


@method
def __matmul__(self: SparseTensor, other: Any) -> Any:
    return product(self, other) if isinstance(other, Tensor) else NotImplemented


@method
def __rmatmul__(self: SparseTensor, other: Any) -> Any:
    return product(other, self) if isinstance(other, Tensor) else NotImplemented


@method
def matmul(self: SparseTensor, other: Any) -> Any:
    """The product with a matrix or a vector."""
    return product(self, other)


@method
def register_hook(self: SparseTensor, hook: Callable[[SparseTensor], Any]) -> Any:
    """Call `hook(grad)` with the sparse gradient; it may return another with the same places."""

    def on_entries(grad: Tensor) -> Any:
        replaced = hook(with_places(self, grad))
        return None if replaced is None else replaced._entries

    return self._entries.register_hook(on_entries)  # type: ignore[attr-defined]


@on_sparse("_to_copy")
def to_copy(tensor: SparseTensor, dtype: Any = None, memory_format: Any = None) -> SparseTensor:
    """A copy in another type."""
    return to(tensor, dtype, copy=True)
