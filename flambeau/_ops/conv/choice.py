"""Convolutions: which code computes one, compiled kernels or NumPy.

Functions and arrays as in `conv`, whose NumPy code serves all types and every machine.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from flambeau._core.settings import get_num_threads
from flambeau._ops.conv import numpy_form as plain
from flambeau._ops.conv.numpy_depthwise import applies as is_depthwise
from flambeau._ops.conv.numpy_form import add_bias
from flambeau._ops.launching.epilogue import NOTHING, Epilogue
from flambeau._ops.launching.modules import launcher
from flambeau._ops.launching.precision import Array, is_floating
from flambeau._ops.launching.windows import Ints, extent, window_counts
from flambeau._runtime import choice

__all__ = ["add_bias", "conv", "conv_backward_bias", "conv_backward_input", "conv_backward_weight",
           "conv_transpose", "conv_transpose_backward_input",
           "conv_transpose_backward_weight"]  # fmt: skip


def _compiled(weight_shape: Ints, images: int, output: Ints, groups: int, dtype: Any) -> Any:
    """The module of the kernels that compute this convolution, or None."""
    if not is_floating(dtype):
        return None
    depthwise = is_depthwise(weight_shape, groups)
    products = images * prod(output) * prod(weight_shape)
    if not choice.compiled("depthwise" if depthwise else "conv", products):
        return None
    return launcher("conv.launch_depthwise" if depthwise else "conv.launch")


def _is_product(data: Array, weight_shape: Ints, output: Ints, groups: int) -> bool:
    """Whether products of matrices compute a convolution (`by_products`)."""
    return data.dtype.itemsize == 2 and by_products().serve(data, weight_shape, output, groups)  # type: ignore[no-any-return]  # noqa: PLR2004


def by_products() -> Any:
    """Convolutions as products, imported when half types first meet them."""
    return launcher("conv.by_products")


class PackedWeight:
    """A weight `(O, C / groups, *kernel)` that stays as it is: what kernels make of it is kept."""

    def __init__(self, weight: Array, groups: int) -> None:
        self.weight = weight
        self.groups = groups

    @cached_property
    def panels(self) -> Array:
        """As `conv_pixels` takes it."""
        return launcher("conv.launch_pixels").pack(self.weight, self.groups)


def conv(input: Array, weight: Array | PackedWeight, bias: Array | None, stride: Ints,
         padding: Ints, dilation: Ints, groups: int = 1,
         after: Epilogue = NOTHING) -> Array:  # fmt: skip
    """Cross-correlate input `(N, C, *spatial)` with weight `(O, C / groups, *kernel)`."""
    packed = weight if isinstance(weight, PackedWeight) else None
    matrix = weight.weight if isinstance(weight, PackedWeight) else weight
    stride, padding, dilation = tuple(stride), tuple(padding), tuple(dilation)
    output = window_counts(input.shape[2:], matrix.shape[2:], stride, padding, dilation)
    kernels = _compiled(matrix.shape, len(input), output, groups, input.dtype)
    if kernels is None:
        result = plain.conv(input, matrix, bias, stride, padding, dilation, groups)
        return after.applied(result)
    if after is NOTHING and _is_product(input, matrix.shape, output, groups):
        return by_products().forward(input, matrix, bias, output, stride, padding, dilation)
    numbers = (output, stride, padding, dilation, groups)
    return _forward(kernels, input, matrix, bias, numbers, after, packed)


def _forward(kernels: Any, input: Array, weight: Array, bias: Array | None, numbers: Any,
             after: Epilogue = NOTHING, packed: PackedWeight | None = None) -> Array:  # fmt: skip
    """A convolution by compiled kernels; `numbers` are hashable and begin with the output."""
    if not is_depthwise(weight.shape, numbers[-1]):
        conv_pixels = launcher("conv.launch_pixels")
        plan = conv_pixels.forward_plan(input.shape, weight.shape, *numbers, input.dtype,
                                        get_num_threads(), packed is not None)  # fmt: skip
        if plan is not None:
            panels = conv_pixels.pack(weight, numbers[-1]) if packed is None else packed.panels
            result = np.empty((len(input), len(weight), *numbers[0]), input.dtype)
            return conv_pixels.multiply(plan, input, panels, bias, result, after)
    return kernels.forward(input, weight, bias, *numbers, after)  # type: ignore[no-any-return]


def conv_backward_input(grad: Array, weight: Array, input_shape: Ints, stride: Ints,
                        padding: Ints, dilation: Ints, groups: int = 1) -> Array:  # fmt: skip
    """The gradient `(N, C, *spatial)` of `conv` with respect to its input."""
    numbers = (tuple(stride), tuple(padding), tuple(dilation), groups)
    kernels = _compiled(weight.shape, len(grad), grad.shape[2:], groups, grad.dtype)
    if kernels is None:
        return plain.conv_backward_input(grad, weight, input_shape, *numbers)
    plainly = {*numbers[0], *numbers[2]} == {1}
    if plainly and _is_product(grad, weight.shape, input_shape[2:], groups):
        found = by_products().backward_input(grad, weight, input_shape, numbers[1])
        if found is not None:
            return found
    return _to_input(kernels, grad, weight, tuple(input_shape), numbers)


def _to_input(kernels: Any, grad: Array, weight: Array, shape: tuple[int, ...], numbers: Any,
              bias: Array | None = None) -> Array:  # fmt: skip
    """The gradient of an input of a shape by compiled kernels, plus a bias for transposed
    convolutions; `numbers` are hashable."""
    if not is_depthwise(weight.shape, numbers[-1]):
        conv_pixels = launcher("conv.launch_pixels")
        plan = conv_pixels.gradient_plan(grad.shape, weight.shape, shape, *numbers, grad.dtype,
                                         get_num_threads())  # fmt: skip
        if plan is not None:
            return plan.run(grad, weight, bias, shape, numbers[-1])
    return kernels.backward_input(  # type: ignore[no-any-return]
        grad, weight, shape, *numbers, bias
    )


def conv_backward_weight(grad: Array, input: Array, weight_shape: Ints, stride: Ints,
                         padding: Ints, dilation: Ints, groups: int = 1) -> Array:  # fmt: skip
    """The gradient `(O, C / groups, *kernel)` of `conv` with respect to its weight."""
    kernels = _compiled(weight_shape, len(grad), grad.shape[2:], groups, grad.dtype)
    if kernels is None:
        return plain.conv_backward_weight(
            grad, input, weight_shape, stride, padding, dilation, groups
        )
    both = grad.flags.c_contiguous and input.flags.c_contiguous
    if both and _is_product(grad, weight_shape, grad.shape[2:], groups):
        steps = tuple(stride), tuple(padding), tuple(dilation)
        return by_products().backward_weight(grad, input, weight_shape, *steps)
    return kernels.backward_weight(grad, input, weight_shape, stride, padding, dilation, groups)


def conv_backward_bias(grad: Array) -> Array:
    """The gradient `(O,)` of a convolution's bias: the sum over images and positions."""
    if not is_floating(grad.dtype) or not choice.compiled("channel_sums", grad.size):
        return plain.conv_backward_bias(grad)
    from flambeau._ops.conv import launch_depthwise as compiled_depthwise

    return compiled_depthwise.channel_sums(grad)


