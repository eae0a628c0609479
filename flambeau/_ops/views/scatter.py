"""Writing into what a view shows: `select_scatter`, `slice_scatter`, `diagonal_scatter`, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._ops.copying.copies import assign
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.outputs import EXACT
from flambeau._ops.table.pointwise import wants_grad
from flambeau._ops.views import basic as views
from flambeau._runtime.cpu import element_strides, empty_strided
from flambeau._tensor.tensor import storage_of, wrap


def _embedded(data: np.ndarray, source: np.ndarray, view: Any, *arguments: Any) -> np.ndarray:
    """A copy of `data` in which a view of it shows `source`."""
    result = _copy_as_it_lies(data)
    part = view.body(result, *arguments)
    _check_shapes(part, source)
    assign(part, source)
    return result


def _copy_as_it_lies(data: np.ndarray) -> np.ndarray:
    """A copy with the same strides, gaps included; row-major of what is expanded."""
    if data.flags.c_contiguous or 0 in data.strides:
        return np.array(data, order="C")
    result = empty_strided(data.shape, element_strides(data), data.dtype)
    result[...] = data
    return result


def _check_shapes(part: np.ndarray, source: np.ndarray) -> None:
    if part.shape != source.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = "
            f"{list(source.shape)}, slice size = {list(part.shape)}"
        )


def _without(grad: Any, view_name: str, *arguments: Any) -> Any:
    """The gradient with zeros where the view looks."""
    view = getattr(ops, view_name)(grad, *arguments)
    return getattr(ops, f"{view_name}_scatter")(grad, ops.zeros_like(view), *arguments)


@kernel(
    "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
    batch="dims",
    backward={
        "self": lambda grad, dim, index: _without(grad, "select", dim, index),
        "src": lambda grad, dim, index: grad.select(dim, index),
    },
)
def select_scatter(data: np.ndarray, source: np.ndarray, dim: int, index: int) -> np.ndarray:
    """A copy of `input` with `src` at one position along a dim.

    >>> import flambeau as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    return _embedded(data, source, views.select, dim, index)


@kernel(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, "
    "int step=1) -> Tensor",
    batch="dims",
    out=True,
    out_type=EXACT,
    backward={
        "self": lambda grad, dim, start, end, step: _without(grad, "slice", dim, start, end, step),
        "src": lambda grad, dim, start, end, step: ops.slice(grad, dim, start, end, step),
    },
)
def slice_scatter(data: np.ndarray, source: np.ndarray, dim: int, start: int | None,
                  end: int | None, step: int) -> np.ndarray:  # fmt: skip
    """A copy of `input` with `src` at positions start, start + step, ... along a dim.

    >>> import flambeau as torch
    >>> torch.slice_scatter(torch.zeros(4), torch.ones(2), 0, 1, 3)
    tensor([0., 1., 1., 0.])
    """
    return _embedded(data, source, views.slice_, dim, start, end, step)


