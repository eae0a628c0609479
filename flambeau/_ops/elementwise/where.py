"""Elements of one tensor or another, as a condition says."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.layout import contiguous_strides
from flambeau._ops.elementwise.bounds import kept
from flambeau._ops.launching import copies
from flambeau._ops.table import binder
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.number_operands import scalar_tensor
from flambeau._ops.table.op import (
    BY_NAME,
    InAten,
    composite,
    kernel,
)
from flambeau._ops.table.outputs import write_out
from flambeau._ops.table.pointwise import (
    LIMIT,
    broadcast_shape,
    common_dtype,
    number_of,
    result_strides,
)
from flambeau._ops.table.scalars import check_fits, filling
from flambeau._runtime import choice, cpu
from flambeau._tensor.tensor import Tensor, method, wrap


@kernel("_where(Tensor condition, Tensor self, Tensor other) -> Tensor", devices="numbers",
        batch="elements", node="WhereBackward0", inline="alike",
        aten=lambda *values: InAten("where", values),
        method=False, backward={
    "self": lambda grad, condition: kept(grad, condition),
    "other": lambda grad, condition: ops._where(
        condition, wrap(np.zeros((), grad._data.dtype)), grad),
})  # fmt: skip
def where_kernel(condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Elements of one or the other, of one type."""
    if choice.Learning.thread or max(condition.size, x.size, y.size) >= LIMIT:
        shape = broadcast_shape([condition.shape, x.shape, y.shape])
        strides = result_strides([condition, x, y], shape) if len(shape) > 1 else None
        wanted = contiguous_strides(shape) if strides is None else strides
        placed = cpu.empty_strided(shape, wanted, x.dtype)
        if copies.choose(placed, condition, x, y):
            return placed
    plain = condition.flags.c_contiguous and x.flags.c_contiguous and y.flags.c_contiguous
    if plain and condition.shape == x.shape == y.shape:
        return np.where(condition, x, y)
    try:
        data = np.where(condition, x, y)
    except ValueError:
        broadcast_shape([condition.shape, x.shape, y.shape])
        raise
    if data.ndim < 2:  # noqa: PLR2004
        return data
    strides = result_strides([condition, x, y], data.shape)
    if strides is None:
        return data
    placed = cpu.empty_strided(data.shape, strides, data.dtype)
    placed[...] = data
    return placed


def _condition(condition: Any) -> Any:
    if condition._data.dtype.kind == "b":
        return condition
    if condition.dtype is not dt.uint8:
        raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor "
                           f"with dtype {condition.dtype.scalar_name}")  # fmt: skip
    warnings.warn("where received a uint8 condition tensor. This behavior is deprecated and will "
                  "be removed in a future version of PyTorch. Use a boolean condition instead.",
                  UserWarning, stacklevel=3)  # fmt: skip
    return wrap(condition._data.astype(bool))


def _of_type(value: Any, element: dt.dtype) -> Any:
    if not isinstance(value, Tensor):
        return wrap(filling(value, element.numpy_dtype))
    return value if value.dtype is element else value.to(element)  # type: ignore[attr-defined]


def _number_beside(value: Any, other: Any) -> Any:
    """A number that leaves the type of the tensor beside it alone as a 0-dim tensor."""
    if other.__class__ is not Tensor or value.__class__ not in (float, int):
        return value
    numpy_dtype = other._data.dtype
    number = scalar_tensor(value, numpy_dtype)
    if number is not None and not (numpy_dtype.kind in "fV" and numpy_dtype.itemsize < 4):
        check_fits(value, numpy_dtype)
    return value if number is None else number


def _where_operand(value: Any, name: str, position: int) -> Any:
    if isinstance(value, Tensor):
        return value
    number = number_of(value)
    if number is None:
        raise binder.no_tensor("where", name, position, value)
    return number


@composite("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", regular=True,
           fused=True, bare=True,
           method=False,
           elementwise=True)  # fmt: skip
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Elements of `input` where the condition holds, else of `other`; numbers are allowed.

    The three shapes broadcast, and two types meet as in a sum. With the condition alone: the
    indices where it holds, a tensor for each dim.

    >>> import flambeau as torch
    >>> x = torch.tensor([[1.0, -2.0], [-3.0, 4.0]])
    >>> torch.where(x > 0, x, 0.0)
    tensor([[1., 0.],
            [0., 4.]])
    >>> torch.where(x > 0)
    (tensor([0, 1]), tensor([0, 1]))
    """
    if input is None and other is None:
        return ops.nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor):
        raise binder.no_fit(BY_NAME["where"][0], 0, (condition, input, other), several=True)
    condition = _condition(condition)
    input, other = _number_beside(input, other), _number_beside(other, input)
    if input.__class__ is other.__class__ is Tensor and input._data.dtype == other._data.dtype:
        result = ops._where(condition, input, other)
        return result if out is None else write_out(where, out, result, (condition, input, other))
    input, other = _where_operand(input, "input", 2), _where_operand(other, "other", 3)
    element = common_dtype([input, other])
    result = ops._where(condition, _of_type(input, element), _of_type(other, element))
    return result if out is None else write_out(where, out, result, (condition, input, other))


@method
def where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """Elements of this tensor where the condition holds, else of `other`, a tensor or a number.

    The three shapes broadcast.

    >>> import flambeau as torch
    >>> x = torch.tensor([-1.0, 2.0])
    >>> x.where(x > 0, 0.0)
    tensor([0., 2.])
    """
    return where.body(condition, self, other)


where_method.__name__ = "where"
del Tensor.where_method  # type: ignore[attr-defined]
Tensor.where = where_method  # type: ignore[attr-defined]
