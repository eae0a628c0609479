"""Sizes and places: resize, crop, pad, flip, of Pillow's images and of tensors [..., C, H, W]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._core.dtype import uint8
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor

MODES = ("nearest", "bilinear", "bicubic")
"""Of interpolation, for images and tensors."""
FILLS = ("constant", "edge", "reflect", "symmetric")
SMOOTH = ("bilinear", "bicubic")


def size_of(image: Any) -> tuple[int, int]:
    """(height, width).

    Raises:
        TypeError: it is neither a tensor of at least two dims nor Pillow's image.
    """
    if isinstance(image, Tensor):
        if image.ndim < 2:
            raise TypeError("Tensor is not a torch image.")
        return image.shape[-2], image.shape[-1]
    from PIL import Image

    if not isinstance(image, Image.Image):
        raise TypeError(f"Unexpected type {type(image)}")
    width, height = image.size
    return height, width


def pair(size: Any, text: str) -> tuple[int, int]:
    """(height, width) of a number or of one or two numbers.

    Raises:
        ValueError: more numbers; `text` says so.
    """
    if isinstance(size, int):
        return size, size
    if len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(text)
    return size[0], size[1]


WRONG_SIZE = "Please provide only two dimensions (h, w) for size."


# ---- on both kinds of images


def crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part of an image; what lies outside of it is 0."""
    if not isinstance(image, Tensor):
        return image.crop((left, top, left + width, top + height))
    tall, wide = size_of(image)
    inside = image[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    outside = (
        max(-left, 0),
        max(left + width - wide, 0),
        max(-top, 0),
        max(top + height - tall, 0),
    )
    if not any(outside):
        return inside
    return ops.nn.functional.pad(inside, outside)


def flip(image: Any, horizontally: bool) -> Any:
    """Mirrored: left and right, or top and bottom."""
    if isinstance(image, Tensor):
        return image.flip(-1 if horizontally else -2)
    from PIL import Image

    turn = Image.Transpose
    return image.transpose(turn.FLIP_LEFT_RIGHT if horizontally else turn.FLIP_TOP_BOTTOM)


def resize(image: Any, height: int, width: int, mode: str, antialias: bool = True) -> Any:
    """An image of that size. Pillow's smooth modes are always free of aliasing."""
    if size_of(image) == (height, width):
        return image
    if not isinstance(image, Tensor):
        from PIL import Image

        return image.resize((width, height), Image.Resampling[mode.upper()])
    smooth = mode in SMOOTH
    options = {"align_corners": False, "antialias": antialias} if smooth else {}
    whole = image.reshape(-1, 1, *image.shape[-2:])
    whole = whole if image.is_floating_point() else whole.float()
    whole = ops.nn.functional.interpolate(whole, (height, width), mode=mode, **options)
    if not image.is_floating_point():
        whole = whole.round()
        if image.dtype is uint8:
            whole = whole.clamp(0, 255)  # bicubic goes beyond
        whole = whole.to(image.dtype)
    return whole.reshape(*image.shape[:-2], height, width)


def pad(image: Any, padding: Any, fill: Any = 0, mode: str = "constant") -> Any:
    """An image with a margin: one width, (left and right, top and bottom), or (left, top, right,
    bottom).

    Raises:
        ValueError: another number of widths, or another mode.
    """
    widths = [padding] if isinstance(padding, int) else list(padding)
    if len(widths) not in (1, 2, 4):
        raise ValueError(
            "Padding must be an int or a 1, 2, or 4 element tuple, "
            f"not a {len(widths)} element tuple"
        )
    if mode not in FILLS:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    left, top, right, bottom = widths * (4 // len(widths))
    if isinstance(image, Tensor):
        return _padded(image, left, top, right, bottom, fill, mode)
    if mode == "constant":
        from PIL import ImageOps

        bands = len(image.getbands())
        if bands > 1 and isinstance(fill, (int, float)):  # a number alone would be the first band's
            fill = (int(fill),) * bands
        return ImageOps.expand(image, border=(left, top, right, bottom), fill=fill)
    return _padded_image(image, left, top, right, bottom, mode)


def _padded(image: Tensor, left: int, top: int, right: int, bottom: int, fill: Any,
            mode: str) -> Any:  # fmt: skip
    if mode == "constant":
        return ops.nn.functional.pad(image, (left, right, top, bottom), value=fill)
    for dim, before, after in ((-2, top, bottom), (-1, left, right)):
        image = image.index_select(
            dim, ops.as_tensor(_mirrored(image.shape[dim], before, after, mode))
        )
    return image


def _mirrored(size: int, before: int, after: int, mode: str) -> list[int]:
    """Which rows a margin shows: the outermost, or those mirrored with it or without it."""
    places = range(-before, size + after)
    if mode == "edge":
        return [min(max(place, 0), size - 1) for place in places]
    if mode == "reflect":
        if size == 1:
            return [0] * len(places)
        period = 2 * size - 2
        return [min(place % period, period - place % period) for place in places]
    period = 2 * size
    return [min(place % period, period - 1 - place % period) for place in places]


def _padded_image(image: Any, left: int, top: int, right: int, bottom: int, mode: str) -> Any:
    """By NumPy, which has the same modes; palettes stay."""
    import numpy as np
    from PIL import Image

    pixels = np.asarray(image)
    margins = ((top, bottom), (left, right), (0, 0))[: pixels.ndim]
    found = Image.fromarray(np.pad(pixels, margins, mode=mode))  # type: ignore[call-overload]
    if image.mode == "P":
        found.putpalette(image.getpalette())
    return found


# ---- transforms


class Resize:
    """An image of another size: (height, width), or one number for the shorter side, where
    `max_size` limits the longer one.

    Pillow's images by Pillow, tensors by `interpolate`, both without aliasing unless `antialias`
    (of tensors) is False.

    Raises:
        ValueError: an unknown mode, or `max_size` that is none.
    """

    def __init__(self, size: int | Sequence[int], interpolation: str = "bilinear",
                 max_size: int | None = None, antialias: bool = True) -> None:  # fmt: skip
        if not isinstance(size, int) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        if interpolation not in MODES:
            raise ValueError(f"interpolation should be one of {MODES}, but got {interpolation!r}")
        shorter = size if isinstance(size, int) else size[0]
        if max_size is not None:
            if not isinstance(size, int) and len(size) == 2:
                raise ValueError(
                    "max_size should only be passed if size specifies the length of the smaller "
                    "edge, i.e. size should be an int or a sequence of length 1 in torchscript "
                    "mode."
                )
            if max_size <= shorter:
                raise ValueError(
                    f"max_size = {max_size} must be strictly greater than the requested size for "
                    f"the smaller edge size = {size}"
                )
        self.size, self.interpolation = size, interpolation
        self.max_size, self.antialias = max_size, antialias

    def _wanted(self, height: int, width: int) -> tuple[int, int]:
        if not isinstance(self.size, int) and len(self.size) == 2:
            return self.size[0], self.size[1]
        shorter = self.size if isinstance(self.size, int) else self.size[0]
        longer = int(shorter * max(height, width) / min(height, width))
        if self.max_size is not None and longer > self.max_size:
            shorter, longer = int(self.max_size * shorter / longer), self.max_size
        return (shorter, longer) if height <= width else (longer, shorter)

    def __call__(self, image: Any) -> Any:
        height, width = self._wanted(*size_of(image))
        return resize(image, height, width, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation}, "
            f"max_size={self.max_size}, antialias={self.antialias})"
        )


class CenterCrop:
    """The middle of an image, (height, width) or a square; a smaller image gets a margin of 0."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = pair(size, WRONG_SIZE)

    def __call__(self, image: Any) -> Any:
        height, width = self.size
        tall, wide = size_of(image)
        if wide < width or tall < height:
            more_wide, more_tall = max(width - wide, 0), max(height - tall, 0)
            margins = (more_wide // 2, more_tall // 2, (more_wide + 1) // 2, (more_tall + 1) // 2)
            image = pad(image, margins)
            tall, wide = size_of(image)
        top, left = round((tall - height) / 2.0), round((wide - width) / 2.0)
        return crop(image, top, left, height, width)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"
