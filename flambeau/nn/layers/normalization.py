"""Normalization without running statistics."""

from __future__ import annotations

import numbers
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.layers.shown import shown
from flambeau.nn.module import Module
from flambeau.nn.parameter import empty_parameter


class LocalResponseNorm(Module):
    """Divide by (k + alpha · mean of squares over `size` neighbouring channels)^beta.

    >>> import flambeau as torch
    >>> torch.nn.LocalResponseNorm(3)(torch.ones(1, 4, 2, 2)).shape
    torch.Size([1, 4, 2, 2])
    """

    __constants__ = ["size", "alpha", "beta", "k"]
    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    extra_repr = shown("alpha", "beta", "k", plain=("size",))


class CrossMapLRN2d(Module):
    """Local response normalization of (N, C, H, W) whose window is cut at the first channel.

    >>> import flambeau as torch
    >>> torch.nn.CrossMapLRN2d(3)(torch.ones(1, 4, 2, 2)).shape
    torch.Size([1, 4, 2, 2])
    """

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        half = (self.size - 1) // 2
        squares = F.pad(input * input, (0, 0, 0, 0, half, half))
        channels = input.shape[1]
        total = squares.narrow(1, 0, channels)
        for shift in range(1, 2 * half + 1):
            total = total + squares.narrow(1, shift, channels)
        scale = total * (self.alpha / self.size) + self.k
        return input * scale.pow(-self.beta)

    extra_repr = shown("alpha", "beta", "k", plain=("size",))


def _as_shape(sizes: Any) -> tuple[int, ...]:
    return (sizes,) if isinstance(sizes, numbers.Integral) else tuple(sizes)  # type: ignore[return-value]


class _Affine(Module):
    """What ends with weight and bias, where they are wanted."""

    def _register(
        self, shape: tuple[int, ...], affine: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = empty_parameter(shape, dtype, device) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Mean 0 and variance 1 over the trailing dims `normalized_shape`, then weight and bias.

    >>> import flambeau as torch
    >>> torch.nn.LayerNorm(4)(torch.tensor([1.0, 2.0, 3.0, 4.0])).detach()
    tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]
    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._register(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    extra_repr = shown("eps", "elementwise_affine", "bias", plain=("normalized_shape",))


class GroupNorm(_Affine):
    """Mean 0 and variance 1 over each group of channels of (N, C, *) (Wu and He, 2018).

    >>> import flambeau as torch
    >>> torch.nn.GroupNorm(2, 4)(torch.ones(3, 4, 5)).shape
    torch.Size([3, 4, 5])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]
    num_groups: int
    num_channels: int
    eps: float
    affine: bool

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._register((num_channels,), affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    extra_repr = shown("eps", "affine", "bias", plain=("num_groups", "num_channels"))


class RMSNorm(Module):
    """Divide by the root mean square over the trailing dims, then weight (Zhang et al., 2019).

    >>> import flambeau as torch
    >>> torch.nn.RMSNorm(2)(torch.tensor([3.0, 4.0])).detach()
    tensor([0.8485, 1.1314])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]
    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = empty_parameter(self.normalized_shape, dtype, device)
        self.register_parameter("weight", weight if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    extra_repr = shown("eps", "elementwise_affine", plain=("normalized_shape",))
