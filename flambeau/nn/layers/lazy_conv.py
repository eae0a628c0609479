"""Convolutions that take `in_channels` from their first input."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn.layers import conv
from flambeau.nn.layers.lazy import LazyModuleMixin
from flambeau.nn.parameter import UninitializedParameter


class _LazyConvXdMixin(LazyModuleMixin):
    """What lazy convolutions share."""

    def _set_up(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias again, once their shapes are known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take the shapes from an input."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        channels = (self.out_channels, self.in_channels // self.groups)
        if self.transposed:
            channels = (self.in_channels, self.out_channels // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        dims = self._dims
        if input.ndim not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[-dims - 1]


class _LazyConv(_LazyConvXdMixin):
    """Lazy convolutions, with their public arguments."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        # 0 channels are divisible by any number of groups.
        place = (kernel_size, stride, padding, dilation, groups)
        super().__init__(0, 0, *place, False, padding_mode, device, dtype)
        self._set_up(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    """Lazy transposed convolutions, with their public arguments."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        place = (kernel_size, stride, padding, output_padding, groups)
        super().__init__(0, 0, *place, False, dilation, padding_mode, device, dtype)
        self._set_up(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, conv.Conv1d):  # type: ignore[misc]
    """A Conv1d that takes `in_channels` from its first input.

    Shapes (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> conv = torch.nn.LazyConv1d(8, 3)
    >>> conv(torch.ones(4, 3, 16)).shape, conv.in_channels
    (torch.Size([4, 8, 14]), 3)
    """

    cls_to_become = conv.Conv1d


class LazyConv2d(_LazyConv, conv.Conv2d):  # type: ignore[misc]
    """A Conv2d that takes `in_channels` from its first input.

    Shapes (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> conv = torch.nn.LazyConv2d(8, 3)
    >>> conv(torch.ones(4, 3, 16, 16)).shape, conv.in_channels
    (torch.Size([4, 8, 14, 14]), 3)
    """

    cls_to_become = conv.Conv2d


class LazyConv3d(_LazyConv, conv.Conv3d):  # type: ignore[misc]
    """A Conv3d that takes `in_channels` from its first input.

    Shapes (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> conv = torch.nn.LazyConv3d(8, 3)
    >>> conv(torch.ones(1, 3, 8, 8, 8)).shape, conv.in_channels
    (torch.Size([1, 8, 6, 6, 6]), 3)
    """

    cls_to_become = conv.Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, conv.ConvTranspose1d):  # type: ignore[misc]
    """A ConvTranspose1d that takes `in_channels` from its first input.

    Shapes (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> conv = torch.nn.LazyConvTranspose1d(8, 3)
    >>> conv(torch.ones(4, 3, 16)).shape, conv.in_channels
    (torch.Size([4, 8, 18]), 3)
    """

    cls_to_become = conv.ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, conv.ConvTranspose2d):  # type: ignore[misc]
    """A ConvTranspose2d that takes `in_channels` from its first input.

    Shapes (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> conv = torch.nn.LazyConvTranspose2d(8, 3)
    >>> conv(torch.ones(4, 3, 16, 16)).shape, conv.in_channels
    (torch.Size([4, 8, 18, 18]), 3)
    """

    cls_to_become = conv.ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, conv.ConvTranspose3d):  # type: ignore[misc]
    """A ConvTranspose3d that takes `in_channels` from its first input.

    Shapes (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> conv = torch.nn.LazyConvTranspose3d(8, 3)
    >>> conv(torch.ones(1, 3, 8, 8, 8)).shape, conv.in_channels
    (torch.Size([1, 8, 10, 10, 10]), 3)
    """

    cls_to_become = conv.ConvTranspose3d
