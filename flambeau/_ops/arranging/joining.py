"""Joining and reshaping: `cat`, `stack`, `reshape`, `meshgrid`, ..."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.layout import channels_last_strides, contiguous_format, is_channels_last
from flambeau._core.promotion import promote_types
from flambeau._ops.copying.copies import assign
from flambeau._ops.indexing.positions import FULL, along
from flambeau._ops.table.binder import Alone, no_tensor, type_error
from flambeau._ops.table.dims import infer_size, wrap_dim
from flambeau._ops.table.dispatch import named_sizes, only_size, size_list
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import BY_NAME, alias, composite, kernel
from flambeau._ops.table.outputs import JOINED
from flambeau._ops.views.basic import view_
from flambeau._ops.views.geometry import view_strides
from flambeau._ops.views.strided import renamed
from flambeau._runtime import cpu
from flambeau._runtime.cpu import element_strides, empty_strided
from flambeau._tensor.tensor import Tensor


@composite("reshape(Tensor(a) self, int[] shape) -> Tensor(a)", regular=True, bare=True)
def reshape(input: Any, *shape: Any, **named: Any) -> Any:
    """The same elements in another shape: a view where possible, else a copy.

    >>> import flambeau as torch
    >>> torch.reshape(torch.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if named or not shape:
        shape = (named_sizes(BY_NAME["reshape"][0], shape, named),)
    try:
        data = input._data if input._stored is None else input._stored
        if data.flags.c_contiguous:
            return ops.view(input, *shape)
        if len(shape) == 1:
            shape = size_list(shape)
        sizes = infer_size(shape, data.size)
    except (AttributeError, TypeError):
        raise _reshape_error(input, shape) from None
    if view_strides(data, sizes) is not None:
        return _reshaped_alias(input, sizes)
    copied = ops.clone(input, memory_format=contiguous_format)
    return ops._unsafe_view(copied, sizes)


def _reshaped_alias(input: Any, sizes: Any) -> Any:
    """A view of what is not row-major, which torch's history calls by another name."""
    result = ops.view(input, sizes)
    node = getattr(result, "_node", None)
    if node is not None:
        renamed(node, "ReshapeAliasBackward0")
    return result


def _reshape_error(input: Any, shape: Any) -> TypeError:
    if not isinstance(input, Tensor):
        return no_tensor("reshape", "input", 1, input)
    given = only_size(shape) if len(shape) == 1 else shape
    if given.__class__ is Alone:
        return type_error(BY_NAME["reshape"][0], 1, given[0], "Tensor.reshape")
    for position, item in enumerate(given):
        if not hasattr(item, "__index__"):
            name = type(item).__name__
            return TypeError(
                f"reshape(): argument 'shape' must be tuple of ints, but found element of type "
                f"{name} at pos {position}"
            )
    return TypeError("reshape(): argument 'shape' (position 1) must be tuple of ints")


@kernel(
    "_unsafe_view(Tensor self, int[] size) -> Tensor",
    method=False,
    backward={"self": lambda grad, self_shape: ops.reshape(grad, self_shape)},
)
def unsafe_view(data: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Another shape for memory that nobody else sees: the result does not count as a view."""
    return data.reshape(size)


# ---- cat and stack


def cat_grads(grad: Any, shapes: Any, dim: int) -> Any:
    """The parts of a joined gradient that belong to each input."""
    ndim = grad._data.ndim
    dim = wrap_dim(dim, ndim)
    sizes = [0 if _is_skipped(shape) and ndim != 1 else shape[dim] for shape in shapes]
    parts = _parts(grad, sizes, dim)
    return [
        ops.new_zeros(grad, shape) if len(shape) != ndim or _is_skipped(shape) else part
        for part, shape in zip(parts, shapes, strict=True)
    ]


def _parts(grad: Any, sizes: list[int], dim: int) -> Any:
    """Views of a gradient. Where they are recorded, each is one of its own, which may be written
    to."""
    if not modes.grad.enabled:
        return ops.split_with_sizes(grad, sizes, dim)
    ends = itertools.accumulate(sizes)
    return [ops.narrow(grad, dim, end - size, size) for end, size in zip(ends, sizes, strict=True)]


FEW = 8
"""Up to this many arrays are stacked one by one: less work than joining them."""


def _is_skipped(shape: tuple[int, ...]) -> bool:
    """Empty vectors join with anything, as they always did in torch."""
    return shape == (0,)


@kernel(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    between_kernels=True,
    regular=True,
    batch="dims",
    autocast="cpu=widest",
    out=True,
    out_type=JOINED,
    out_apart=True,
    method=False,
    saved_names={"tensors_shape": None},
    backward={"tensors": lambda grad, tensors_shape, dim: cat_grads(grad, tensors_shape, dim)},
)
def cat(arrays: Sequence[np.ndarray], dim: int) -> np.ndarray:
    """Join tensors along a dim that they have already.

    tensors: a sequence of tensors whose shapes differ in `dim` alone; empty ones of shape (0,)
        are left out.
    dim: the dim whose sizes add up.

    The types meet as in a sum. `stack` joins along a new dim.

    >>> import flambeau as torch
    >>> torch.cat([torch.zeros(2), torch.ones(3)])
    tensor([0., 0., 1., 1., 1.])
    """
    if not arrays:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    largest = max(arrays[0].nbytes, arrays[-1].nbytes)
    if len(arrays) * largest < SMALL and _are_plain(arrays):
        try:
            return np.concatenate(arrays, dim)
        except (ValueError, TypeError):
            pass  # shapes or dims that do not fit: torch's errors below
    result, joined, dim = _place_for_cat(arrays, dim)
    if result.nbytes >= SMALL and len(joined) <= MANY:
        start = 0
        for part in joined:
            stop = start + part.shape[dim]
            assign(result[along(dim, slice(start, stop))], part)
            start = stop
    elif joined:
        np.concatenate(joined, dim, out=result, casting="unsafe")
    return result


SMALL, MANY = 1 << 15, 64
"""Bytes up to which, and arrays from which on, NumPy joins all at once."""


def _are_plain(arrays: Sequence[np.ndarray]) -> bool:
    """Whether NumPy joins arrays as torch does: row-major ones of one type, none of them empty, of
    so few dims that there is no other memory format."""
    numpy_dtype = arrays[0].dtype
    for array in arrays:
        shape = array.shape
        if len(shape) > 3 or 0 in shape or array.dtype != numpy_dtype:  # noqa: PLR2004
            return False
        if not array.flags.c_contiguous:
            return False
    return True


def _place_for_cat(arrays: Sequence[np.ndarray], dim: int) -> Any:
    """New memory for the result, the arrays that have something to add, and the dim."""
    first = arrays[0]
    joined = arrays
    for position, array in enumerate(arrays):
        if array.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be "
                               "concatenated")  # fmt: skip
        if array.shape == (0,):
            joined = [a for a in arrays if a.shape != (0,)]
            first = joined[0] if joined else first
    numpy_dtype = _joined_type(arrays)
    if not joined:  # all are empty vectors, which count as tensors of any number of dims
        return np.empty(0, numpy_dtype), [], 0
    dim = wrap_dim(dim, first.ndim)
    shape = list(first.shape)
    shape[dim] = _joined_length(joined, dim, arrays)
    strides = channels_last_strides(shape) if _all_channels_last(arrays) else None
    if strides is None:
        return np.empty(shape, numpy_dtype), joined, dim
    return empty_strided(shape, strides, numpy_dtype), joined, dim


def _joined_type(arrays: Sequence[np.ndarray]) -> Any:
    numpy_dtype = arrays[0].dtype
    if all(array.dtype == numpy_dtype for array in arrays):
        return numpy_dtype
    kinds = [dt.from_numpy_dtype(array.dtype) for array in arrays]
    return reduce(promote_types, kinds).numpy_dtype


def _joined_length(joined: Sequence[np.ndarray], dim: int, arrays: Sequence[np.ndarray]) -> int:
    first = joined[0].shape
    rest = (*first[:dim], *first[dim + 1 :])
    length = 0
    for array in joined:
        shape = array.shape
        if shape != first:
            if len(shape) != len(first):
                raise RuntimeError(f"Tensors must have same number of dimensions: got "
                                   f"{len(first)} and {len(shape)}")  # fmt: skip
            if (*shape[:dim], *shape[dim + 1 :]) != rest:
                raise _mismatch(first, shape, dim, [a is array for a in arrays].index(True))
        length += shape[dim]
    return length


def _mismatch(first: Any, shape: Any, dim: int, position: int) -> RuntimeError:
    have, want = next(
        (b, a) for d, (a, b) in enumerate(zip(first, shape, strict=True)) if a != b and d != dim
    )
    return RuntimeError(
        f"Sizes of tensors must match except in dimension {dim}. Expected size "
        f"{want} but got size {have} for tensor number {position} in the list."
    )


def _all_channels_last(arrays: Sequence[np.ndarray]) -> bool:
    """Whether the result keeps dim 1 innermost: if all inputs of 4 or 5 dims have it so."""
    for array in arrays:
        if array.ndim not in (4, 5) or not is_channels_last(array.shape, element_strides(array)):
            return False
    return True


alias("concat", "cat")
alias("concatenate", "cat")


@kernel(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    between_kernels=True,
    regular=True,
    device_check="cat",
    batch="new dim",
    autocast="cpu=widest",
    out=True,
    out_apart=True,
    out_type=JOINED,
    method=False,
    backward={
        "tensors": lambda grad, dim: ops.unbind(grad, dim),
    },
)
def stack(arrays: Sequence[np.ndarray], dim: int) -> np.ndarray:
    """Join tensors of one shape along a new dim.

    n tensors of shape (A, B) give (n, A, B) with `dim=0`, (A, n, B) with 1 and (A, B, n) with 2.
    `cat` joins along a dim that is there.

    >>> import flambeau as torch
    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = arrays[0].shape
    for position, array in enumerate(arrays):
        if array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(array.shape)} at entry {position}"
            )
    ndim = len(first)
    dim = wrap_dim(dim, ndim + 1)
    numpy_dtype = arrays[0].dtype
    one_type = [array.dtype for array in arrays].count(numpy_dtype) == len(arrays)
    if one_type and len(arrays) <= FEW and (dim == ndim or ndim <= 3):  # noqa: PLR2004
        result = np.empty((*first[:dim], len(arrays), *first[dim:]), numpy_dtype)
        for position, array in enumerate(arrays):
            place: Any = *(FULL,) * dim, position, ...
            cpu.put(result[place], array)
        return result
    if dim == ndim:
        arrays = [array[..., None] for array in arrays]
        return cat.body(arrays, dim)  # type: ignore[no-any-return]
    joined = cat.body(arrays, dim)
    return view_.body(joined, (*first[:dim], len(arrays), *first[dim:]))  # type: ignore[no-any-return]


