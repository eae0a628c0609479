"""Convolutions of small planes, computed with the images as the innermost dim.

A plane of few positions has short rows, and copying windows row by row is slow. With the images
innermost, `(C, *spatial, N)`, every row is `N` times as long, and one matrix product serves all
images: twice to four times as fast (benchmarks/conv_kernels.py). Arrays are wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from flambeau._ops.launching.precision import Array
from flambeau._ops.launching.windows import Ints, strided_view, tap_slices
from flambeau._ops.products.blas import matmul

# Output positions per image. At 196 building columns image by image is as fast.
SMALL_PLANE = 128
COLUMN_BYTES = 4 << 20
# OpenBLAS computes products of at most this many multiplications in the calling thread. Larger ones
# of a few dozen microseconds gain little from a second thread, and wait for it for milliseconds
# where other processes keep the cores busy: so small products are cut into pieces of this size.
ONE_THREAD = 1 << 18
LEAST_PIECE = 64
# Fewer images at a time would make the rows short again.
LEAST_IMAGES = 8


def applies(output: Ints) -> bool:
    """True when the planes of the convolution's result are small."""
    return 0 < prod(output) <= SMALL_PLANE


def _blocks(images: int, channels: int, kernel: Ints, output: Ints, itemsize: int
            ) -> Iterator[slice]:  # fmt: skip
    image_bytes = channels * prod(kernel) * prod(output) * itemsize
    step = max(LEAST_IMAGES, COLUMN_BYTES // max(1, image_bytes))
    for start in range(0, images, step):
        yield slice(start, start + step)


def _images_last(array: Array, padding: Ints) -> Array:
    """`(n, C, *spatial)` as new memory `(C, *padded, n)` with zeros around the spatial dims."""
    moved = np.moveaxis(array, 0, -1)
    if not any(padding):
        return np.ascontiguousarray(moved)
    spatial = zip(moved.shape[1:-1], padding, strict=True)
    sizes = [size + 2 * pad for size, pad in spatial]
    result = np.zeros((len(moved), *sizes, moved.shape[-1]), array.dtype)
    result[(slice(None), *_inner(moved.shape[1:-1], padding))] = moved
    return result


def _inner(spatial: Ints, padding: Ints) -> tuple[slice, ...]:
    return tuple(slice(pad, pad + size) for size, pad in zip(spatial, padding, strict=True))


def _columns(
    moved: Array, kernel: Ints, output: Ints, stride: Ints, dilation: Ints, groups: int
) -> Array:
    """`(groups, C / groups * taps, positions * n)` from `(C, *padded, n)`."""
    spatial = moved.strides[1:-1]
    taps = [step * gap for step, gap in zip(spatial, dilation, strict=True)]
    moves = [step * jump for step, jump in zip(spatial, stride, strict=True)]
    shape = (len(moved), *kernel, *output, moved.shape[-1])
    strides = (moved.strides[0], *taps, *moves, moved.strides[-1])
    view = strided_view(moved, shape, strides)
    return np.ascontiguousarray(view).reshape(groups, -1, prod(output) * moved.shape[-1])


def _piece(rows: int, height: int, length: int) -> int:
    """How long the pieces of a product along a dim of `length` shall be; 0 for one product."""
    most = ONE_THREAD // max(1, rows * height)
    if most < LEAST_PIECE:
        return 0
    pieces = -(-length // most)
    while pieces <= length // LEAST_PIECE and length % pieces:
        pieces += 1
    return 0 if length % pieces else length // pieces


def _product(matrix: Array, columns: Array) -> Array:
    """`matrix @ columns` for `(groups, rows, height)` and `(groups, height, length)`."""
    length = columns.shape[-1]
    piece = _piece(matrix.shape[1], matrix.shape[2], length)
    if piece in (0, length):
        return matmul(matrix, columns)
    result = np.empty((*matrix.shape[:2], length), columns.dtype)
    parts = columns.reshape(*columns.shape[:2], -1, piece).transpose(2, 0, 1, 3)
    target = result.reshape(*matrix.shape[:2], -1, piece).transpose(2, 0, 1, 3)
    np.matmul(matrix, parts, out=target)
    return result


def _outer_product(left: Array, right: Array) -> Array:
    """`left @ right^T` for `(groups, rows, length)` and `(groups, height, length)`."""
    length = left.shape[-1]
    piece = _piece(left.shape[1], right.shape[1], length)
    if piece in (0, length):
        return matmul(left, right.swapaxes(1, 2))
    parts = left.reshape(*left.shape[:2], -1, piece).transpose(2, 0, 1, 3)
    others = right.reshape(*right.shape[:2], -1, piece).transpose(2, 0, 3, 1)
    return np.matmul(parts, others).sum(0)


def forward(
    input: Array,
    weight: Array,
    bias: Array | None,
    output: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    """`(N, O, *output)` from the input without its padding."""
    images, channels = input.shape[:2]
    kernel = weight.shape[2:]
    matrix = weight.reshape(groups, len(weight) // groups, -1)
    result = np.empty((images, len(weight), *output), input.dtype)
    shift = 0 if bias is None else bias.reshape(-1, *(1,) * len(output))
    for block in _blocks(images, channels, kernel, output, input.itemsize):
        moved = _images_last(input[block], padding)
        product = _product(matrix, _columns(moved, kernel, output, stride, dilation, groups))
        target = result[block]
        planes = product.reshape(len(weight), *output, len(target))
        np.add(np.moveaxis(planes, -1, 0), shift, out=target)
    return result


def adjoint(
    grad: Array,
    weight: Array,
    input_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    """The transposed map of `forward`, without conjugation; returns `input_shape`."""
    channels, spatial = input_shape[1], input_shape[2:]
    kernel, output = weight.shape[2:], grad.shape[2:]
    matrix = weight.reshape(groups, len(weight) // groups, -1).swapaxes(1, 2)
    result = np.empty(tuple(input_shape), grad.dtype)
    sizes = [size + 2 * pad for size, pad in zip(spatial, padding, strict=True)]
    for block in _blocks(len(grad), channels, kernel, output, grad.itemsize):
        moved = _images_last(grad[block], (0,) * len(kernel))
        count = moved.shape[-1]
        product = _product(matrix, moved.reshape(groups, len(weight) // groups, -1))
        columns = product.reshape(channels, *kernel, *output, count)
        total = np.zeros((channels, *sizes, count), grad.dtype)
        for tap, places in tap_slices(kernel, output, stride, dilation):
            total[(slice(None), *places)] += columns[(slice(None), *tap)]
        result[block] = np.moveaxis(total[(slice(None), *_inner(spatial, padding))], -1, 0)
    return result


def backward_weight(
    grad: Array,
    input: Array,
    weight_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    """The gradient of `forward` with respect to its weight; conjugates the input."""
    kernel, output = tuple(weight_shape[2:]), grad.shape[2:]
    rows = weight_shape[0] // groups
    total = np.zeros((groups, rows, prod(weight_shape[1:])), grad.dtype)
    for block in _blocks(len(grad), input.shape[1], kernel, output, grad.itemsize):
        moved = _images_last(input[block], padding)
        columns = _columns(moved, kernel, output, stride, dilation, groups)
        part = _images_last(grad[block], (0,) * len(kernel)).reshape(groups, rows, -1)
        total += _outer_product(part, columns.conj())
    return total.reshape(weight_shape)
