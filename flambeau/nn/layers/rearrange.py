"""Layers that only move elements: shuffles, folds, flattening."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.layers.shown import shown
from flambeau.nn.module import Module


class PixelShuffle(Module):
    """(*, C·r², H, W) to (*, C, H·r, W·r) for the upscale factor r.

    >>> import flambeau as torch
    >>> torch.nn.PixelShuffle(2)(torch.ones(1, 8, 3, 3)).shape
    torch.Size([1, 2, 6, 6])
    """

    __constants__ = ["upscale_factor"]
    upscale_factor: int

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    extra_repr = shown("upscale_factor")


class PixelUnshuffle(Module):
    """(*, C, H·r, W·r) to (*, C·r², H, W) for the downscale factor r.

    >>> import flambeau as torch
    >>> torch.nn.PixelUnshuffle(2)(torch.ones(1, 2, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    __constants__ = ["downscale_factor"]
    downscale_factor: int

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    extra_repr = shown("downscale_factor")


class ChannelShuffle(Module):
    """Channels in groups, interleaved: (N, C, *) to (N, C, *).

    >>> import flambeau as torch
    >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    __constants__ = ["groups"]
    groups: int

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    extra_repr = shown("groups")


class Fold(Module):
    """Add up sliding blocks: (N, C·k, L) to (N, C, *output_size).

    >>> import flambeau as torch
    >>> torch.nn.Fold((4, 4), 2, stride=2)(torch.ones(1, 12, 4)).shape
    torch.Size([1, 3, 4, 4])
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]
    output_size: Any

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    extra_repr = shown("output_size", "kernel_size", "dilation", "padding", "stride")


class Unfold(Module):
    """Take out sliding blocks: (N, C, *) to (N, C·k, L).

    k is the number of elements of a block, L how many blocks there are; a column holds one block,
    channel after channel.

    >>> import flambeau as torch
    >>> torch.nn.Unfold(2, stride=2)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 12, 4])
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]
    kernel_size: Any

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    extra_repr = shown("kernel_size", "dilation", "padding", "stride")


class Flatten(Module):
    """The dims from `start_dim` to `end_dim` as one.

    >>> import flambeau as torch
    >>> torch.nn.Flatten()(torch.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    __constants__ = ["start_dim", "end_dim"]
    start_dim: int
    end_dim: int

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    extra_repr = shown("start_dim", "end_dim")


class Unflatten(Module):
    """The dim `dim` as several of the sizes `unflattened_size`.

    >>> import flambeau as torch
    >>> torch.nn.Unflatten(1, (2, 3))(torch.ones(4, 6)).shape
    torch.Size([4, 2, 3])
    """

    __constants__ = ["dim", "unflattened_size"]
    dim: int

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(dim, str):
            raise NotImplementedError("nn.Unflatten of named dims is not implemented in flambeau")
        _require_ints(unflattened_size)
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    extra_repr = shown("dim", "unflattened_size")


def _require_ints(sizes: Any) -> None:
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(
            f"unflattened_size must be a tuple of ints, but found type {type(sizes).__name__}"
        )
    for place, size in enumerate(sizes):
        if not isinstance(size, int):
            raise TypeError(
                "unflattened_size must be tuple of ints, but found element of type "
                f"{type(size).__name__} at pos {place}"
            )
