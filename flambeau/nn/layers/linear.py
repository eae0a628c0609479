"""Linear maps."""

from __future__ import annotations

import math
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.layers.lazy import LazyModuleMixin
from flambeau.nn.layers.shown import shown
from flambeau.nn.module import Module
from flambeau.nn.parameter import UninitializedParameter, empty_parameter


class Identity(Module):
    """Returns its input; arguments are accepted and ignored.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Identity()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """y = x Wᵀ + b over the last dim: (*, in_features) to (*, out_features).

    `weight` has the shape (out_features, in_features); both start uniform on ±1/sqrt(in_features).

    >>> import flambeau as torch
    >>> layer = torch.nn.Linear(4, 3)
    >>> layer(torch.ones(2, 5, 4)).shape
    torch.Size([2, 5, 3])
    >>> layer.weight.shape
    torch.Size([3, 4])
    """

    __constants__ = ["in_features", "out_features"]
    in_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in_features), dtype, device)
        if bias:
            self.bias = empty_parameter((out_features,), dtype, device)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    extra_repr = shown("in_features", "out_features", "bias")


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of attention."""

    # Not among the names of torch.nn: files know it by its home in torch.
    __module__ = "flambeau.nn.modules.linear"


class Bilinear(Module):
    """y = x₁ᵀ A x₂ + b: (*, in1_features) and (*, in2_features) to (*, out_features).

    >>> import flambeau as torch
    >>> torch.nn.Bilinear(3, 4, 5)(torch.ones(2, 3), torch.ones(2, 4)).shape
    torch.Size([2, 5])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]
    in1_features: int
    in2_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features == 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in1_features, in2_features), dtype, device)
        if bias:
            self.bias = empty_parameter((out_features,), dtype, device)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias again, uniform on ±1/sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    extra_repr = shown("in1_features", "in2_features", "out_features", "bias")


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear that takes `in_features` from its first input.

    From shape (*, in_features) to (*, out_features).

    >>> import flambeau as torch
    >>> layer = torch.nn.LazyLinear(3)
    >>> _ = layer(torch.ones(2, 5))
    >>> layer.weight.shape
    torch.Size([3, 5])
    """

    cls_to_become = Linear
    weight: UninitializedParameter  # type: ignore[assignment]
    bias: UninitializedParameter | None  # type: ignore[assignment]

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False, device, dtype)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias again, once their shapes are known."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the shapes from an input."""
        if not self.has_uninitialized_params():
            if self.in_features == 0:  # the shapes came from a state
                self.in_features = input.shape[-1]
            return
        self.in_features = input.shape[-1]
        self.weight.materialize((self.out_features, self.in_features))
        if self.bias is not None:
            self.bias.materialize((self.out_features,))
        self.reset_parameters()
