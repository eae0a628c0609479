"""Transforms by chance. Each draws from torch's random stream what torchvision draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.utils.data.transforms.geometry import (
    MODES,
    WRONG_SIZE,
    crop,
    flip,
    pad,
    pair,
    resize,
    size_of,
)


def _below(count: int) -> int:
    """A random integer from 0 to count - 1."""
    return int(ops.randint(0, count, (1,)).item())


def _between(low: float, high: float) -> float:
    return float(ops.empty(1).uniform_(low, high).item())


class RandomHorizontalFlip:
    """Left and right exchanged, with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Any) -> Any:
        return flip(image, True) if ops.rand(1).item() < self.p else image

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomVerticalFlip:
    """Top and bottom exchanged, with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Any) -> Any:
        return flip(image, False) if ops.rand(1).item() < self.p else image

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomCrop:
    """A part of (height, width), or a square, from anywhere.

    padding: a margin first: one width, (left and right, top and bottom) or (left, top, right,
        bottom); padding_mode: "constant" (`fill`), "edge", "reflect" or "symmetric".
    pad_if_needed: whether images that are too small get a margin on both sides.

    Raises:
        ValueError: when called with an image that is too small.
    """

    def __init__(self, size: int | Sequence[int], padding: int | Sequence[int] | None = None,
                 pad_if_needed: bool = False, fill: Any = 0,
                 padding_mode: str = "constant") -> None:  # fmt: skip
        self.size = pair(size, WRONG_SIZE)
        self.padding, self.pad_if_needed = padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    def __call__(self, image: Any) -> Any:
        height, width = self.size
        if self.padding is not None:
            image = pad(image, self.padding, self.fill, self.padding_mode)
        tall, wide = size_of(image)
        if self.pad_if_needed and wide < width:
            image = pad(image, (width - wide, 0), self.fill, self.padding_mode)
        if self.pad_if_needed and tall < height:
            image = pad(image, (0, height - tall), self.fill, self.padding_mode)
        tall, wide = size_of(image)
        if tall < height or wide < width:
            raise ValueError(
                f"Required crop size {(height, width)} is larger than input image size "
                f"{(tall, wide)}"
            )
        if (tall, wide) == (height, width):
            return image
        top = _below(tall - height + 1)
        return crop(image, top, _below(wide - width + 1), height, width)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


TRIES = 10


class RandomResizedCrop:
    """A part of random area and aspect ratio, resized to (height, width) or to a square.

    scale: the bounds of its area, as parts of the image's; ratio: those of width / height, drawn
    on a logarithmic scale.
    """

    def __init__(self, size: int | Sequence[int], scale: Sequence[float] = (0.08, 1.0),
                 ratio: Sequence[float] = (3 / 4, 4 / 3), interpolation: str = "bilinear",
                 antialias: bool = True) -> None:  # fmt: skip
        if interpolation not in MODES:
            raise ValueError(f"interpolation should be one of {MODES}, but got {interpolation!r}")
        self.size = pair(size, WRONG_SIZE)
        self.scale, self.ratio = scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    def _part(self, tall: int, wide: int) -> tuple[int, int, int, int]:
        """(top, left, height, width): drawn until it fits; after ten tries the largest in the
        middle whose ratio is allowed."""
        low, high = (math.log(bound) for bound in self.ratio)
        for _ in range(TRIES):
            area = tall * wide * _between(self.scale[0], self.scale[1])
            ratio = float(ops.empty(1).uniform_(low, high).exp().item())
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= wide and 0 < height <= tall:
                top = _below(tall - height + 1)
                return top, _below(wide - width + 1), height, width
        height, width = tall, wide
        if wide / tall < min(self.ratio):
            height = round(wide / min(self.ratio))
        elif wide / tall > max(self.ratio):
            width = round(tall * max(self.ratio))
        return (tall - height) // 2, (wide - width) // 2, height, width

    def __call__(self, image: Any) -> Any:
        part = crop(image, *self._part(*size_of(image)))
        return resize(part, *self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, scale={tuple(self.scale)}, "
            f"ratio={tuple(self.ratio)}, interpolation={self.interpolation})"
        )
