"""Views: other shapes and strides over the same memory."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._ops.dims import infer_size, wrap_dim
from flambeau._ops.namespace import ops
from flambeau._ops.op import composite, view
from flambeau._runtime.cpu import address, element_strides, owner_of
from flambeau._tensor.tensor import Tensor, storage_of

index = operator.index


def strided(data: np.ndarray, shape: Sequence[int], strides: Sequence[int],
            offset: int = 0) -> np.ndarray:  # fmt: skip
    """The array with this shape and these byte strides, `offset` bytes after the start of `data`."""
    owner = owner_of(data)
    start = address(data) - address(owner) + offset
    if not owner.flags.c_contiguous or owner.size == 0 or data.size == 0:
        view_ = np.lib.stride_tricks.as_strided(data, tuple(shape), tuple(strides))
        view_.flags.writeable = data.flags.writeable
        return view_
    return np.ndarray(tuple(shape), data.dtype, owner, start, tuple(strides))


@view("select.int(Tensor(a) self, int dim, int index) -> Tensor(a)", backward={
    "self": lambda grad, self_shape, dim, index: ops.select_backward(
        grad, self_shape, dim, index),
})
def select(data: np.ndarray, dim: int, index: int) -> np.ndarray:
    """One position along a dim, which is left out of the result."""
    if data.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, data.ndim)
    size = data.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size "
                         f"{list(data.shape)} at dimension {dim}")  # fmt: skip
    return data[(slice(None),) * dim + (index, ...)]


@composite("select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
           method=False)
def select_backward(grad: Any, shape: Any, dim: int, index: int) -> Any:
    """The gradient of `select`: zeros with the gradient in its place."""
    return ops.select_scatter(ops.new_zeros(grad, shape), grad, dim, index)


@view("slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1)"
      " -> Tensor(a)", function=False, method=False, backward={
    "self": lambda grad, self_shape, dim, start, end, step: ops.slice_scatter(
        ops.new_zeros(grad, self_shape), grad, dim, start, end, step),
})
def slice_(data: np.ndarray, dim: int, start: int | None, end: int | None,
           step: int) -> np.ndarray:  # fmt: skip
    """Positions start, start + step, ... before `end` along a dim."""
    if step <= 0:
        raise ValueError("step must be greater than zero")
    dim = wrap_dim(dim, data.ndim)
    return data[(slice(None),) * dim + (slice(start, end, step),)]


@view("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", inplace=False, backward={
    "self": lambda grad, dim0, dim1: grad.transpose(dim0, dim1),
})
def transpose(data: np.ndarray, dim0: int, dim1: int) -> np.ndarray:
    """Exchange two dims."""
    if data.ndim == 0:
        wrap_dim(dim0, 0)
        wrap_dim(dim1, 0)
        return data.view()
    return data.swapaxes(wrap_dim(dim0, data.ndim), wrap_dim(dim1, data.ndim))


@view("permute(Tensor(a) self, int[] dims) -> Tensor(a)", backward={
    "self": lambda grad, dims: grad.permute(inverse_permutation(dims)),
})
def permute(data: np.ndarray, dims: Sequence[int]) -> np.ndarray:
    """Put the dims in another order."""
    if len(dims) != data.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {data.ndim} is not "
            f"equal to len(dims) = {len(dims)}"
        )
    wrapped = [wrap_dim(index(dim), data.ndim) for dim in dims]
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return data.transpose(wrapped)


def inverse_permutation(dims: Sequence[int]) -> list[int]:
    """The order that undoes an order of dims."""
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim % len(dims)] = position
    return inverse


@view("view(Tensor(a) self, int[] size) -> Tensor(a)", function=False, backward={
    "self": lambda grad, self_shape: grad.reshape(self_shape),
})
def view_(data: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """The same elements in another shape, without a copy."""
    shape = infer_size(size, data.size)
    if data.flags.c_contiguous:
        return data.reshape(shape)
    strides = view_strides(data, shape)
    if strides is None:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at "
                           "least one dimension spans across two contiguous subspaces). Use "
                           ".reshape(...) instead.")  # fmt: skip
    return strided(data, shape, strides)


def view_strides(data: np.ndarray, shape: Sequence[int]) -> tuple[int, ...] | None:
    """Byte strides that show `data` in another shape, or None where a copy is needed."""
    if data.size == 0:
        return data.strides if tuple(shape) == data.shape else _row_major(data, shape)
    blocks = _memory_blocks(data)
    strides: list[int] = []
    remaining = list(shape)
    for count, step in reversed(blocks):
        taken = 1
        while remaining and (taken < count or remaining[-1] == 1):
            size = remaining.pop()
            strides.append(step * taken)
            taken *= size
        if taken != count:
            return None
    for size in reversed(remaining):
        if size != 1:
            return None
        strides.append(strides[-1] if strides else data.itemsize)
    return tuple(reversed(strides))


def _row_major(data: np.ndarray, shape: Sequence[int]) -> tuple[int, ...]:
    return np.empty(tuple(shape), data.dtype).strides


def _memory_blocks(data: np.ndarray) -> list[tuple[int, int]]:
    """Runs of dims that lie evenly spaced in memory: (number of elements, innermost stride)."""
    blocks: list[tuple[int, int]] = []
    for size, step in zip(data.shape, data.strides, strict=True):
        if size == 1:
            continue
        if blocks and blocks[-1][1] == step * size:
            blocks[-1] = (blocks[-1][0] * size, step)
        else:
            blocks.append((size, step))
    return blocks or [(1, data.itemsize)]


@view("expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)", function=False,
      backward={"self": lambda grad, self_shape: ops.sum_to_size(grad, self_shape)})
def expand(data: np.ndarray, size: Sequence[int], implicit: bool = False) -> np.ndarray:
    """Repeat dims of size 1 (and new leading dims) without copying; -1 keeps a size."""
    missing = len(size) - data.ndim
    if missing < 0:
        raise RuntimeError(
            f"expand(torch.{_type_name(data)}{{{list(data.shape)}}}, size={list(size)}): the "
            f"number of sizes provided ({len(size)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({data.ndim})"
        )
    shape, strides = [], []
    for position, wanted in enumerate(size):
        dim = position - missing
        wanted, stride = _expanded(data, index(wanted), dim, position, size)
        shape.append(wanted)
        strides.append(stride)
    return strided(data, shape, strides)


def _type_name(data: np.ndarray) -> str:
    from flambeau._core.dtype import from_numpy_dtype

    return f"{from_numpy_dtype(data.dtype).scalar_name}Tensor"


def _expanded(data: np.ndarray, wanted: int, dim: int, position: int,
              size: Sequence[int]) -> tuple[int, int]:  # fmt: skip
    if dim < 0:
        if wanted < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, "
                f"non-existing dimension {position}"
            )
        return wanted, 0
    have = data.shape[dim]
    if wanted == -1 or wanted == have:
        return have, data.strides[dim]
    if have != 1:
        raise RuntimeError(
            f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at "
            f"non-singleton dimension {position}.  Target sizes: {list(size)}.  Tensor sizes: "
            f"{list(data.shape)}"
        )
    return wanted, 0


@view("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", backward={
    "self": lambda grad, dim, self_shape: grad.reshape(self_shape)})
def unsqueeze(data: np.ndarray, dim: int) -> np.ndarray:
    """A new dim of size 1 at `dim`."""
    dim = wrap_dim(dim, data.ndim + 1)
    stride = data.itemsize if dim == data.ndim else data.shape[dim] * data.strides[dim]
    shape = (*data.shape[:dim], 1, *data.shape[dim:])
    return strided(data, shape, (*data.strides[:dim], stride, *data.strides[dim:]))


@view("squeeze(Tensor(a) self) -> Tensor(a)", node="SqueezeBackward0", order=0, backward={
    "self": lambda grad, self_shape: grad.reshape(self_shape)})
def squeeze(data: np.ndarray) -> np.ndarray:
    """Leave out all dims of size 1."""
    keep = [dim for dim in range(data.ndim) if data.shape[dim] != 1]
    return strided(data, [data.shape[d] for d in keep], [data.strides[d] for d in keep])


@view("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", node="SqueezeBackward1", order=1,
      backward={"self": lambda grad, self_shape: grad.reshape(self_shape)})
def squeeze_dim(data: np.ndarray, dim: int) -> np.ndarray:
    """Leave out one dim if its size is 1."""
    dim = wrap_dim(dim, data.ndim)
    if data.ndim == 0 or data.shape[dim] != 1:
        return data.view()
    return data[(slice(None),) * dim + (0, ...)]


@view("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", node="SqueezeBackward2", order=2,
      backward={"self": lambda grad, self_shape: grad.reshape(self_shape)})
def squeeze_dims(data: np.ndarray, dim: Sequence[int]) -> np.ndarray:
    """Leave out those of the given dims whose size is 1."""
    dims = {wrap_dim(index(d), data.ndim) for d in dim}
    keep = [d for d in range(data.ndim) if d not in dims or data.shape[d] != 1]
    return strided(data, [data.shape[d] for d in keep], [data.strides[d] for d in keep])


@view("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", backward={
    "self": lambda grad, self_shape, offset, dim1, dim2: ops.diagonal_scatter(
        ops.new_zeros(grad, self_shape), grad, offset, dim1, dim2)})
def diagonal(data: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    """The elements on a diagonal of two dims, as the last dim."""
    first, second = wrap_dim(dim1, data.ndim), wrap_dim(dim2, data.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    result = data.diagonal(offset, first, second)
    result.flags.writeable = data.flags.writeable
    return result


@view("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", function=False,
      backward={"self": lambda grad, self_shape, dimension, size, step: ops.unfold_backward(
          grad, self_shape, dimension, size, step)})
def unfold(data: np.ndarray, dimension: int, size: int, step: int) -> np.ndarray:
    """All windows of `size` along a dim, `step` apart; the window is a new last dim."""
    dim = wrap_dim(dimension, data.ndim)
    length = data.shape[dim] if data.ndim else 1
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is "
                           f"{size}")  # fmt: skip
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if data.ndim == 0:
        return strided(data, (size,), (data.itemsize,))
    shape, strides = list(data.shape), list(data.strides)
    shape[dim], strides[dim] = (length - size) // step + 1, strides[dim] * step
    return strided(data, [*shape, size], [*strides, data.strides[dim]])


@view("as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None)"
      " -> Tensor(a)", node="AsStridedBackward0", backward=None)
def as_strided(data: np.ndarray, size: Sequence[int], stride: Sequence[int],
               storage_offset: int | None = None) -> np.ndarray:  # fmt: skip
    """Any shape and strides (in elements) over the storage of the tensor."""
    owner = owner_of(data)
    start = address(data) - address(owner) if storage_offset is None else (
        storage_offset * data.itemsize)  # fmt: skip
    flat = owner.reshape(-1) if owner.flags.c_contiguous else owner.ravel(order="K")
    last = start + sum((n - 1) * s for n, s in zip(size, stride, strict=True) if n) * data.itemsize
    if np.prod(size, dtype=int) and last + data.itemsize > flat.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{start // data.itemsize}, and itemsize {data.itemsize} requiring a storage size of "
            f"{last + data.itemsize} are out of bounds for storage of size {flat.nbytes}"
        )
    steps = [s * data.itemsize for s in stride]
    if not np.prod(size, dtype=int):
        return np.lib.stride_tricks.as_strided(flat[:0], tuple(size), tuple(steps))
    return np.ndarray(tuple(size), data.dtype, owner, start, tuple(steps))


@view("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", backward={
    "self": lambda grads, dim: ops.stack(grads, dim)})
def unbind(data: np.ndarray, dim: int) -> list[np.ndarray]:
    """All positions along a dim, as a tuple of views."""
    if data.ndim == 0:
        raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
    return list(np.moveaxis(data, wrap_dim(dim, data.ndim), 0))


@view("split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]", order=0,
      public="_split_size", backward={"self": lambda grads, dim: ops.cat(grads, dim)},
      node="SplitBackward0")
def split(data: np.ndarray, split_size: int, dim: int) -> list[np.ndarray]:
    """Pieces of `split_size` along a dim; the last may be smaller."""
    if data.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size="
                           f"{split_size}")  # fmt: skip
    dim = wrap_dim(dim, data.ndim)
    length = data.shape[dim]
    if split_size == 0 and length:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension "
                           f"size of {length}")  # fmt: skip
    before = (slice(None),) * dim
    starts = range(0, max(length, 1), max(split_size, 1))
    return [data[(*before, slice(start, start + split_size))] for start in starts]


@view("split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
      backward={"self": lambda grads, dim: ops.cat(grads, dim)})
def split_with_sizes(data: np.ndarray, split_sizes: Sequence[int], dim: int) -> list[np.ndarray]:
    """Pieces of the given sizes along a dim."""
    dim = wrap_dim(dim, data.ndim)
    if sum(split_sizes) != data.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {data.shape[dim]} (input "
            f"tensor's size at dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    pieces, start = [], 0
    for size in split_sizes:
        pieces.append(data[(slice(None),) * dim + (slice(start, start + size),)])
        start += size
    return pieces


_ = (composite, Tensor, storage_of, element_strides)
