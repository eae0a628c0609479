"""Padding of the trailing dims. Sizes come last dim first, both sides: (left, right, top, ...)."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.layers.shown import shown
from flambeau.nn.layers.sizes import _ntuple
from flambeau.nn.module import Module


class _PadNd(Module):
    """What all padding layers share; `_dims` is the number of padded dims."""

    __constants__ = ["padding"]
    _dims: int
    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    extra_repr = shown(plain=("padding",))


class _CircularPadNd(_PadNd):
    """Padding with the values from the other end."""

    def _check_input_dim(self, input: Tensor) -> None:
        dims = len(self.padding) // 2
        if input.ndim not in (dims + 1, dims + 2):
            raise ValueError(f"expected {dims + 1}D or {dims + 2}D input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Circular padding of (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> torch.nn.CircularPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Circular padding of (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.CircularPad2d((1, 0, 0, 0))(torch.tensor([[[1., 2., 3.]]]))
    tensor([[[3., 1., 2., 3.]]])
    """

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Circular padding of (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> torch.nn.CircularPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 4, 4, 4])
    """

    _dims = 3


class _ConstantPadNd(_PadNd):
    """Padding with one value."""

    __constants__ = ["padding", "value"]
    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    extra_repr = shown("padding", "value")


class ConstantPad1d(_ConstantPadNd):
    """Padding of the last dim with one value.

    >>> import flambeau as torch
    >>> torch.nn.ConstantPad1d(1, 9.0)(torch.tensor([[1.0, 2.0]]))
    tensor([[9., 1., 2., 9.]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Padding of the last two dims with one value.

    >>> import flambeau as torch
    >>> torch.nn.ConstantPad2d((1, 1, 0, 0), 7.)(torch.tensor([[[1., 2.]]]))
    tensor([[[7., 1., 2., 7.]]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Padding of the last three dims with one value.

    >>> import flambeau as torch
    >>> torch.nn.ConstantPad3d(1, 7.)(torch.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Padding of the last dim with zeros.

    >>> import flambeau as torch
    >>> torch.nn.ZeroPad1d((1, 2))(torch.ones(1, 2))
    tensor([[0., 1., 1., 0., 0.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = shown(plain=("padding",))


class ZeroPad2d(ConstantPad2d):
    """Padding of the last two dims with zeros.

    >>> import flambeau as torch
    >>> torch.nn.ZeroPad2d(1)(torch.ones(1, 2, 2)).shape
    torch.Size([1, 4, 4])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = shown(plain=("padding",))


class ZeroPad3d(ConstantPad3d):
    """Padding of the last three dims with zeros.

    >>> import flambeau as torch
    >>> torch.nn.ZeroPad3d(1)(torch.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = shown(plain=("padding",))


class _ReflectionPadNd(_PadNd):
    """Padding with the values mirrored at the edge, without the edge itself."""

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class ReflectionPad1d(_ReflectionPadNd):
    """Mirror padding of (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> torch.nn.ReflectionPad1d(2)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Mirror padding of (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.ReflectionPad2d((2, 0, 0, 0))(torch.tensor([[[1., 2., 3.]]]))
    tensor([[[3., 2., 1., 2., 3.]]])
    """

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Mirror padding of (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> torch.nn.ReflectionPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 4, 4, 4])
    """

    _dims = 3


class _ReplicationPadNd(_PadNd):
    """Padding with the value at the edge."""

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class ReplicationPad1d(_ReplicationPadNd):
    """Edge padding of (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> torch.nn.ReplicationPad1d(2)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 1., 2., 3., 3., 3.]])
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Edge padding of (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.ReplicationPad2d((2, 0, 0, 0))(torch.tensor([[[1., 2., 3.]]]))
    tensor([[[1., 1., 1., 2., 3.]]])
    """

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Edge padding of (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> torch.nn.ReplicationPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 4, 4, 4])
    """

    _dims = 3
