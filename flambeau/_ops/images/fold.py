"""`unfold` (im2col) and its transposed map `fold` (col2im) over two spatial dims, batched."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from flambeau._ops.launching.precision import Array, narrow, widen
from flambeau._ops.launching.windows import Ints, pad_spatial, tap_slices, window_count, windows
from flambeau._ops.table.dims import require_sizes

Shape = Sequence[int]


def unfold_output_shape(
    input_shape: Shape, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> tuple[int, ...]:
    """`(N, C * kernel, blocks)` or torch's errors; input `(C, H, W)` gives two dims."""
    _check_lengths(kernel_size=kernel, dilation=dilation, padding=padding, stride=stride)
    _check_numbers(kernel, dilation, padding, stride)
    rank = len(input_shape)
    require_sizes(rank, 1, 2)
    if rank not in (3, 4) or 0 in input_shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input_shape)}"
        )
    counts = block_counts(input_shape[-2:], kernel, dilation, padding, stride)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_pair(input_shape[-2:])}, "
            f"kernel_size={_pair(kernel)}, dilation={_pair(dilation)}, padding={_pair(padding)}, "
            f"calculated shape of the array of sliding blocks as {_pair(counts)}, "
            "but its components must be at least one."
        )
    return (*input_shape[:-3], input_shape[-3] * prod(kernel), prod(counts))


def fold_output_shape(
    input_shape: Shape,
    output_size: Ints,
    kernel: Ints,
    dilation: Ints,
    padding: Ints,
    stride: Ints,
) -> tuple[int, ...]:
    """`(N, C, *output_size)` or torch's errors; input `(C * kernel, blocks)` gives three dims."""
    _check_lengths(
        output_size=output_size,
        kernel_size=kernel,
        dilation=dilation,
        padding=padding,
        stride=stride,
    )
    _check_numbers(kernel, dilation, padding, stride)
    if len(input_shape) not in (2, 3) or 0 in input_shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(input_shape)}"
        )
    channels, blocks = input_shape[-2:]
    if channels % prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={channels} and kernel_size={_pair(kernel)}."
        )
    counts = block_counts(output_size, kernel, dilation, padding, stride)
    if min(counts) < 1 and prod(counts) == blocks:
        raise RuntimeError(
            f"Given output_size={_pair(output_size)}, kernel_size={_pair(kernel)}, "
            f"dilation={_pair(dilation)}, padding={_pair(padding)}, stride={_pair(stride)}, "
            f"calculated shape of the array of sliding blocks as {_pair(counts)}, which is too "
            "small (non-positive)"
        )
    if prod(counts) != blocks:
        raise RuntimeError(
            f"Given output_size={_pair(output_size)}, kernel_size={_pair(kernel)}, "
            f"dilation={_pair(dilation)}, padding={_pair(padding)}, stride={_pair(stride)}, "
            "expected size of input's dimension 2 to match the calculated number of sliding "
            f"blocks {counts[0]} * {counts[1]} = {prod(counts)}, but got input.size(2)={blocks}."
        )
    return (*input_shape[:-2], channels // prod(kernel), *output_size)


def block_counts(
    spatial: Shape, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> tuple[int, ...]:
    """The number of windows along each dim."""
    numbers = zip(spatial, kernel, stride, padding, dilation, strict=True)
    return tuple(window_count(*each) for each in numbers)


def unfold(input: Array, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Array:
    """Copy every window of input `(N, C, H, W)` into a column: `(N, C * kernel, blocks)`."""
    counts = block_counts(input.shape[2:], kernel, dilation, padding, stride)
    padded = pad_spatial(input, padding, padding)
    view = windows(padded, kernel, counts, stride, dilation)
    columns = view.copy("C")  # windows of one pixel lie in rows already: still a copy
    return columns.reshape(len(input), input.shape[1] * prod(kernel), prod(counts))


@np.errstate(all="ignore")
def fold(
    input: Array, output_size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Array:
    """Add the columns `(N, C * kernel, blocks)` up where their windows lie: `(N, C, H, W)`."""
    counts = block_counts(output_size, kernel, dilation, padding, stride)
    wide = widen(input).reshape(len(input), input.shape[1] // prod(kernel), *kernel, *counts)
    sizes = [size + 2 * pad for size, pad in zip(output_size, padding, strict=True)]
    total = np.zeros((*wide.shape[:2], *sizes), wide.dtype)
    everything = (slice(None), slice(None))
    for tap, places in tap_slices(kernel, counts, stride, dilation):
        total[(*everything, *places)] += wide[(*everything, *tap)]
    edges = [-pad for pad in padding]
    return narrow(np.ascontiguousarray(pad_spatial(total, edges, edges)), input.dtype)


def _check_lengths(**numbers: Ints) -> None:
    for name, values in numbers.items():
        if len(values) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")


def _check_numbers(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> None:
    rules = (
        ("kernel size", "kernel", kernel),
        ("stride", "stride", stride),
        ("dilation", "dilation", dilation),
    )
    for name, prefix, (height, width) in rules:
        if height <= 0 or width <= 0:
            raise RuntimeError(
                f"{name} should be greater than zero, but got "
                f"{prefix}_height: {height} {prefix}_width: {width}"
            )
    if min(padding) < 0:
        raise RuntimeError(
            "padding should be non-negative, but got "
            f"pad_height: {padding[0]} pad_width: {padding[1]}"
        )


def _pair(values: Shape) -> str:
    return f"({values[0]}, {values[1]})"
