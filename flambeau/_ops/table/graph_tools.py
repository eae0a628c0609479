"""Hands the autograd graph the operators it needs: it may not import them itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.device import CPU
from flambeau._core.dtype import from_numpy_dtype
from flambeau._core.layout import contiguous_strides
from flambeau._ops.table.namespace import ops
from flambeau._runtime.cpu import empty_strided
from flambeau._tensor import device_array
from flambeau._tensor.device_array import DeviceArray
from flambeau._tensor.examples import Example
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.graph import tools


def sees_missing(formula: Any) -> Any:
    """Let a gradient's formula have None, instead of zeros, for results that no gradient came back
    for: it need not look at numbers to know that they were not used."""
    formula.sees_missing = True
    return formula


def _zeros(shape: Any, numpy_dtype: Any, place: Any = CPU) -> Tensor:
    if place.type == "cuda":
        strides = contiguous_strides(shape)
        return wrap(device_array.filled(shape, strides, numpy_dtype, place.index, 0))
    return wrap(np.zeros(shape, numpy_dtype))


def _empty_strided(like: Tensor, shape: Any, strides: Any) -> Any:
    if like._data.__class__ is Example:  # a batch of such
        return ops.new_empty_strided(like, shape, strides)
    if isinstance(like._data, DeviceArray):
        return wrap(device_array.empty(shape, strides, like._data.dtype, like._data.place.index))
    return wrap(empty_strided(shape, strides, like._data.dtype))


def _to_dtype(tensor: Tensor, numpy_dtype: Any) -> Any:
    return ops._to_copy(tensor, dtype=from_numpy_dtype(numpy_dtype))


def _lazily(name: str, public: str = "") -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        function = getattr(ops, public or name)
        setattr(tools, name, function)
        return function(*args, **kwargs)

    return call


def _as_strided_grad(*args: Any) -> Any:
    from flambeau._ops.views.strided import as_strided_grad

    return as_strided_grad(*args)


for _name in ("add", "clone", "as_strided", "sum_to_size", "expand", "ones_like", "real", "stack",
              "view_as_real", "view_as_complex", "conj", "resolve_conj", "neg"):  # fmt: skip
    setattr(tools, _name, _lazily(_name))


def _is_number(tensor: Tensor) -> bool:
    from flambeau._ops.table.number_operands import is_number

    return is_number(tensor)


tools.is_number = _is_number
tools.negated = _lazily("negated", "_neg_view")


tools.as_strided_grad = _as_strided_grad
tools.zeros = _zeros
tools.new_empty_strided = _empty_strided
tools.to_dtype = _to_dtype
