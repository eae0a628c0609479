"""Largest and smallest elements: `max`, `min`, `amax`, `amin`, `aminmax`, `argmax`, `argmin`.

NaN counts as both the largest and the smallest, and the first of equal elements is the one whose
index is given. `max` and `min` along a dim hand their gradient to that element; `amax` and `amin`
(and `max()` of everything) share it among all that are equal.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from flambeau._ops.reductions.adding import numpy_axis
from flambeau._ops.reductions.sums import (
    INT64,
    compiled,
    finished,
    refuse,
    restore_dims,
    working_array,
)
from flambeau._ops.table.dims import wrap_dim, wrap_dims
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, reduction
from flambeau._ops.table.outputs import EXACT, MATCH
from flambeau._runtime import choice

# ---- shared


def check_not_empty(data: np.ndarray, axes: Any, text: str) -> None:
    """Raise where a dim to reduce has no elements: there is no identity to return."""
    for axis in axes:
        if data.shape[axis] == 0:
            raise IndexError(f"{text}: Expected reduction dim {axis} to have non-zero size.")


def _checked_axes(data: np.ndarray, dim: Any, name: str) -> tuple[int, ...]:
    axes = wrap_dims(dim, data.ndim)
    if data.size:
        return axes
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == "
                           "0. Specify the reduction dim with the 'dim' argument.")  # fmt: skip
    check_not_empty(data, axes, f"{name}()")
    return axes


def reals_only(data: np.ndarray, name: str) -> None:
    """Complex numbers have no order."""
    if data.dtype.kind in "cW":
        raise RuntimeError(f"{name}(): does not support complex input")


def take_along(data: np.ndarray, indices: np.ndarray, dim: int) -> np.ndarray:
    """The elements at indices along a dim (0-dim arrays have one element)."""
    if data.ndim == 0:
        return data.copy()
    if not data.size or not data.flags.c_contiguous:
        return np.take_along_axis(data, indices, dim)
    if dim != data.ndim - 1:
        indices = indices * math.prod(data.shape[dim + 1 :])
    find = row_starts if data.size <= CACHED else row_starts.__wrapped__
    return data.reshape(-1).take(indices + find(data.shape, dim))


CACHED = 1 << 14
"""Elements of the largest arrays whose `row_starts` are kept."""


@lru_cache(64)
def row_starts(shape: tuple[int, ...], dim: int) -> np.ndarray:
    """The number in row-major memory of the first element of each row along a dim: [..., 1, ...]"""
    return np.arange(math.prod(shape)).reshape(shape).take([0], dim)


def selected_backward(grad: Any, indices: Any, shape: Any, dim: int, keepdim: bool) -> Any:
    """The gradient of elements picked along a dim: back to their places, zeros elsewhere."""
    if not shape:
        return ops.clone(grad)
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return ops.scatter(ops.new_zeros(grad, shape), dim, indices, grad)


def shared_backward(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of an extreme value, in equal parts to all elements that have it."""
    if dim is not None:
        grad = restore_dims(grad, self._data.ndim, dim, keepdim)
        result = restore_dims(result, self._data.ndim, dim, keepdim)
    mask = self == result  # nothing is NaN: a NaN that was found makes NaN of the gradient
    count = ops.sum(mask, dim, True) if dim is not None else ops.sum(mask)
    return grad * mask / count


def _select(ufunc: Any, data: np.ndarray, dim: int, keepdim: bool) -> Any:
    """(values, indices) of the elements that `ufunc` (np.maximum, np.minimum) finds along a dim."""
    if not data.ndim:
        return data.copy(), np.zeros((), INT64)
    kernels = compiled(data, (dim,))
    found = None if kernels is None else kernels.place(data, dim, keepdim, ufunc is np.maximum)
    if found is not None:
        return finished(found[0], data.dtype), finished(found[1], INT64)
    indices = _place_of(ufunc, working_array(data), dim, True)
    values = take_along(data, indices, dim)
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return finished(values, data.dtype), finished(indices, INT64)


# ---- max and min


