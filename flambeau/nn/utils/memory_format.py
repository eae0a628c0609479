"""Weights of convolutions in another order of memory, such as channels last."""

from __future__ import annotations

from typing import Any, TypeVar

from flambeau._core.layout import preserve_format
from flambeau.nn.layers.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from flambeau.nn.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Give all Conv2d and ConvTranspose2d in a module weights of this memory format.

    >>> import flambeau as torch
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 2))
    >>> _ = torch.nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)
    >>> model[0].weight.stride()
    (12, 1, 6, 3)
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Give all Conv3d and ConvTranspose3d in a module weights of this memory format.

    >>> import flambeau as torch
    >>> model = torch.nn.Sequential(torch.nn.Conv3d(3, 8, 2))
    >>> _ = torch.nn.utils.convert_conv3d_weight_memory_format(model, torch.channels_last_3d)
    >>> model[0].weight.stride()
    (24, 1, 12, 6, 3)
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


def _convert(module: M, kinds: tuple[type, ...], memory_format: Any) -> M:
    for layer in module.modules():
        if isinstance(layer, kinds):
            if memory_format is preserve_format:
                raise RuntimeError("Unsupported memory formatPreserve")
            weight: Any = layer.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module
