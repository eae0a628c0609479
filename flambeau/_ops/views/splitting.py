"""Tensors cut into tuples of views: `split`, `chunk`, `unbind` and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._core.doc_text import with_example
from flambeau._ops.table.binder import is_integer, plain_type_name
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, view
from flambeau._ops.table.pointwise import wants_grad
from flambeau._ops.views.geometry import at_position
from flambeau._runtime.cpu import address
from flambeau._tensor.device_array import DeviceArray
from flambeau._tensor.tensor import Tensor, new, storage_of, wrap
from flambeau.autograd.tangents import hand_on


def _whole(grads: Any, dim: int) -> Any:
    """Gradients of all positions along a dim as one: the array on a device whose slices they are,
    where they lie in one so; else a new tensor."""
    arrays = [grad._data for grad in grads]
    base = arrays[0].base if arrays else None
    if not isinstance(base, DeviceArray) or wants_grad(grads):
        return ops.stack(grads, dim)
    first = arrays[0]
    if base.dtype != first.dtype or base.shape != (len(arrays), *first.shape):
        return ops.stack(grads, dim)
    start, step, steps = address(base), base.strides[0], base.strides[1:]
    are_slices = all(
        array.base is base and array.strides == steps and address(array) == start + place * step
        for place, array in enumerate(arrays)
    )
    return wrap(np.moveaxis(base, 0, dim)) if are_slices else ops.stack(grads, dim)


@view(
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    backward={"self": _whole},
)
def unbind(data: np.ndarray, dim: int) -> list[np.ndarray]:
    """All positions along a dim, as a tuple of views.

    >>> import flambeau as torch
    >>> [row.tolist() for row in torch.unbind(torch.arange(4).reshape(2, 2))]
    [[0, 1], [2, 3]]
    """
    if data.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, data.ndim)
    first = data if dim == 0 else data.transpose((dim, *[d for d in range(data.ndim) if d != dim]))
    return [first[position, ...] for position in range(len(first))]


def _pieces(data: np.ndarray, split_size: int, dim: int) -> list[np.ndarray]:
    """Pieces of one size along a dim; the last may be smaller."""
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


def _pieces_of_sizes(data: np.ndarray, split_sizes: Sequence[int], dim: int) -> list[np.ndarray]:
    """Pieces of the given sizes along a dim."""
    if data.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    given, dim = dim, wrap_dim(dim, data.ndim)
    if min(split_sizes, default=0) < 0:
        raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, "
                           f"but got split_sizes={list(split_sizes)}")  # fmt: skip
    if sum(split_sizes) != data.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {data.shape[dim]} (input "
            f"tensor's size at dimension {given}), but got split_sizes={list(split_sizes)}"
        )
    before = (slice(None),) * dim
    pieces, start = [], 0
    for size in split_sizes:
        piece = data[(*before, slice(start, start + size))]
        if not size:
            piece = at_position(data, dim, start, piece.shape, data.strides)
        pieces.append(piece)
        start += size
    return pieces


def _joined(grads: Any, dim: int) -> Any:
    return ops.cat(grads, dim)


@view(
    "split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
    public="_split_size",
    method=False,
    function=False,
    node="SplitBackward0",
    also_saved=("self_shape", "split_size"),
    backward={"self": _joined},
)
def split_size(data: np.ndarray, split_size: int, dim: int) -> list[np.ndarray]:
    """Pieces of `split_size` along a dim; the last may be smaller."""
    return _pieces(data, split_size, dim)


@view(
    "split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
    also_saved=("self_shape", "split_sizes"),
    backward={"self": _joined},
)
def split_with_sizes(data: np.ndarray, split_sizes: Sequence[int], dim: int) -> list[np.ndarray]:
    """Pieces of the given sizes along a dim.

    >>> import flambeau as torch
    >>> torch.split_with_sizes(torch.arange(4), [1, 3])
    (tensor([0]), tensor([1, 2, 3]))
    """
    return _pieces_of_sizes(data, split_sizes, dim)


@composite("split(Tensor(a) self, int[] split_size_or_sections, int dim=0) -> Tensor(a)[]")
def split(input: Any = None, split_size_or_sections: Any = None, dim: int = 0, *,
          split_size: Any = None, tensor: Any = None) -> Any:  # fmt: skip
    """Pieces of one size (the last may be smaller), or of the given sizes, along a dim. The
    function calls its first argument `tensor`, the method its second one `split_size`.

    >>> import flambeau as torch
    >>> [part.tolist() for part in torch.split(torch.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    input = tensor if input is None else input
    wanted = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(wanted, (int, np.integer)):
        return ops._split_size(input, wanted, dim)
    if isinstance(wanted, Tensor):
        if wanted._data.size != 1:
            raise TypeError("split_with_sizes(): argument 'split_sizes' (position 2) must be tuple "
                            "of ints, not Tensor")  # fmt: skip
        return ops._split_size(input, int(wanted.item()), dim)
    return ops.split_with_sizes(input, wanted, dim)


def _chunk_size(input: Tensor, chunks: int, dim: int) -> tuple[int, int]:
    """How long each of `chunks` pieces is, and the dim's length."""
    data = input._data
    if data.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = data.shape[wrap_dim(dim, data.ndim)]
    return (length + chunks - 1) // chunks, length


def _chunk(input: Tensor, chunks: int, dim: int, pieces: Any, pieces_of_sizes: Any) -> Any:
    if not is_integer(chunks):
        raise TypeError(
            f"chunk(): argument 'chunks' (position 1) must be int, not {plain_type_name(chunks)}"
        )
    chunks = int(chunks)
    size, length = _chunk_size(input, chunks, dim)
    if size == 0 and length == 0:
        return pieces_of_sizes(input, [0] * chunks, dim)
    return pieces(input, size, dim)


@composite("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", regular=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """At most `chunks` pieces of equal size; the last may be smaller.

    >>> import flambeau as torch
    >>> [part.tolist() for part in torch.chunk(torch.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    return _chunk(input, chunks, dim, ops._split_size, ops.split_with_sizes)


# ---- unsafe: the pieces do not count as views


@view(
    "unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]",
    may_give_input=True,
    public="_unsafe_split",
    method=False,
    function=False,
    node="UnsafeSplitBackward0",
    also_saved=("self_shape", "split_size"),
    backward={"self": _joined},
)
def unsafe_split_(data: np.ndarray, split_size: int, dim: int) -> list[np.ndarray]:
    """The pieces of `unsafe_split`, still marked as views."""
    return _pieces(data, split_size, dim)


@view(
    "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    may_give_input=True,
    public="_unsafe_split_with_sizes",
    method=False,
    function=False,
    node="UnsafeSplitWithSizesBackward0",
    also_saved=("self_shape", "split_sizes"),
    backward={"self": _joined},
)
def unsafe_sizes_(data: np.ndarray, split_sizes: Sequence[int], dim: int) -> list[np.ndarray]:
    """The pieces of `unsafe_split_with_sizes`, still marked as views."""
    return _pieces_of_sizes(data, split_sizes, dim)


def _unrelated(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The same pieces with version counts of their own: writes to them concern nobody else."""
    loose = []
    for part in parts:
        piece = new(Tensor)
        piece._data, piece._storage = part._data, storage_of(part)
        piece._node, piece._requires_grad = part._node, part._requires_grad
        if part._tangents is not None:
            hand_on(part, piece)
        loose.append(piece)
    return tuple(loose)


@composite("unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]")
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> Any:
    """`split` whose pieces may be written to, if the tensor is not used again.

    Pieces differ in size along `dim` alone.

    >>> import flambeau as torch
    >>> torch.unsafe_split(torch.arange(4), 3)
    (tensor([0, 1, 2]), tensor([3]))
    """
    return _unrelated(ops._unsafe_split(input, split_size, dim))


@composite("unsafe_split_with_sizes.public(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]")
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """`split_with_sizes` whose pieces may be written to, if the tensor is not used again.

    Pieces differ in size along `dim` alone.

    >>> import flambeau as torch
    >>> torch.unsafe_split_with_sizes(torch.arange(4), [1, 3])
    (tensor([0]), tensor([1, 2, 3]))
    """
    return _unrelated(ops._unsafe_split_with_sizes(input, split_sizes, dim))


@composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", may_give_input=True)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """`chunk` whose pieces may be written to, if the tensor is not used again.

    Pieces differ in size along `dim` alone.

    >>> import flambeau as torch
    >>> torch.unsafe_chunk(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _chunk(input, chunks, dim, ops.unsafe_split, ops.unsafe_split_with_sizes)


# ---- cuts at positions


def _cuts(length: int, sections: int) -> list[int]:
    """Where `sections` nearly equal pieces begin, the longer ones first."""
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    size, longer = divmod(length, sections)
    return [part * size + min(part, longer) for part in range(1, sections)]


@composite(
    "tensor_split(Tensor(a -> *) self, int[] indices_or_sections, int dim=0) -> Tensor(a)[]",
    several=True,
)
def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, *,
                 sections: Any = None, indices: Any = None,
                 tensor_indices_or_sections: Any = None) -> Any:  # fmt: skip
    """Pieces cut at the given positions, or a number of nearly equal pieces.

    Pieces differ in size along `dim` alone.

    >>> import flambeau as torch
    >>> torch.tensor_split(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> torch.tensor_split(torch.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    given = [indices_or_sections, sections, indices, tensor_indices_or_sections]
    wanted: Any = next((value for value in given if value is not None), None)
    if input._data.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a "
                           "tensor with 0 dims")  # fmt: skip
    dim = wrap_dim(dim, input._data.ndim)
    if isinstance(wanted, Tensor):
        wanted = _cuts_of_tensor(wanted)
    length = input._data.shape[dim]
    if isinstance(wanted, (int, np.integer)):
        wanted = _cuts(length, int(wanted))
    starts, ends = [0, *wanted], [*wanted, length]
    cut = ops.slice
    return tuple([cut(input, dim, a, b) for a, b in zip(starts, ends, strict=True)])


def _cuts_of_tensor(wanted: Tensor) -> Any:
    data = wanted._data
    if data.dtype != np.int64:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of "
                           f"long, but got {wanted.dtype.scalar_name}")  # fmt: skip
    if data.ndim > 1:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-"
                           f"dimensional or one-dimensional tensor, but got a tensor with "
                           f"{data.ndim} dims")  # fmt: skip
    return data.tolist()


def _directed(name: str, least: int, dim_of: Callable[[int], int], doc: str) -> None:
    """`hsplit`, `vsplit` and `dsplit`: `tensor_split` along a fixed dim, evenly."""

    def function(input: Tensor, *positions: Any, sections: Any = None, indices: Any = None,
                 indices_or_sections: Any = None) -> Any:  # fmt: skip
        first = positions[0] if len(positions) == 1 else positions or None
        given = [first, indices_or_sections, sections, indices]
        wanted = next((value for value in given if value is not None), None)
        ndim = input._data.ndim
        if ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, "
                               f"but got a tensor with {ndim} dimensions!")  # fmt: skip
        dim = dim_of(ndim)
        length = input._data.shape[dim]
        if isinstance(wanted, (int, np.integer)) and (wanted == 0 or length % wanted):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                f"dimension {length} is not divisible by the split_size {wanted}!"
            )
        return tensor_split.body(input, wanted, dim)

    function.__name__, function.__doc__ = name, doc
    schema = f"{name}(Tensor(a -> *) self, int[] indices_or_sections) -> Tensor(a)[]"
    composite(schema, several=True)(function)


_directed("hsplit", 1, lambda ndim: 0 if ndim == 1 else 1, with_example(
    "Pieces side by side: along dim 1.", "torch.hsplit(torch.ones(3, 4), 2)[0].shape",
    "torch.Size([3, 2])"))  # fmt: skip
_directed("vsplit", 2, lambda ndim: 0, with_example(
    "Pieces one above another: along dim 0.", "torch.vsplit(torch.ones(4, 3), 2)[0].shape",
    "torch.Size([2, 3])"))  # fmt: skip
_directed("dsplit", 3, lambda ndim: 2, with_example(
    "Pieces in depth: along dim 2.", "torch.dsplit(torch.ones(2, 3, 4), 2)[0].shape",
    "torch.Size([2, 3, 2])"))  # fmt: skip
