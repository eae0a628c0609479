"""`torch.nn.grad`: the gradients of convolutions as functions of their own.

`convNd_input(input_size, weight, grad_output)` is the gradient of the input of a convolution,
`convNd_weight(input, weight_size, grad_output)` that of its weight; `grad_output` is the gradient
of its output. Both can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.layers.sizes import _ntuple


def _input_gradient(spatial: int) -> Callable[..., Tensor]:
    per_dim = _ntuple(spatial)

    def gradient(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        places = (per_dim(stride), per_dim(padding), per_dim(dilation))
        return ops._conv_input_grad(  # type: ignore[no-any-return]
            grad_output, weight, tuple(input_size), *places, False, per_dim(0), groups
        )

    return _named(gradient, f"conv{spatial}d_input", "input", spatial)


def _weight_gradient(spatial: int) -> Callable[..., Tensor]:
    per_dim = _ntuple(spatial)

    def gradient(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        places = (per_dim(stride), per_dim(padding), per_dim(dilation))
        return ops._conv_weight_grad(  # type: ignore[no-any-return]
            grad_output, input, tuple(weight_size), *places, False, per_dim(0), groups
        )

    return _named(gradient, f"conv{spatial}d_weight", "weight", spatial)


def _named(function: Any, name: str, what: str, spatial: int) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The gradient of `conv{spatial}d` with respect to its {what}."
    return function


conv1d_input = _input_gradient(1)
conv1d_weight = _weight_gradient(1)
conv2d_input = _input_gradient(2)
conv2d_weight = _weight_gradient(2)
conv3d_input = _input_gradient(3)
conv3d_weight = _weight_gradient(3)
