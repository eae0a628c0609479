"""The shape rules of convolutions: they return the output's shape or raise torch's errors."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

from flambeau._core.settled import settled
from flambeau._ops.launching.windows import Ints, extent, window_count

Shape = Sequence[int]
SIDE_NAMES = {1: ("height", "width"), 2: ("height", "width"), 3: ("depth", "height", "width")}


def expand_ints(name: str, value: int | Ints, spatial: int) -> tuple[int, ...]:
    """One int per spatial dim, from an int, a list of one, or a list of `spatial` ints."""
    if isinstance(value, int):
        return (value,) * spatial
    if len(value) == 1:
        return (index(value[0]),) * spatial
    if len(value) == spatial:
        return tuple(map(index, value))
    raise RuntimeError(
        f"expected {name} to be a single integer value or a list of {spatial} values to match "
        f"the convolution dimensions, but got {name}={list(value)}"
    )


def check_input_rank(function: str, input_shape: Shape, spatial: int) -> None:
    """`conv1d` … `conv_transpose3d` take `(C, *spatial)` or `(N, C, *spatial)`."""
    if len(input_shape) in (spatial + 1, spatial + 2):
        return
    raise RuntimeError(
        f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {function}, "
        f"but got input of size: {list(input_shape)}"
    )


def same_padding(
    weight_shape: Shape, stride: Ints, dilation: Ints
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The padding before and after that keeps the size, for `padding='same'`.

    An odd total puts the extra element after, as torch does.
    """
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [gap * (size - 1) for size, gap in zip(weight_shape[2:], dilation, strict=True)]
    before = tuple(total // 2 for total in totals)
    return before, tuple(total - low for total, low in zip(totals, before, strict=True))


@settled
def conv_output_shape(
    input_shape: Shape,
    weight_shape: Shape,
    bias_shape: Shape | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> tuple[int, ...]:
    """`(N, O, *output)` for input `(N, C, *spatial)` and weight `(O, C / groups, *kernel)`.

    Raises RuntimeError in torch's words when the shapes do not fit.
    """
    check_numbers(stride, padding, dilation, (0,) * len(stride), groups)
    check_ranks(input_shape, weight_shape, groups)
    channels = weight_shape[1] * groups
    if input_shape[1] != channels:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight_shape)}, expected "
            f"input{list(input_shape)} to have {channels} channels, "
            f"but got {input_shape[1]} channels instead"
        )
    _check_bias("", weight_shape, bias_shape, weight_shape[0])
    _check_kernel_fits(input_shape, weight_shape, padding, dilation)
    if 0 in dilation:
        shown = [1, *dilation] if len(dilation) == 1 else list(dilation)
        raise RuntimeError(f"dilation should be greater than zero, but got {shown}")
    sizes = zip(input_shape[2:], weight_shape[2:], stride, padding, dilation, strict=True)
    _check_empty(input_shape)
    # torch gives an input without channels an output without channels, whatever the weight says.
    channels = weight_shape[0] if input_shape[1] else 0
    return (input_shape[0], channels, *(window_count(*numbers) for numbers in sizes))


@settled
def conv_transpose_output_shape(
    input_shape: Shape,
    weight_shape: Shape,
    bias_shape: Shape | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int,
) -> tuple[int, ...]:
    """`(N, O, *output)` for input `(N, C, *spatial)` and weight `(C, O / groups, *kernel)`.

    Each output size is (size - 1) * stride - 2p + dilation * (kernel - 1) + output_padding + 1.
    Raises RuntimeError in torch's words when the shapes do not fit.
    """
    check_numbers(stride, padding, dilation, output_padding, groups)
    check_ranks(input_shape, weight_shape, groups)
    if input_shape[1] != weight_shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(weight_shape)}, expected "
            f"input{list(input_shape)} to have {weight_shape[0]} channels, "
            f"but got {input_shape[1]} channels instead"
        )
    channels = weight_shape[1] * groups
    _check_bias("transposed=1, ", weight_shape, bias_shape, channels)
    if 0 in dilation:
        shown = ", ".join(f"dilation_{side}: {gap}" for side, gap in _sides(dilation, 1))
        raise RuntimeError(f"dilation should be greater than zero, but got {shown}")
    if input_shape[0]:
        _check_output_padding(output_padding, stride, dilation)
    kernel = weight_shape[2:]
    output = tuple(
        (size - 1) * step - 2 * pad + extent(taps, gap) + extra
        for size, taps, step, pad, gap, extra in zip(
            input_shape[2:], kernel, stride, padding, dilation, output_padding, strict=True
        )
    )
    if input_shape[0]:
        _check_transposed_size(input_shape[2:], output)
    _check_empty(input_shape)
    return _sound((input_shape[0], channels, *output))


