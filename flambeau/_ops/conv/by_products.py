"""Convolutions of bfloat16 as products of matrices, where the processor has AMX.

An image's windows become the columns of a matrix [C * taps, places]; that takes a pass over memory,
and AMX multiplies so fast that it is worth it. Arrays as in `conv`; results are sums in float32,
rounded once.
"""

from __future__ import annotations

from math import prod

import numpy as np

from flambeau._compiler.types import bf16
from flambeau._core.settings import get_num_threads
from flambeau._ops.conv.kernels.columns import windows_as_columns
from flambeau._ops.launching.precision import Array
from flambeau._ops.launching.windows import Ints, window_counts
from flambeau._ops.products import blas
from flambeau._ops.products.tiles import BFLOAT16, tile_for
from flambeau._runtime.launch import kernel

IMAGE = 4
"""Dims of a batch of images."""
FEWEST, FEWEST_OF_ONE = 48, 16
"""Channels from which on products are worth it, for windows and for single places: the fewer there
are, the fewer products does each number of the columns take part in."""
WORK = 1 << 22
"""Multiply-adds from which on columns are worth their memory."""
BYTES = 1 << 24
"""What the columns of some images may take."""
ONES = (1, 1)


def serve(data: Array, weight_shape: Ints, output: Ints, groups: int) -> bool:
    """Whether a convolution of these is a product: of row-major images in bfloat16."""
    if data.dtype != BFLOAT16 or groups != 1 or data.ndim != IMAGE:
        return False
    fewest = FEWEST_OF_ONE if prod(weight_shape[2:]) == 1 else FEWEST
    wide = min(weight_shape[0], weight_shape[1]) >= fewest
    work = len(data) * prod(output) * prod(weight_shape)
    if not wide or work < WORK or not data.flags.c_contiguous:
        return False
    return blas.products() is not None and bool(tile_for(BFLOAT16).cells)


def columns_of(images: Array, kernel_: Ints, output: Ints, stride: Ints, padding: Ints,
               dilation: Ints, side_by_side: bool = False) -> Array:  # fmt: skip
    """[N, C * taps, places], or [C * taps, N * places] `side_by_side`."""
    count, channels, *size = images.shape
    rows, places = channels * prod(kernel_), prod(output)
    if places == prod(size) and rows == channels and not side_by_side:
        return images.reshape(count, channels, places)  # each place is its own window
    shape = (rows, count * places) if side_by_side else (count, rows, places)
    columns = np.empty(shape, images.dtype)
    of_image, of_row = (places, count * places) if side_by_side else (rows * places, places)
    tasks = min(count * channels, 4 * get_num_threads()) if get_num_threads() > 1 else 1
    kernel(windows_as_columns, T=bf16, W=16).parallel(
        tasks, images, columns, count, channels, *size, *output, *kernel_, *stride, *padding,
        *dilation, of_image, of_row)  # fmt: skip
    return columns


def _together(images: int, numbers: int) -> int:
    """How many images' columns are made at a time."""
    return max(1, min(images, BYTES // max(1, 2 * numbers)))


def forward(input: Array, weight: Array, bias: Array | None, output: Ints, stride: Ints,
            padding: Ints, dilation: Ints) -> Array:  # fmt: skip
    """`conv` of what `serve` allows."""
    gemm = blas.products()
    matrix = weight.reshape(1, len(weight), -1)
    finish = gemm.Finish()
    if bias is not None:
        finish = gemm.Finish(np.ascontiguousarray(bias), bias_of_row=True)
    step = _together(len(input), matrix.shape[2] * prod(output))
    parts = []
    for first in range(0, len(input), step):
        images = input[first : first + step]
        columns = columns_of(images, weight.shape[2:], output, stride, padding, dilation)
        parts.append(gemm.gemm(matrix, columns, finish))
    result = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return result.reshape(len(input), len(weight), *output)


def backward_input(grad: Array, weight: Array, shape: Ints, padding: Ints) -> Array | None:
    """The gradient of the input of a convolution in steps of 1, taps side by side: the convolution
    of the gradient with the turned weight. None where that would take a negative padding."""
    around = tuple(n - 1 - p for n, p in zip(weight.shape[2:], padding, strict=True))
    if min(around) < 0:
        return None
    turned = np.ascontiguousarray(weight[:, :, ::-1, ::-1].swapaxes(0, 1))
    output = window_counts(grad.shape[2:], turned.shape[2:], ONES, around, ONES)
    if tuple(output) != tuple(shape[2:]):
        return None
    return forward(grad, turned, None, tuple(output), ONES, around, ONES)


def backward_weight(grad: Array, input: Array, weight_shape: Ints, stride: Ints, padding: Ints,
                    dilation: Ints) -> Array:  # fmt: skip
    """The gradient of the weight: gradients times columns, summed over images and places."""
    gemm = blas.products()
    output, rows = grad.shape[2:], prod(weight_shape[1:])
    step = _together(len(grad), rows * prod(output))
    total = np.zeros((weight_shape[0], rows), np.float32)
    for first in range(0, len(grad), step):
        images, part = input[first : first + step], grad[first : first + step]
        columns = columns_of(images, weight_shape[2:], output, stride, padding, dilation, True)
        left = part.reshape(*part.shape[:2], -1).swapaxes(0, 1).reshape(weight_shape[0], -1)
        total += gemm.gemm(left, columns.T, result=total.dtype)
    return total.astype(grad.dtype).reshape(weight_shape)
