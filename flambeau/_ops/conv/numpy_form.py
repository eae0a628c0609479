"""Convolutions on `(N, C, *spatial)` arrays with one to three spatial dims, and their gradients.

`conv(input, weight)[n, o, y] = sum over c, k of input[n, c, y * stride + k * dilation - padding]
* weight[o, c, k]`. The sum is one matrix product over columns of gathered windows; the columns are
built for a few output rows at a time, so that they stay in the cache. The gradient formulas are
the adjoints of this linear map (for complex values they conjugate the other factor). Half types
are computed in float32. Shapes are checked in `conv_check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from flambeau._ops.conv import images_last
from flambeau._ops.conv import numpy_depthwise as depthwise
from flambeau._ops.launching.precision import Array, narrow, widen
from flambeau._ops.launching.windows import (
    Ints,
    extent,
    pad_spatial,
    padded_for_mirror,
    tap_slices,
    window_counts,
    windows,
)
from flambeau._ops.products.blas import matmul
from flambeau._runtime.cpu import quietly

# benchmarks/conv_kernels.py: 4 and 8 MiB are the fastest, 64 MiB takes half as long again.
COLUMN_BYTES = 4 << 20
# With fewer channels per group the product for stride 1 gets too thin; scattering is faster.
THIN_GROUP = 12


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """The numbers of one convolution: `kernel` and `output` sizes, and how windows move. There is
    one object for the same numbers: see `_geometry`."""

    kernel: tuple[int, ...]
    output: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @property
    def is_pointwise(self) -> bool:
        """True for 1x1 kernels, whose columns are the input itself."""
        return prod(self.kernel) == 1


_geometry = lru_cache(512)(Geometry)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some images and some rows of the first spatial dim of the output."""

    images: slice
    rows: slice

    def view(self, output: Array, groups: int) -> Array:
        """The chunk of `(N, O, *output)` as `(n, groups, O / groups, positions)`."""
        part = output[self.images, :, self.rows]
        return part.reshape(len(part), groups, output.shape[1] // groups, -1)


@quietly
def conv(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int = 1,
) -> Array:
    """Cross-correlate input `(N, C, *spatial)` with weight `(O, C / groups, *kernel)`.

    Returns `(N, O, *output)` in input's dtype; `bias` is `(O,)` or None.
    """
    wide, weight = widen(input), widen(weight)
    stride, padding, dilation = tuple(stride), tuple(padding), tuple(dilation)
    output = window_counts(input.shape[2:], weight.shape[2:], stride, padding, dilation)
    if images_last.applies(output) and not depthwise.applies(weight.shape, groups):
        shift = None if bias is None else widen(bias)
        result = images_last.forward(wide, weight, shift, output, stride, padding, dilation, groups)
        return narrow(result, input.dtype)
    padded = pad_spatial(wide, padding, padding)
    result = _conv_padded(padded, weight, stride, dilation, groups)
    return add_bias(result, bias, input.dtype)


@quietly
def conv_backward_input(
    grad: Array,
    weight: Array,
    input_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int = 1,
) -> Array:
    """The gradient `(N, C, *spatial)` of `conv` with respect to its input."""
    result = _adjoint(
        widen(grad), widen(weight).conj(), input_shape, stride, padding, dilation, groups
    )
    return narrow(result, grad.dtype)


@quietly
def conv_backward_weight(
    grad: Array,
    input: Array,
    weight_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int = 1,
) -> Array:
    """The gradient `(O, C / groups, *kernel)` of `conv` with respect to its weight."""
    wide = widen(grad)
    if grad.size == 0 or input.size == 0:
        return np.zeros(weight_shape, grad.dtype)
    if images_last.applies(grad.shape[2:]) and not depthwise.applies(weight_shape, groups):
        result = images_last.backward_weight(
            wide, widen(input), weight_shape, stride, padding, dilation, groups
        )
        return narrow(result, grad.dtype)
    padded = pad_spatial(widen(input), padding, padding)
    geometry = _geometry(
        tuple(weight_shape[2:]), grad.shape[2:], tuple(stride), tuple(dilation), groups
    )
    if depthwise.applies(weight_shape, groups):
        result = depthwise.backward_weight(wide, padded, weight_shape, stride, dilation)
        return narrow(result, grad.dtype)
    rows = weight_shape[0] // groups
    total = np.zeros((groups, rows, prod(weight_shape[1:])), wide.dtype)
    for chunk, columns in _columns(padded, geometry):
        # One image after the other: a batched product would hold one weight per image.
        for part, column in zip(chunk.view(wide, groups), columns, strict=True):
            total += matmul(part, column.conj().swapaxes(1, 2))
    return narrow(total.reshape(weight_shape), grad.dtype)


@quietly
def conv_backward_bias(grad: Array) -> Array:
    """The gradient `(O,)` of a convolution's bias: the sum over images and positions."""
    dims = (0, *range(2, grad.ndim))
    return narrow(widen(grad).sum(dims), grad.dtype)


@quietly
def conv_transpose(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int = 1,
) -> Array:
    """The transposed map of `conv`: input `(N, C, *spatial)`, weight `(C, O / groups, *kernel)`.

    Returns `(N, O, *output)`, each size (size - 1) * stride - 2p + extent + output_padding.
    """
    sizes = zip(
        input.shape[2:],
        stride,
        padding,
        weight.shape[2:],
        dilation,
        output_padding,
        strict=True,
    )
    spatial = [
        (size - 1) * step - 2 * pad + extent(taps, gap) + extra
        for size, step, pad, taps, gap, extra in sizes
    ]
    shape = (input.shape[0], weight.shape[1] * groups, *spatial)
    result = _adjoint(widen(input), widen(weight), shape, stride, padding, dilation, groups)
    return add_bias(result, bias, input.dtype)


@quietly
def conv_transpose_backward_input(
    grad: Array,
    weight: Array,
    input_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int = 1,
) -> Array:
    """The gradient of `conv_transpose` with respect to its input: a plain convolution."""
    full = conv(grad, widen(weight).conj(), None, stride, padding, dilation, groups)
    # With output padding the windows may reach further than the input did.
    inner = tuple(slice(size) for size in input_shape[2:])
    return np.ascontiguousarray(full[(slice(None), slice(None), *inner)])


@quietly
def conv_transpose_backward_weight(
    grad: Array,
    input: Array,
    weight_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int = 1,
) -> Array:
    """The gradient `(C, O / groups, *kernel)` of `conv_transpose` with respect to its weight."""
    result = conv_backward_weight(input, grad, weight_shape, stride, padding, dilation, groups)
    return narrow(widen(result).conj(), grad.dtype)


def add_bias(result: Array, bias: Array | None, dtype: np.dtype) -> Array:
    """Add a bias `(O,)` to a wide result, and round that to `dtype`."""
    if bias is not None and result.size:
        result += widen(bias).reshape(-1, *(1,) * (result.ndim - 2))
    return narrow(result, dtype)


def _conv_padded(padded: Array, weight: Array, stride: Ints, dilation: Ints, groups: int) -> Array:
    kernel = weight.shape[2:]
    stride, dilation = tuple(stride), tuple(dilation)
    output = window_counts(padded.shape[2:], kernel, stride, (0,) * len(kernel), dilation)
    if depthwise.applies(weight.shape, groups):
        return depthwise.forward(padded, weight, output, stride, dilation)
    geometry = _geometry(kernel, output, stride, dilation, groups)
    if padded.size == 0:
        return np.zeros((len(padded), len(weight), *output), padded.dtype)
    result = np.empty((len(padded), len(weight), *output), padded.dtype)
    matrix = weight.reshape(groups, len(weight) // groups, -1)
    for chunk, columns in _columns(padded, geometry):
        matmul(matrix, columns, out=chunk.view(result, groups))
    return result


def _columns(padded: Array, geometry: Geometry) -> Iterator[tuple[Chunk, Array]]:
    """Chunks of the output with their columns `(n, groups, C / groups * taps, positions)`.

    The columns of the next chunk overwrite those of the last one.
    """
    if geometry.is_pointwise:
        yield _whole_images(padded, geometry)
        return
    view = windows(padded, geometry.kernel, geometry.output, geometry.stride, geometry.dilation)
    height = padded.shape[1] // geometry.groups * prod(geometry.kernel)
    chunks = _chunks(len(padded), padded.shape[1], geometry, padded.itemsize, COLUMN_BYTES)
    if len(chunks) == 1:
        columns = np.ascontiguousarray(view)
        yield chunks[0], columns.reshape(len(padded), geometry.groups, height, -1)
        return
    rest = (slice(None),) * (len(geometry.output) - 1)
    buffer: Array = np.empty(0, padded.dtype)
    for chunk in chunks:
        part = view[chunk.images][(..., chunk.rows, *rest)]
        if buffer.size < part.size:
            buffer = np.empty(part.size, padded.dtype)
        columns = buffer[: part.size]
        np.copyto(columns.reshape(part.shape), part)
        yield chunk, columns.reshape(len(part), geometry.groups, height, -1)


def _whole_images(padded: Array, geometry: Geometry) -> tuple[Chunk, Array]:
    """The input of a 1x1 kernel serves as its own columns."""
    if set(geometry.stride) != {1}:
        steps = tuple(slice(None, None, step) for step in geometry.stride)
        padded = padded[(slice(None), slice(None), *steps)]
    channels = padded.shape[1] // geometry.groups
    columns = padded.reshape(len(padded), geometry.groups, channels, -1)
    return Chunk(slice(None), slice(None)), columns


@lru_cache(512)
def _chunks(
    images: int, channels: int, geometry: Geometry, itemsize: int, most: int
) -> list[Chunk]:
    """Split the output so that the columns of each part take about `most` bytes."""
    rows = geometry.output[0]
    image_bytes = channels * prod(geometry.kernel) * prod(geometry.output) * itemsize
    parts = -(-image_bytes // most)
    if parts > 1:
        step = max(1, rows // parts)
        return [
            Chunk(slice(image, image + 1), slice(start, start + step))
            for image in range(images)
            for start in range(0, rows, step)
        ]
    step = max(1, most // max(image_bytes, 1))
    return [Chunk(slice(image, image + step), slice(None)) for image in range(0, images, step)]


def _adjoint(
    grad: Array,
    weight: Array,
    input_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    """The transposed map: `(N, O, *output)` back to `input_shape`, without conjugation."""
    if grad.size == 0:
        return np.zeros(input_shape, grad.dtype)
    if depthwise.applies(weight.shape, groups):
        return depthwise.adjoint(grad, weight, input_shape, stride, padding, dilation)
    if images_last.applies(grad.shape[2:]):
        return images_last.adjoint(grad, weight, input_shape, stride, padding, dilation, groups)
    if set(stride) == {1} and weight.shape[1] >= THIN_GROUP:
        return _adjoint_by_conv(grad, weight, input_shape, padding, dilation, groups)
    return _adjoint_by_scatter(grad, weight, input_shape, stride, padding, dilation, groups)


def _adjoint_by_conv(
    grad: Array, weight: Array, input_shape: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """With stride 1 the transposed map is a convolution with the mirrored kernel."""
    spatial = tuple(range(2, weight.ndim))
    split = np.flip(weight, spatial).reshape(groups, -1, *weight.shape[1:])
    mirrored = split.swapaxes(1, 2).reshape(-1, split.shape[1], *weight.shape[2:])
    padded = padded_for_mirror(grad, weight.shape[2:], input_shape, padding, dilation)
    return _conv_padded(padded, mirrored, (1,) * len(dilation), dilation, groups)


def _adjoint_by_scatter(
    grad: Array,
    weight: Array,
    input_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    """Multiply first, then add the columns to the places that their windows cover."""
    geometry = _geometry(weight.shape[2:], grad.shape[2:], tuple(stride), tuple(dilation), groups)
    spatial = [size + 2 * pad for size, pad in zip(input_shape[2:], padding, strict=True)]
    total = np.zeros((*input_shape[:2], *spatial), grad.dtype)
    matrix = weight.reshape(groups, len(weight) // groups, -1).swapaxes(1, 2)
    for chunk in _chunks(len(grad), input_shape[1], geometry, grad.itemsize, COLUMN_BYTES):
        columns = matmul(matrix, chunk.view(grad, groups))
        part = grad[chunk.images, :, chunk.rows]
        sizes = (len(part), input_shape[1], *geometry.kernel, *part.shape[2:])
        _scatter_columns(total[chunk.images], columns.reshape(sizes), geometry, chunk.rows.start)
    edges = [-pad for pad in padding]
    return np.ascontiguousarray(pad_spatial(total, edges, edges))


def _scatter_columns(
    total: Array, columns: Array, geometry: Geometry, first_row: int | None
) -> None:
    """Add columns `(n, C, *kernel, rows, ...)` to the padded input's gradient `(n, C, ...)`."""
    shifted = total[:, :, (first_row or 0) * geometry.stride[0] :]
    output = columns.shape[2 + len(geometry.kernel) :]
    everything = (slice(None), slice(None))
    for tap, places in tap_slices(geometry.kernel, output, geometry.stride, geometry.dilation):
        shifted[(*everything, *places)] += columns[(*everything, *tap)]