def conv_transpose(input: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints,
                   output_padding: Ints, dilation: Ints, groups: int = 1) -> Array:  # fmt: skip
    """The transposed map of `conv`: input `(N, C, *spatial)`, weight `(C, O / groups, *kernel)`."""
    kernels = _compiled(weight.shape, len(input), input.shape[2:], groups, input.dtype)
    if kernels is None:
        return plain.conv_transpose(
            input, weight, bias, stride, padding, output_padding, dilation, groups
        )
    sizes = zip(
        input.shape[2:], stride, padding, weight.shape[2:], dilation, output_padding, strict=True
    )
    spatial = [
        (size - 1) * step - 2 * pad + extent(taps, gap) + extra
        for size, step, pad, taps, gap, extra in sizes
    ]
    shape = (len(input), weight.shape[1] * groups, *spatial)
    numbers = (tuple(stride), tuple(padding), tuple(dilation), groups)
    return _to_input(kernels, input, weight, shape, numbers, bias)


def conv_transpose_backward_input(grad: Array, weight: Array, input_shape: Ints, stride: Ints,
                                  padding: Ints, dilation: Ints,
                                  groups: int = 1) -> Array:  # fmt: skip
    """The gradient of `conv_transpose` with respect to its input: a plain convolution."""
    kernels = _compiled(weight.shape, len(grad), input_shape[2:], groups, grad.dtype)
    if kernels is None:
        return plain.conv_transpose_backward_input(
            grad, weight, input_shape, stride, padding, dilation, groups
        )
    # Windows of the output padding alone reach further than the input did: they are left out.
    numbers = (tuple(input_shape[2:]), tuple(stride), tuple(padding), tuple(dilation), groups)
    return _forward(kernels, grad, weight, None, numbers)


def conv_transpose_backward_weight(grad: Array, input: Array, weight_shape: Ints, stride: Ints,
                                   padding: Ints, dilation: Ints,
                                   groups: int = 1) -> Array:  # fmt: skip
    """The gradient `(C, O / groups, *kernel)` of `conv_transpose` with respect to its weight."""
    if not is_floating(grad.dtype):
        return plain.conv_transpose_backward_weight(
            grad, input, weight_shape, stride, padding, dilation, groups
        )
    return conv_backward_weight(input, grad, weight_shape, stride, padding, dilation, groups)
