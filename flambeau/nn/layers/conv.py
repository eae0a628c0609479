"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.layers.sizes import _ntuple, _reverse_repeat_tuple
from flambeau.nn.module import Module
from flambeau.nn.parameter import empty_parameter

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")
_listed_modes = "{" + ", ".join(map(repr, PADDING_MODES)) + "}"


class _ConvNd(Module):
    """What all convolutions share; `_dims` is the number of spatial dims.

    Weights start uniform on ±1/sqrt(fan_in), biases too.
    """

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    _dims: int
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Tensor
    bias: Tensor | None
    _reversed_padding_repeated_twice: list[int]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check(in_channels, out_channels, groups, padding, stride, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pad_sizes()
        channels = (out_channels, in_channels // groups)
        if transposed:
            channels = (in_channels, out_channels // groups)
        self.weight = empty_parameter((*channels, *kernel_size), dtype, device)
        if bias:
            self.bias = empty_parameter((out_channels,), dtype, device)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _pad_sizes(self) -> Any:
        """The padding as `F.pad` takes it: last dim first, both sides."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        sizes = [0, 0] * len(self.kernel_size)
        if self.padding == "valid":
            return sizes
        pairs = zip(self.dilation, self.kernel_size, strict=True)
        for place, (dilation, kernel) in enumerate(reversed(list(pairs))):
            total = dilation * (kernel - 1)
            sizes[2 * place] = total // 2
            sizes[2 * place + 1] = total - total // 2
        return sizes

    def reset_parameters(self) -> None:
        """Draw weight and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is None:
            return
        fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
        if fan_in != 0:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        shown = [self.in_channels, self.out_channels, f"kernel_size={self.kernel_size}",
                 f"stride={self.stride}"]  # fmt: skip
        for name, plain in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (plain,) * len(value):
                shown.append(f"{name}={value}")
        rest = (("groups", 1, self.groups), ("bias", True, self.bias is not None),
                ("padding_mode", "zeros", self.padding_mode))  # fmt: skip
        shown += [f"{name}={value}" for name, plain, value in rest if value != plain]
        return ", ".join(f"{value}" for value in shown)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


def _check(
    in_channels: int, out_channels: int, groups: int, padding: Any, stride: Any, padding_mode: str
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}"
            )
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {_listed_modes}, but got padding_mode='{padding_mode}'"
        )


class _Conv(_ConvNd):
    """Convolutions, with their public arguments."""

    def __init__(
        self,
        in_channels: int,
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
        spread = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            spread(kernel_size),
            spread(stride),
            padding if isinstance(padding, str) else spread(padding),
            spread(dilation),
            False,
            spread(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _padded(self, input: Tensor) -> Tensor:
        """The input padded otherwise than with zeros."""
        return F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)


class Conv1d(_Conv):
    """Cross-correlation over (N, C_in, L) or (C_in, L); weight (out, in / groups, k).

    in_channels, out_channels: C_in, and how many filters there are.
    kernel_size: how many places a filter spans.
    stride: steps from one place to the next.
    padding: what is added on both sides, or "same", or "valid" (none).
    dilation: the distance of the places that a filter reads.
    groups: into how many parts channels are split, each with filters of its own.
    bias: whether a number is added for each filter.
    padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".

    Gives (N, C_out, L') or (C_out, L'). A size n becomes
    floor((n + 2·padding - dilation·(kernel_size - 1) - 1) / stride + 1).

    >>> import flambeau as torch
    >>> torch.nn.Conv1d(4, 6, 3, padding=1)(torch.ones(2, 4, 10)).shape
    torch.Size([2, 6, 10])
    """

    _dims = 1

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv1d(
                self._padded(input), weight, bias, self.stride, (0,), self.dilation, self.groups
            )
        return F.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """Cross-correlation over (N, C_in, H, W) or (C_in, H, W); weight (out, in / groups, kh, kw).

    in_channels, out_channels: C_in, and how many filters there are.
    kernel_size: how many places a filter spans: an int, or one for each dim.
    stride: steps from one place to the next.
    padding: what is added on both sides, or "same", or "valid" (none).
    dilation: the distance of the places that a filter reads.
    groups: into how many parts channels are split, each with filters of its own.
    bias: whether a number is added for each filter.
    padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".

    Gives (N, C_out, H', W') or (C_out, H', W'). A size n becomes
    floor((n + 2·padding - dilation·(kernel_size - 1) - 1) / stride + 1).

    >>> import flambeau as torch
    >>> torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)(torch.ones(2, 3, 16, 16)).shape
    torch.Size([2, 8, 8, 8])
    """

    _dims = 2

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv2d(
                self._padded(input), weight, bias, self.stride, (0, 0), self.dilation, self.groups
            )
        return F.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_Conv):
    """Cross-correlation over (N, C_in, D, H, W) or (C_in, D, H, W); weight (out, in / groups, kd,
    kh, kw).

    in_channels, out_channels: C_in, and how many filters there are.
    kernel_size: how many places a filter spans: an int, or one for each dim.
    stride: steps from one place to the next.
    padding: what is added on both sides, or "same", or "valid" (none).
    dilation: the distance of the places that a filter reads.
    groups: into how many parts channels are split, each with filters of its own.
    bias: whether a number is added for each filter.
    padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".

    Gives (N, C_out, D', H', W') or (C_out, D', H', W'). A size n becomes
    floor((n + 2·padding - dilation·(kernel_size - 1) - 1) / stride + 1).

    >>> import flambeau as torch
    >>> torch.nn.Conv3d(1, 2, 3)(torch.ones(1, 1, 5, 5, 5)).shape
    torch.Size([1, 2, 3, 3, 3])
    """

    _dims = 3

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv3d(
                self._padded(input),
                weight,
                bias,
                self.stride,
                (0, 0, 0),
                self.dilation,
                self.groups,
            )
        return F.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions share."""

    def __init__(
        self,
        in_channels: int,
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
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        spread = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            spread(kernel_size),
            spread(stride),
            spread(padding),
            spread(dilation),
            True,
            spread(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self, input: Tensor, output_size: list[int] | None, default: list[int], stride: list[int]
    ) -> list[int]:
        """The padding that leads to an output size, which strides leave open."""
        if output_size is None:
            return default
        dims = len(stride)
        leading = input.dim() - dims
        if len(output_size) != dims and len(output_size) != dims + leading:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or "
                f"{leading + dims} elements (got {len(output_size)})"
            )
        wanted = output_size[-dims:]
        sizes = input.shape[leading:]
        smallest = self._smallest(sizes, stride, self.padding, self.dilation, self.kernel_size)  # type: ignore[arg-type]
        largest = [low + step - 1 for low, step in zip(smallest, stride)]  # noqa: B905
        for size, low, high in zip(wanted, smallest, largest):  # noqa: B905 - also a script
            if size < low or high < size:
                raise ValueError(
                    f"requested an output size of {wanted}, but valid sizes range from "
                    f"{smallest} to {largest} (for an input of {input.shape[2:]})"
                )
        return [size - low for size, low in zip(wanted, smallest)]  # noqa: B905

    def _smallest(
        self,
        sizes: list[int],
        stride: list[int],
        padding: list[int],
        dilation: list[int],
        kernel: list[int],
    ) -> list[int]:
        found: list[int] = []
        for dim, size in enumerate(sizes):
            reach = dilation[dim] * (kernel[dim] - 1) + 1
            found.append((size - 1) * stride[dim] - 2 * padding[dim] + reach)
        return found


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of Conv1d as a layer: (N, C_in, L) to (N, C_out, L').

    Each size becomes (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding
    + 1: with the hyper-parameters of a convolution the size that it was given.

    >>> import flambeau as torch
    >>> torch.nn.ConvTranspose1d(4, 2, 2, stride=2)(torch.ones(1, 4, 5)).shape
    torch.Size([1, 2, 10])
    """

    _dims = 1

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        output_padding = self._output_padding(
            input,
            output_size,
            self.output_padding,  # type: ignore[arg-type]
            self.stride,  # type: ignore[arg-type]
        )
        place = (self.stride, self.padding, output_padding, self.groups, self.dilation)
        return F.conv_transpose1d(input, self.weight, self.bias, *place)


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of Conv2d as a layer: (N, C_in, H, W) to (N, C_out, H', W').

    Each size becomes (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding
    + 1: with the hyper-parameters of a convolution the size that it was given.

    >>> import flambeau as torch
    >>> torch.nn.ConvTranspose2d(4, 2, 2, stride=2)(torch.ones(1, 4, 5, 5)).shape
    torch.Size([1, 2, 10, 10])
    """

    _dims = 2

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        output_padding = self._output_padding(
            input,
            output_size,
            self.output_padding,  # type: ignore[arg-type]
            self.stride,  # type: ignore[arg-type]
        )
        place = (self.stride, self.padding, output_padding, self.groups, self.dilation)
        return F.conv_transpose2d(input, self.weight, self.bias, *place)


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of Conv3d as a layer: (N, C_in, D, H, W) to (N, C_out, D', H', W').

    Each size becomes (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding
    + 1: with the hyper-parameters of a convolution the size that it was given.

    >>> import flambeau as torch
    >>> torch.nn.ConvTranspose3d(1, 1, 2)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 3, 3, 3])
    """

    _dims = 3

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        output_padding = self._output_padding(
            input,
            output_size,
            self.output_padding,  # type: ignore[arg-type]
            self.stride,  # type: ignore[arg-type]
        )
        place = (self.stride, self.padding, output_padding, self.groups, self.dilation)
        return F.conv_transpose3d(input, self.weight, self.bias, *place)
