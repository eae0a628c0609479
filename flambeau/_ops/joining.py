"""Joining and reshaping: `cat`, `stack`, `reshape`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._ops.dims import infer_size, wrap_dim
from flambeau._ops.namespace import ops
from flambeau._ops.op import composite, kernel
from flambeau._ops.views import view_strides


@composite("reshape(Tensor self, int[] shape) -> Tensor")
def reshape(input: Any, *shape: Any) -> Any:
    """The same elements in another shape: a view where possible, else a copy."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    data = input._data
    if data.flags.c_contiguous:
        return input.view(shape)
    sizes = infer_size(shape, data.size)
    if view_strides(data, sizes) is not None:
        return input.view(sizes)
    return ops.clone(input, memory_format=_contiguous()).view(sizes)


def _contiguous() -> Any:
    from flambeau._core.layout import contiguous_format

    return contiguous_format


@kernel("stack(Tensor[] tensors, int dim=0) -> Tensor", out=True, method=False, backward={
    "tensors": lambda grad, dim: ops.unbind(grad, dim),
})
def stack(arrays: Sequence[np.ndarray], dim: int) -> np.ndarray:
    """Join tensors of one shape along a new dim."""
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = arrays[0].shape
    for position, array in enumerate(arrays):
        if array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(array.shape)} at entry {position}"
            )
    return np.stack(arrays, wrap_dim(dim, len(first) + 1))
