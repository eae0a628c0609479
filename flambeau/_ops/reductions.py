"""Sums and other reductions over dims."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.dims import wrap_dims
from flambeau._ops.namespace import ops
from flambeau._ops.op import composite, reduction

FLOAT32 = np.dtype(np.float32)


def expand_reduced(grad: Any, shape: Any, dim: Any, keepdim: bool) -> Any:
    """A gradient of a reduced tensor, broadcast back to the shape before."""
    if not keepdim and shape:
        for d in sorted(wrap_dims(dim, len(shape))):
            grad = grad.unsqueeze(d)
    return grad.expand(shape)


def accumulation_type(data: np.ndarray, dtype: dt.dtype | None) -> tuple[Any, Any]:
    """(type of the result, type to add up in): integers in int64, half types in float32."""
    if dtype is not None:
        result = dtype.numpy_dtype
    elif data.dtype.kind in "biu":
        result = np.dtype(np.int64)
    else:
        result = data.dtype
    return result, (FLOAT32 if result in dt.NUMPY_HALVES else result)


@reduction("sum.dim_IntList(Tensor self, int[1]? dim=None, bool keepdim=False, *, "
           "ScalarType? dtype=None) -> Tensor", node="SumBackward1", backward={
    "self": lambda grad, self_shape, dim, keepdim: expand_reduced(grad, self_shape, dim, keepdim),
})
def sum(data: np.ndarray, dim: Any, keepdim: bool, dtype: dt.dtype | None) -> np.ndarray:
    """The sum over all dims, or over those given. Integers add up in int64.

    >>> import flambeau as torch
    >>> torch.sum(torch.ones(2, 3), dim=0)
    tensor([2., 2., 2.])
    """
    result, working = accumulation_type(data, dtype)
    axes = wrap_dims(dim, data.ndim)
    total = np.add.reduce(data, axis=axes, dtype=working, keepdims=keepdim)
    return np.asarray(total, result)


@composite("sum_to_size(Tensor self, int[] size) -> Tensor", function=False)
def sum_to_size(input: Any, *size: Any) -> Any:
    """The sum over the dims that broadcasting `size` to this shape would add or repeat."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    have = input._data.shape
    extra = len(have) - len(shape)
    dims = [*range(extra)]
    dims += [extra + d for d, n in enumerate(shape) if n == 1 and have[extra + d] != 1]
    if dims:
        input = ops.sum(input, dims, True)
    return input.reshape(shape) if extra else input