def _picked(grad: Any, indices: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    return selected_backward(grad, indices, self_shape, dim, keepdim)


def evenly_backward(grad: Any, self: Any, result: Any) -> Any:
    """The gradient of one value found among all elements, as of `max` and `median`. Other elements
    get 0, also of a gradient that is not finite.
    """
    found = equal_to(self, result)
    return ops.where(found, grad / ops.sum(found), 0.0)


def equal_to(self: Any, result: Any) -> Any:
    """Where elements are the one that was found; NaN is itself."""
    mask = self == result
    if self._data.dtype.kind not in "fV":
        return mask
    return ops.logical_or(mask, ops.logical_and(ops.isnan(self), ops.isnan(result)))


def _reduced(ufunc: Any, data: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> Any:
    """`np.maximum` or `np.minimum` over axes."""
    kernels = compiled(data, axes)
    values = None
    if kernels is not None:
        values = kernels.extreme(data, axes, keepdim, ufunc is np.maximum)
    if values is not None:
        return values
    data = working_array(data)
    return ufunc.reduce(data, numpy_axis(axes, data.ndim), None, None, keepdim)


def _place_of(ufunc: Any, data: np.ndarray, axis: int | None, keepdim: bool) -> Any:
    """The place of the largest or smallest element, of each row along an axis if one is given."""
    find: Any = data.argmax if ufunc is np.maximum else data.argmin
    return find(axis, keepdims=keepdim)


def _everything(ufunc: Any, data: np.ndarray, name: str) -> Any:
    small = 0 < data.size < choice.LIMITS["reduction"] and not choice.Learning.thread
    if small and data.dtype.kind in "biuf" and data.flags.c_contiguous:
        place = data.argmax() if ufunc is np.maximum else data.argmin()
        return data.reshape(-1)[place]  # in a third of the time of `reduce`
    axes = _checked_axes(data, None, name)
    refuse(data, "bool int float", f"{name}_all")
    return finished(_reduced(ufunc, data, axes, False), data.dtype)


@reduction(
    "max(Tensor self) -> Tensor",
    node="MaxBackward1",
    order=0,
    inline="alike",
    backward={"self": evenly_backward},
)
def max(data: np.ndarray) -> np.ndarray:
    """The largest element.

    >>> import flambeau as torch
    >>> torch.max(torch.tensor([3, 1]))
    tensor(3)
    >>> torch.max(torch.tensor([[1, 5], [7, 2]]), 1).indices
    tensor([1, 0])
    """
    return _everything(np.maximum, data, "max")


@reduction(
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    order=2,
    inline="alike",
    nondifferentiable=("indices",),
    backward={"self": _picked},
)
def max_dim(data: np.ndarray, dim: int, keepdim: bool) -> Any:
    """The largest elements along a dim, and their indices."""
    reals_only(data, "max")
    dim = wrap_dim(dim, data.ndim)
    _checked_axes(data, dim, "max")
    return _select(np.maximum, data, dim, keepdim)


@composite("max.other(Tensor self, Tensor other) -> Tensor", bare=True, order=1)
def max_other(input: Any, other: Any, *, out: Any = None) -> Any:
    """The larger of two elements: `maximum`."""
    return ops.maximum(input, other) if out is None else ops.maximum(input, other, out=out)


@reduction(
    "min(Tensor self) -> Tensor",
    node="MinBackward1",
    order=0,
    inline="alike",
    backward={"self": evenly_backward},
)
def min(data: np.ndarray) -> np.ndarray:
    """The smallest element.

    >>> import flambeau as torch
    >>> torch.min(torch.tensor([3, 1]))
    tensor(1)
    """
    return _everything(np.minimum, data, "min")


@reduction(
    "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    order=2,
    inline="alike",
    nondifferentiable=("indices",),
    backward={"self": _picked},
)
def min_dim(data: np.ndarray, dim: int, keepdim: bool) -> Any:
    """The smallest elements along a dim, and their indices."""
    reals_only(data, "min")
    dim = wrap_dim(dim, data.ndim)
    _checked_axes(data, dim, "min")
    return _select(np.minimum, data, dim, keepdim)


@composite("min.other(Tensor self, Tensor other) -> Tensor", bare=True, order=1)
def min_other(input: Any, other: Any, *, out: Any = None) -> Any:
    """The smaller of two elements: `minimum`."""
    return ops.minimum(input, other) if out is None else ops.minimum(input, other, out=out)


# ---- amax, amin, aminmax


def _extreme(ufunc: Any, data: np.ndarray, dim: Any, keepdim: bool, name: str) -> np.ndarray:
    axes = _checked_axes(data, dim, name)
    refuse(data, "bool int float", f"{name[1:]}_values_cpu")
    return finished(_reduced(ufunc, data, axes, keepdim), data.dtype)


@reduction(
    "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    inline="alike",
    out_type=MATCH,
    backward={"self": shared_backward},
)
def amax(data: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
    """The largest elements over dims; gradients are shared among equal ones.

    >>> import flambeau as torch
    >>> torch.amax(torch.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([5, 7])
    """
    return _extreme(np.maximum, data, dim, keepdim, "amax")


@reduction(
    "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    inline="alike",
    out_type=MATCH,
    backward={"self": shared_backward},
)
def amin(data: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
    """The smallest elements over dims; gradients are shared among equal ones.

    >>> import flambeau as torch
    >>> torch.amin(torch.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([1, 2])
    """
    return _extreme(np.minimum, data, dim, keepdim, "amin")


def _aminmax_backward(grads: Any, self: Any, min: Any, max: Any, dim: Any, keepdim: bool) -> Any:
    return (shared_backward(grads[0], self, min, dim, keepdim)
            + shared_backward(grads[1], self, max, dim, keepdim))  # fmt: skip


@reduction(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    backward={"self": _aminmax_backward},
)
def aminmax(data: np.ndarray, dim: int | None, keepdim: bool) -> Any:
    """The smallest and the largest elements, of everything or along a dim.

    >>> import flambeau as torch
    >>> torch.aminmax(torch.tensor([3, 1, 2]))
    torch.return_types.aminmax(
    min=tensor(1),
    max=tensor(3))
    """
    if dim is None and not data.size:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the "
                           "operation has no identity.")  # fmt: skip
    axes = wrap_dims(dim, data.ndim)
    check_not_empty(data, axes, "aminmax")
    refuse(data, "bool int float", "aminmax_cpu")
    smallest = _reduced(np.minimum, data, axes, keepdim)
    largest = _reduced(np.maximum, data, axes, keepdim)
    return finished(smallest, data.dtype), finished(largest, data.dtype)


# ---- indices


def _index_of(ufunc: Any, data: np.ndarray, dim: int | None, keepdim: bool, name: str) -> Any:
    if dim is None and not data.size:
        raise IndexError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        )
    if dim is not None:
        dim = wrap_dim(dim, data.ndim)
        check_not_empty(data, range(data.ndim)[dim : dim + 1], f"{name}()")
    reals_only(data, name)
    if data.dtype.kind == "b":
        raise RuntimeError(f"{name}(): does not support bool input")
    axis = dim if data.ndim else None
    kernels = compiled(data, range(data.ndim)) if data.size else None  # type: ignore[arg-type]
    if kernels is not None:
        found = kernels.place(data, axis, keepdim, ufunc is np.maximum)
        if found is not None:
            return finished(found[1], INT64)
    return finished(_place_of(ufunc, working_array(data), axis, keepdim), INT64)


@reduction("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
           inline="alike", out_type=EXACT)  # fmt: skip
def argmax(data: np.ndarray, dim: int | None, keepdim: bool) -> np.ndarray:
    """The index of the first largest element, along a dim or in the flattened tensor.

    The result is int64. Of shape (*, n, *) it is (*, *), or (*, 1, *) with `keepdim`; without `dim`
    it is a number, which `unravel_index` turns into places. NaN counts as the largest.

    >>> import flambeau as torch
    >>> torch.argmax(torch.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([1, 0])
    """
    return _index_of(np.maximum, data, dim, keepdim, "argmax")  # type: ignore[no-any-return]


@reduction("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
           inline="alike", out_type=EXACT)  # fmt: skip
def argmin(data: np.ndarray, dim: int | None, keepdim: bool) -> np.ndarray:
    """The index of the first smallest element, along a dim or in the flattened tensor.

    The result is int64. Of shape (*, n, *) it is (*, *), or (*, 1, *) with `keepdim`; without `dim`
    it is a number, which `unravel_index` turns into places. NaN counts as the smallest.

    >>> import flambeau as torch
    >>> torch.argmin(torch.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([0, 1])
    """
    return _index_of(np.minimum, data, dim, keepdim, "argmin")  # type: ignore[no-any-return]