def _sound(shape: Shape) -> tuple[int, ...]:
    """The shape, or torch's error for a size below 0, which results without images can have."""
    full = (*shape[:2], 1, *shape[2:]) if len(shape) == 3 else tuple(shape)
    for place, size in enumerate(full):
        if size < 0:
            raise RuntimeError(
                f"invalid shape dimension {size} at index {place} of shape {list(full)}"
            )
    return tuple(shape)


def check_numbers(
    stride: Ints, padding: Ints, dilation: Ints, output_padding: Ints, groups: int
) -> None:
    """Strides, groups and dilations are positive, paddings not negative; TypeError for numbers
    that are not whole."""
    for number in (*stride, *padding, *dilation, *output_padding, groups):
        index(number)
    check_weight(3, groups)
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) < 0:
        raise RuntimeError("dilation should be greater than zero")


def check_weight(rank: int, groups: int) -> None:
    """The weight has dims for two kinds of channels and a kernel; there are groups."""
    if rank < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def check_ranks(input_shape: Shape, weight_shape: Shape, groups: int) -> None:
    """Input and weight have the same rank, and the groups divide the weight."""
    rank = len(weight_shape)
    if rank < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if len(input_shape) != rank:
        raise RuntimeError(
            f"Expected {rank}-dimensional input for {rank}-dimensional weight "
            f"{list(weight_shape)}, but got {len(input_shape)}-dimensional input of size "
            f"{list(input_shape)} instead"
        )
    if weight_shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {list(weight_shape)} instead"
        )
    if weight_shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{list(weight_shape)}] instead"
        )


def _check_bias(prefix: str, weight_shape: Shape, bias_shape: Shape | None, channels: int) -> None:
    if bias_shape is None or tuple(bias_shape) == (channels,):
        return
    raise RuntimeError(
        f"Given {prefix}weight of size {list(weight_shape)}, expected bias to be 1-dimensional "
        f"with {channels} elements, but got bias of size {list(bias_shape)} instead"
    )


def _check_kernel_fits(
    input_shape: Shape, weight_shape: Shape, padding: Ints, dilation: Ints
) -> None:
    padded = [size + 2 * pad for size, pad in zip(input_shape[2:], padding, strict=True)]
    spans = [extent(size, gap) for size, gap in zip(weight_shape[2:], dilation, strict=True)]
    if all(size >= span for size, span in zip(padded, spans, strict=True)):
        return
    raise RuntimeError(
        f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: "
        f"({_by(spans)}). Kernel size can't be greater than actual input size"
    )


def _check_output_padding(output_padding: Ints, stride: Ints, dilation: Ints) -> None:
    numbers = zip(output_padding, stride, dilation, strict=True)
    if all(extra < max(step, gap) for extra, step, gap in numbers):
        return
    parts = [
        f"{name}_{side}: {value}"
        for name, values, lead in (
            ("output_padding", output_padding, 0),
            ("stride", stride, 1),
            ("dilation", dilation, 1),
        )
        for side, value in _sides(values, lead)
    ]
    raise RuntimeError(
        "output padding must be smaller than either stride or dilation, but got " + " ".join(parts)
    )


def _sides(values: Ints, lead: int) -> list[tuple[str, int]]:
    # torch runs conv_transpose1d as 2d with a leading dim of size one, and its words show it.
    full = (lead, *values) if len(values) == 1 else tuple(values)
    return list(zip(SIDE_NAMES[len(values)], full, strict=True))


def _check_transposed_size(spatial: Shape, output: Shape) -> None:
    if min(output) >= 1:
        return
    lead = (1,) if len(output) == 1 else ()
    raise RuntimeError(
        f"Given input size per channel: ({_by((*lead, *spatial))}). Calculated output size per "
        f"channel: ({_by((*lead, *output))}). Output size is too small"
    )


def _check_empty(input_shape: Shape) -> None:
    if 0 in input_shape[2:] and 0 not in input_shape[:2]:
        raise RuntimeError(
            "Only zero batch or zero channel inputs are supported, "
            f"but got input shape: {list(input_shape)}"
        )


def _by(sizes: Shape) -> str:
    return " x ".join(map(str, sizes))
