"""Results in the memory format of what they are computed from: channels-last stays so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flambeau._core.layout import channels_last_strides, contiguous_strides, is_channels_last
from flambeau._runtime.cpu import element_strides, empty_strided, preserved_strides
from flambeau._tensor.device_array import DeviceArray, laid_out
from flambeau._tensor.examples import Example
from flambeau._tensor.meta import Meta, like, zeros_of


def is_images_of_pixels(data: np.ndarray) -> bool:
    """True for `(N, C, *spatial)` in memory as `(N, *spatial, C)`, and not row-major as well."""
    return (
        not data.flags.c_contiguous
        and data.ndim in (4, 5)
        and is_channels_last(data.shape, element_strides(data))
    )


def is_suggested_last(data: np.ndarray) -> bool:
    """Whether new results of `(N, C, *spatial)` should be channels-last, by torch's rule for
    dims of size 1."""
    strides = data.strides
    if data.ndim not in (4, 5) or strides[1] > strides[-1]:
        return False  # what most inputs are, told quickly
    return is_channels_last(data.shape, element_strides(data))


def is_last(data: np.ndarray) -> bool:
    """Whether the channels of `(N, C, *spatial)` lie side by side, whatever the strides of dims of
    size 1 are."""
    contiguous = data.flags.c_contiguous or data.ndim not in (4, 5)
    return not contiguous and np.moveaxis(data, 1, -1).flags.c_contiguous


def is_signal_last(data: np.ndarray) -> bool:
    """The same for `(N, C, L)`, whose one spatial dim counts as the last of two."""
    n, channels, length = data.shape
    first, second, third = element_strides(data)
    return is_channels_last((n, channels, 1, length), (first, second, length * third, third))


def in_format(values: np.ndarray, last: bool) -> np.ndarray:
    """The values themselves, or copied to channels-last or row-major memory if they are not so."""
    if values.__class__ is Example:  # the batch lies as its operator has left it
        return values
    if isinstance(values, DeviceArray):
        strides = channels_last_strides if last and values.ndim > 2 else contiguous_strides
        return laid_out(values, strides(values.shape))
    if last and values.ndim > 2:
        return _laid_out(values, channels_last_strides(values.shape))
    return np.asarray(values, order="C")


def in_format_of(values: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    """The values themselves, or copied to channels-last memory if one of the sources is so, to
    row-major memory if none is."""
    last = values.ndim in (4, 5) and any(map(is_suggested_last, sources))
    if not last and values.__class__ is np.ndarray and values.flags.c_contiguous:
        return values
    if values.__class__ is Meta:
        return like(in_format(zeros_of(values), last))
    if isinstance(values, DeviceArray):
        order = channels_last_strides if last else contiguous_strides
        return laid_out(values, order(values.shape))
    return in_format(values, last)


def in_order_of(values: np.ndarray, source: np.ndarray) -> np.ndarray:
    """The values themselves, or copied to memory as a copy of an array of their shape would lie."""
    strides = preserved_strides(source)
    if strides is None:
        return np.asarray(values, order="C")
    return _laid_out(values, strides)


def empty_in_order_of(source: np.ndarray) -> np.ndarray:
    """New memory that lies as a copy of an array would."""
    strides = preserved_strides(source)
    if strides is None:
        return np.empty(source.shape, source.dtype)
    return empty_strided(source.shape, strides, source.dtype)


def are_in_rows(*arrays: np.ndarray | None) -> bool:
    """Whether the elements of the last dim lie side by side in all arrays."""
    return all(array is None or array.strides[-1] == array.itemsize for array in arrays)


def _laid_out(values: np.ndarray, strides: Sequence[int]) -> np.ndarray:
    """The values themselves, or copied to memory of these strides if they lie otherwise."""
    if element_strides(values) == tuple(strides):
        return values
    result = empty_strided(values.shape, strides, values.dtype)
    result[...] = values
    return result