@kernel(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    batch="dims",
    backward={
        "self": lambda grad, offset, dim1, dim2: _without(grad, "diagonal", offset, dim1, dim2),
        "src": lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2),
    },
)
def diagonal_scatter(data: np.ndarray, source: np.ndarray, offset: int, dim1: int,
                     dim2: int) -> np.ndarray:  # fmt: skip
    """A copy of `input` with `src` on a diagonal of two dims.

    >>> import flambeau as torch
    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    return _embedded(data, source, views.diagonal, offset, dim1, dim2)


@kernel(
    "select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    method=False,
    function=False,
    node="SelectBackwardBackward0",
    backward={"grad_output": lambda grad, dim, index: grad.select(dim, index)},
)
def select_backward(grad: np.ndarray, input_sizes: Sequence[int], dim: int,
                    index: int) -> np.ndarray:  # fmt: skip
    """The gradient of `select`: zeros with the gradient in its place."""
    result = np.zeros(tuple(input_sizes), grad.dtype)
    views.select.body(result, dim, index)[...] = grad
    return result


@kernel(
    "slice_backward(Tensor grad_output, int[] input_sizes, int dim, int? start, int? end, "
    "int step) -> Tensor",
    method=False,
    function=False,
    node="SliceBackwardBackward0",
    backward={
        "grad_output": lambda grad, dim, start, end, step: ops.slice(grad, dim, start, end, step)
    },
)
def slice_backward(grad: np.ndarray, input_sizes: Sequence[int], dim: int, start: int | None,
                   end: int | None, step: int) -> np.ndarray:  # fmt: skip
    """The gradient of `slice`."""
    result = np.zeros(tuple(input_sizes), grad.dtype)
    views.slice_.body(result, dim, start, end, step)[...] = grad
    return result


@kernel(
    "diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2)"
    " -> Tensor",
    method=False,
    function=False,
    node="DiagonalBackwardBackward0",
    backward={"grad_output": lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2)},
)
def diagonal_backward(grad: np.ndarray, input_sizes: Sequence[int], offset: int, dim1: int,
                      dim2: int) -> np.ndarray:  # fmt: skip
    """The gradient of `diagonal`."""
    result = np.zeros(tuple(input_sizes), grad.dtype)
    views.diagonal.body(result, offset, dim1, dim2)[...] = grad
    return result


@kernel(
    "unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor",
    method=False,
    function=False,
    backward={"grad_in": lambda grad, dim, size, step: grad.unfold(dim, size, step)},
)
def unfold_backward(grad: np.ndarray, input_sizes: Sequence[int], dim: int, size: int,
                    step: int) -> np.ndarray:  # fmt: skip
    """The gradient of `unfold`: each element gets the sum over the windows that hold it."""
    if not input_sizes:
        return np.asarray(grad.sum(0))
    dim = wrap_dim(dim, len(input_sizes))
    half = grad.dtype.kind == "V" or grad.dtype == np.float16
    total = np.zeros(tuple(input_sizes), np.float32 if half else grad.dtype)
    count = grad.shape[dim]
    for offset in range(size):
        end = offset + (count - 1) * step + 1
        total[(slice(None),) * dim + (slice(offset, end, step),)] += grad[..., offset]
    return total.astype(grad.dtype, copy=False)


@composite(
    "_as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int storage_offset)"
    " -> Tensor",
    node="AsStridedScatterBackward0",
    saved_names={"src_shape": None},
    method=False,
    function=False,
    backward={
        "self": lambda grad, src_shape, size, stride, storage_offset: ops._as_strided_scatter(
            grad.contiguous(), ops.new_zeros(grad, src_shape), size, stride, storage_offset
        ),
        "src": lambda grad, size, stride, storage_offset: _behind_start(
            grad.contiguous(), size, stride, storage_offset
        ),
    },
)
def scattered(self: Any, src: Any, size: Any, stride: Any, storage_offset: int) -> Any:
    """Of a contiguous tensor, with an offset from its first element.

    The gradient of `self` is zero where `src` was written; torch 2.13 returns it the other way
    round.
    """
    result = ops.clone(self)
    _write(ops.as_strided(result, size, stride, storage_offset), src)
    return result


@composite("as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, "
           "int? storage_offset=None) -> Tensor")  # fmt: skip
def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any,
                       storage_offset: int | None = None) -> Any:  # fmt: skip
    """A copy of `input`, of its strides and offset, in which an `as_strided` view shows `src`.

    `src` has the shape `size`; the result has that of `input`.

    Raises RuntimeError where a gradient is wanted and `input` is not contiguous.

    >>> import flambeau as torch
    >>> torch.as_strided_scatter(torch.zeros(4), torch.ones(2), (2,), (3,))
    tensor([1., 0., 0., 1.])
    """
    if input._stored is not None:
        input = input.resolve_conj().resolve_neg()
    start = input.storage_offset()
    offset = 0 if storage_offset is None else storage_offset - start
    contiguous = input.is_contiguous()
    if contiguous and (start == 0 or (offset >= 0 and wants_grad((input, src)))):
        return ops._as_strided_scatter(input, src, size, stride, offset)
    if wants_grad((input, src)):
        raise RuntimeError("as_strided_scatter is currently only supported for contiguous inputs")
    return _in_copied_memory(input, src, size, stride, offset + start)


def _in_copied_memory(input: Any, src: Any, size: Any, stride: Any, offset: int) -> Any:
    elements = input.untyped_storage().nbytes() // input.itemsize
    memory = ops.clone(ops.as_strided(input, (elements,), (1,), 0))
    _write(ops.as_strided(memory, size, stride, offset), src)
    view = ops.as_strided(memory, input.shape, input.stride(), input.storage_offset())
    result = wrap(view._data)
    result._storage = storage_of(memory)
    return result


def _behind_start(tensor: Any, size: Any, stride: Any, offset: int) -> Any:
    return ops.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


def _write(part: Any, src: Any) -> None:
    if part._data.shape != src._data.shape:
        _check_shapes(part._data, src._data)
    part.copy_(src)
