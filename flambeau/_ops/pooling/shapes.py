"""The shape rules of pools: they return the output's shape or raise torch's errors."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np

from flambeau._ops.launching.windows import Ints, extent
from flambeau._ops.table.dims import require_sizes

Shape = Sequence[int]
COUNT_WORDS = {2: "two", 3: "three"}
# How torch spells the kernel's sides in max_pool messages, and a prefix for stride.
SIDES = {2: ("H", "W"), 3: ("T", "H", "W")}


def pooled_size(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> int:
    """The number of windows along one dim.

    With `ceil_mode` the division rounds up, but a last window that would start inside the right
    padding is dropped.
    """
    span = size + 2 * padding - extent(kernel, dilation)
    count = -(-span // stride) + 1 if ceil_mode else span // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def pool_numbers(
    function: str, name: str, value: int | Ints, spatial: int, default: Ints | None = None
) -> tuple[int, ...]:
    """One int per spatial dim from a pool's argument `name`; an empty stride is the kernel.

    Raises TypeError for numbers that are not whole.
    """
    if isinstance(value, (int, np.integer)):
        return (int(value),) * spatial
    if len(value) == 0 and default is not None:
        return tuple(default)
    if len(value) == 1:
        return (index(value[0]),) * spatial
    if len(value) == spatial:
        return tuple(map(index, value))
    raise RuntimeError(f"{function}: {_number_words(function, name, spatial)}")


def _number_words(function: str, name: str, spatial: int) -> str:
    count = COUNT_WORDS[spatial]
    if function == "avg_pool3d":
        omitted = "omitted, " if name == "stride" else ""
        return f"{name} must be {omitted}a single int, or a tuple of three ints"
    if name == "stride":
        return f"stride must either be omitted, a single int, or a tuple of {count} ints"
    verb = "must be either" if name == "dilation" else "must either be"
    return f"{name} {verb} a single int, or a tuple of {count} ints"


def max_pool_output_shape(
    input_shape: Shape,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> tuple[int, ...]:
    """The shape of `max_pool2d` and `max_pool3d` results; input may lack the batch dim."""
    spatial = len(kernel)
    if len(input_shape) not in (spatial + 1, spatial + 2):
        raise RuntimeError(_rank_words(spatial))
    _check_sides(kernel, stride, padding, dilation)
    _check_not_empty("max_pool3d_with_indices_out_cpu_template()", input_shape, spatial)
    return _output_shape(input_shape, kernel, stride, padding, dilation, ceil_mode)


def avg_pool_output_shape(
    input_shape: Shape, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool
) -> tuple[int, ...]:
    """The shape of `avg_pool2d` and `avg_pool3d` results; input may lack the batch dim."""
    spatial = len(kernel)
    dilation = (1,) * spatial
    if spatial == 2:  # where the sizes are asked for before their number
        require_sizes(len(input_shape), -3)
    elif len(input_shape) not in (4, 5):
        raise RuntimeError(_rank_words(spatial))
    _check_sides(kernel, stride, padding, dilation)
    if len(input_shape) not in (spatial + 1, spatial + 2):
        raise RuntimeError(_no_images(input_shape))
    _check_not_empty("avg_pool3d()", input_shape, spatial)
    if spatial == 3:
        _check_image_fits(input_shape[-3:], kernel)
    return _output_shape(input_shape, kernel, stride, padding, dilation, ceil_mode)


def max_pool1d_output_size(
    input_shape: Shape,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    ceil_mode: bool,
) -> int:
    """The length of a `max_pool1d` result; it has words of its own."""
    if len(input_shape) not in (2, 3) or 0 in input_shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size "
            f"for input, but got:{list(input_shape)}"
        )
    for name, value in (("kernel_size", kernel), ("stride", stride)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(
            "max_pool1d() padding should be at most half of kernel size, but got "
            f"padding={padding} and kernel_size={kernel}"
        )
    if dilation <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation}")
    size = pooled_size(input_shape[-1], kernel, stride, padding, dilation, ceil_mode)
    if size < 1:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")
    return size


def _rank_words(spatial: int) -> str:
    return f"non-empty {spatial + 1}D or {spatial + 2}D (batch mode) tensor expected for input"


def _no_images(input_shape: Shape) -> str:
    return ("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, "
            f"but got:{list(input_shape)}")  # fmt: skip


def _check_sides(kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> None:
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    check_padding(kernel, padding, dilation)
    rules = (
        ("kernel size", kernel, "k{}"),
        ("stride", stride, "d{}"),
        ("dilation", dilation, "dilation{}"),
    )
    for name, values, pattern in rules:
        if min(values) > 0:
            continue
        sides = zip(SIDES[len(values)], values, strict=True)
        shown = " ".join(f"{pattern.format(side)}: {value}" for side, value in sides)
        raise RuntimeError(f"{name} should be greater than zero, but got {shown}")


def _check_not_empty(function: str, input_shape: Shape, spatial: int) -> None:
    inner = input_shape[-spatial - 1 :]
    if 0 not in inner:
        return
    if spatial == 2:
        raise RuntimeError(_no_images(input_shape))
    # torch says dim 0 wherever the empty dim is.
    raise RuntimeError(
        f"{function}: Expected input's non-batch dimensions to have positive length, but input "
        f"has a shape of {list(input_shape)} and non-batch dimension 0 has length zero!"
    )


def _check_image_fits(spatial: Shape, kernel: Ints) -> None:
    """A window is no larger than the image; padding does not count."""
    if all(size >= taps for size, taps in zip(spatial, kernel, strict=True)):
        return
    depth, height, width = spatial
    k_depth, k_height, k_width = kernel
    raise RuntimeError(
        f"input image (T: {depth} H: {height} W: {width}) smaller than kernel size "
        f"(kT: {k_depth} kH: {k_height} kW: {k_width})"
    )


def _output_shape(
    input_shape: Shape,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> tuple[int, ...]:
    spatial = len(kernel)
    numbers = zip(input_shape[-spatial:], kernel, stride, padding, dilation, strict=True)
    output = [pooled_size(*each, ceil_mode) for each in numbers]
    if min(output) < 1:
        before = "x".join(map(str, input_shape[-spatial - 1 :]))
        after = "x".join(map(str, (input_shape[-spatial - 1], *output)))
        raise RuntimeError(
            f"Given input size: ({before}). Calculated output size: ({after}). "
            "Output size is too small"
        )
    return (*input_shape[:-spatial], *output)


def check_padding(kernel: Ints, padding: Ints, dilation: Ints) -> None:
    """Padding is at most half of the dilated kernel, so that no window lies in it entirely."""
    for taps, pad, gap in zip(kernel, padding, dilation, strict=True):
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > int(extent(taps, gap) / 2):
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={pad}, kernel_size={taps} and dilation={gap}"
            )