# ---- by direction


def _as_list(name: str, tensors: Any) -> list[Any]:
    if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                        f"{type(tensors).__name__}")  # fmt: skip
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return list(tensors)


def _joined(tensors: Any, dim: int, out: Any) -> Any:
    return ops.cat(tensors, dim) if out is None else ops.cat(tensors, dim, out=out)


@composite("hstack(Tensor[] tensors) -> Tensor", method=False)
def hstack(tensors: Any, *, out: Any = None) -> Any:
    """Join side by side: along dim 1, vectors along dim 0.

    >>> import flambeau as torch
    >>> torch.hstack([torch.tensor([1]), torch.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    raised = [ops.atleast_1d(tensor) for tensor in _as_list("hstack", tensors)]
    return _joined(raised, 0 if raised[0]._data.ndim == 1 else 1, out)


@composite("vstack(Tensor[] tensors) -> Tensor", method=False)
def vstack(tensors: Any, *, out: Any = None) -> Any:
    """Join one above another: along dim 0, vectors as rows.

    >>> import flambeau as torch
    >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    raised = [ops.atleast_2d(tensor) for tensor in _as_list("vstack", tensors)]
    return _joined(raised, 0, out)


alias("row_stack", "vstack")


@composite("dstack(Tensor[] tensors) -> Tensor", method=False)
def dstack(tensors: Any, *, out: Any = None) -> Any:
    """Join in depth: along dim 2.

    >>> import flambeau as torch
    >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])]).shape
    torch.Size([1, 2, 2])
    """
    raised = [ops.atleast_3d(tensor) for tensor in _as_list("dstack", tensors)]
    return _joined(raised, 2, out)


@composite("column_stack(Tensor[] tensors) -> Tensor", method=False)
def column_stack(tensors: Any, *, out: Any = None) -> Any:
    """Join as columns: vectors and numbers become matrices of one column.

    >>> import flambeau as torch
    >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    columns = [
        tensor.reshape(tensor._data.size, 1) if tensor._data.ndim <= 1 else tensor
        for tensor in _as_list("column_stack", tensors)
    ]
    return ops.hstack(columns, out=out)
