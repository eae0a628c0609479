"""Rows on GPUs that are views, or sums, under another name."""

from __future__ import annotations

from typing import Any

from flambeau._ops.cuda.table import KERNELS, on_gpu


@on_gpu("_unsafe_view")
def unsafe_view(data: Any, size: Any) -> Any:
    """Another shape over memory that nobody else has."""
    return data.reshape(tuple(size))


@on_gpu("_conv_bias_grad")
def conv_bias_grad(grad_output: Any) -> Any:
    """The sum over everything but channels."""
    total = KERNELS.get("sum.dim_IntList")
    return total(grad_output, [0, *range(2, grad_output.ndim)], False, None)
