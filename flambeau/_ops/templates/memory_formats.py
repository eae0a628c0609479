"""Results in the memory format of what they are computed from: channels-last stays so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flambeau._core.layout import channels_last_strides, is_channels_last
from flambeau._runtime.cpu import element_strides, empty_strided


def is_images_of_pixels(data: np.ndarray) -> bool:
    """True for `(N, C, *spatial)` in memory as `(N, *spatial, C)`, and not row-major as well."""
    return (
        not data.flags.c_contiguous
        and data.ndim in (4, 5)
        and is_channels_last(data.shape, element_strides(data))
    )


def empty_in_format_of(data: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """New memory for a shape: channels-last if `data` is, else row-major."""
    if is_images_of_pixels(data):
        return empty_strided(shape, channels_last_strides(shape), data.dtype)
    return np.empty(tuple(shape), data.dtype)


def in_format_of(values: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    """The values themselves, or copied to channels-last memory if one of the sources is so."""
    if values.ndim not in (4, 5) or not any(map(is_images_of_pixels, sources)):
        return values
    result = empty_strided(values.shape, channels_last_strides(values.shape), values.dtype)
    result[...] = values
    return result
