"""Sums of gradients, and the gradient that a leaf keeps: it belongs to nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import ndarray

from flambeau._core import modes
from flambeau._core.layout import contiguous_format, contiguous_strides, is_dense
from flambeau._runtime import cpu
from flambeau._tensor import device_array, meta
from flambeau._tensor.device_array import DeviceArray
from flambeau._tensor.meta import Meta
from flambeau._tensor.sparse import NotStrided, SparseFirst
from flambeau._tensor.tensor import Tensor, constructors, new, wrap
from flambeau.autograd.graph import tools
from flambeau.autograd.hook_calls import run_accumulated_hooks


def total(known: Any, grad: Any) -> Any:
    """The sum of two gradients; a dense and a sparse one in the order that `add` takes."""
    try:
        return tools.add(known, grad)
    except SparseFirst:
        return tools.add(grad, known)


def of_type(grad: Tensor | None, wanted: Any) -> Tensor | None:
    """A gradient in the type that its leaf was told to keep; None: in any."""
    if grad is None or wanted is None or grad.dtype is wanted:
        return grad
    if not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError(f"gradients cannot be {wanted}: grad_dtype of a tensor that requires "
                           "grad has to be a floating or complex type")  # fmt: skip
    return tools.to_dtype(grad, wanted.numpy_dtype)  # type: ignore[no-any-return]


def accumulate_grad(
    leaf: Tensor,
    grad: Tensor,
    create_graph: bool,
    sharers: int = 1,
    run_hooks: Callable[[Tensor, Any], None] = run_accumulated_hooks,
) -> None:
    """Add a gradient to `leaf.grad`; a fresh dense gradient that nobody else holds is taken over.

    `sharers`: how many others hold the gradient tensor. `run_hooks`: runs those of the leaf.
    """
    current = leaf._grad
    try:
        if current is None:
            leaf._grad = (_copied if create_graph else _own)(leaf, grad, sharers)
        elif create_graph:
            leaf._grad = total(current, grad)
        else:
            current.add_(grad)
    except NotStrided:  # from `_own`
        leaf._grad = constructors["own_sparse"](grad)
    except SparseFirst:  # a sparse gradient so far, and now a dense one
        leaf._grad = tools.add(grad, current)
    if leaf._hooks is not None:
        run_hooks(leaf, grad)


def watched_accumulate(leaf: Tensor, grad: Tensor, create_graph: bool, sharers: int) -> None:
    """The same, while observers look on."""
    with modes.labelled("torch::autograd::AccumulateGrad"):
        accumulate_grad(leaf, grad, create_graph, sharers)


def _copied(leaf: Tensor, grad: Tensor, sharers: int) -> Tensor:
    """A recorded copy with the leaf's memory layout, or row-major if the leaf is not dense."""
    shape, strides = leaf._data.shape, cpu.element_strides(leaf._data)
    if not is_dense(shape, strides):
        return tools.clone(grad, memory_format=contiguous_format)  # type: ignore[no-any-return]
    return tools.new_empty_strided(grad, shape, strides).copy_(grad)  # type: ignore[no-any-return]


def _own(leaf: Tensor, grad: Tensor, sharers: int) -> Tensor:
    """A gradient with the leaf's memory layout that shares memory with nobody.

    A gradient that nobody else holds keeps its strides if they are the leaf's, but for dims of
    size 1; any other is laid out as the leaf, or row-major if the leaf is not dense.
    """
    if grad.__class__ is not Tensor and hasattr(type(grad), "__torch_dispatch__"):
        return grad.detach()  # type: ignore[attr-defined, no-any-return]
    data = grad._data
    is_view = data.base is not None
    if data.__class__ is not ndarray and isinstance(data, DeviceArray):
        is_view = data.is_view
    if sharers <= 0 and not is_view and data.flags.c_contiguous and (
        leaf._data.strides == data.strides
    ):  # fmt: skip
        result = new(Tensor)
        result._data = data
        return result  # type: ignore[no-any-return]
    strides = cpu.element_strides(leaf._data)
    kept = cpu.element_strides(data)
    sizes = data.shape
    if sizes != leaf._data.shape and is_dense(leaf._data.shape, strides):
        return _in_new_shape(leaf, grad)
    wanted = strides if is_dense(sizes, strides) else contiguous_strides(sizes)
    fits = all(n == 1 or w == k for n, w, k in zip(sizes, wanted, kept, strict=True))
    if sharers > 0 or not fits:
        kept = wanted
    if sharers > 0 or not fits or is_view or not data.flags.writeable:
        if data.__class__ is Meta:
            data = meta.empty(sizes, kept, data.dtype)
        elif isinstance(data, DeviceArray):
            fresh = device_array.empty(sizes, kept, data.dtype, data.place.index)
            constructors["assign_across"](wrap(fresh), grad)
            data = fresh
        else:
            fresh = cpu.empty_strided(sizes, kept, data.dtype)
            fresh[...] = data
            data = fresh
    result = new(Tensor)
    result._data = data
    return result  # type: ignore[no-any-return]


def _in_new_shape(leaf: Tensor, grad: Tensor) -> Tensor:
    """A gradient from before the leaf got its shape, which has to broadcast to that."""
    shape, strides = leaf._data.shape, cpu.element_strides(leaf._data)
    return tools.new_empty_strided(grad, shape, strides).copy_(grad)  # type: ignore[no-any-return]
