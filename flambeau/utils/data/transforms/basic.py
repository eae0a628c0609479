"""Transforms of values: to a tensor, normalised, by a function; and several in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._core.dtype import default_dtype, float32, int16, int32, uint8
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor


class Compose:
    """One transform after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image

    def __repr__(self) -> str:
        lines = "".join(f"\n    {transform}" for transform in self.transforms)
        return f"{type(self).__name__}({lines}\n)"


class Lambda:
    """A function as a transform."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        return self.lambd(image)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


DTYPES = {"I": int32, "I;16": int16, "F": float32}
"""Of images that are no bytes, by Pillow's mode."""


class ToTensor:
    """An image of Pillow's, or an array [H, W] or [H, W, C], as a tensor [C, H, W]; bytes become
    numbers from 0 to 1 of the default dtype, other values stay.

    Raises:
        TypeError: neither an image nor an array.
        ValueError: an array of other than 2 or 3 dims.
    """

    def __call__(self, image: Any) -> Tensor:
        if isinstance(image, np.ndarray):
            if image.ndim not in (2, 3):
                raise ValueError(f"pic should be 2/3 dimensional. Got {image.ndim} dimensions.")
            pixels = ops.as_tensor(np.array(image))
        elif _is_pillow(image):
            array = np.array(image)
            if image.mode == "1":  # where Pillow's true is any byte but 0
                array = np.where(array, np.uint8(255), np.uint8(0))
            pixels = ops.as_tensor(array, dtype=DTYPES.get(image.mode))
        else:
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(image)}")
        if pixels.ndim == 2:
            pixels = pixels.unsqueeze(2)
        found: Tensor = pixels.permute(2, 0, 1).contiguous()
        return found.to(default_dtype()).div(255) if found.dtype is uint8 else found

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _is_pillow(image: Any) -> bool:
    from PIL import Image

    return isinstance(image, Image.Image)


class Normalize:
    """(image - mean) / std, channel by channel, of tensors [..., C, H, W].

    Raises:
        TypeError: not a tensor, or one of integers.
        ValueError: fewer than three dims, or a std of 0.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, image: Any) -> Tensor:
        if not isinstance(image, Tensor):
            raise TypeError(f"img should be Tensor Image. Got {type(image)}")
        if not image.is_floating_point():
            raise TypeError(f"Input tensor should be a float tensor. Got {image.dtype}.")
        if image.ndim < 3:
            raise ValueError(
                "Expected tensor to be a tensor image of size (..., C, H, W). "
                f"Got tensor.size() = {image.size()}"
            )
        mean, std = (ops.as_tensor(v, dtype=image.dtype) for v in (self.mean, self.std))
        if (std == 0).any():
            raise ValueError(
                f"std evaluated to zero after conversion to {image.dtype}, leading to division by "
                "zero."
            )
        if mean.ndim == 1:
            mean = mean.view(-1, 1, 1)
        if std.ndim == 1:
            std = std.view(-1, 1, 1)
        found: Tensor = image if self.inplace else image.clone()
        return found.sub_(mean).div_(std)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"
