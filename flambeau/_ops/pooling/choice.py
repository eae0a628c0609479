"""Pools: which code computes one, compiled kernels or NumPy.

Functions and arrays as in `pool` and `planes`, whose NumPy code serves all types and every machine.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._core.layout import is_channels_last
from flambeau._ops.images import planes as plain_planes
from flambeau._ops.images import resample
from flambeau._ops.launching.memory_formats import in_format, in_format_of
from flambeau._ops.launching.modules import launcher
from flambeau._ops.launching.precision import Array, is_floating
from flambeau._ops.launching.windows import Ints
from flambeau._ops.pooling import fractional as plain_fractional
from flambeau._ops.pooling import numpy_adaptive as plain_adaptive
from flambeau._ops.pooling import numpy_form as plain
from flambeau._runtime import choice
from flambeau._runtime.cpu import element_strides


def _compiled(array: Array, spatial: Ints, work: str = "pool") -> Any:
    """The module of the kernels for an array of at most so large planes, or None."""
    if not array.size or not choice.compiled(work, array.size):
        return None
    kernels = launcher("pooling.launch")
    return kernels if kernels.suits(array.dtype, spatial) else None


def max_pool(input: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
             output: Ints) -> Array:  # fmt: skip
    """The largest value of every window; NaN wins."""
    kernels = _compiled(input, input.shape[-len(kernel) :])
    pool = plain.max_pool if kernels is None else kernels.max_pool
    return _laid_out(pool(input, kernel, stride, padding, dilation, output), input, kernel)


def _laid_out(result: Array, input: Array, kernel: Ints) -> Array:
    """The result in the memory format of the input; a volume without a batch is a batch of one."""
    if len(kernel) == 3 and input.ndim == 4:  # noqa: PLR2004
        steps = (input.size, *element_strides(input))
        return in_format(result[None], is_channels_last((1, *input.shape), steps))[0]
    return in_format_of(result, input)


def max_pool_with_indices(input: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
                          output: Ints) -> tuple[Array, Array]:  # fmt: skip
    """`max_pool` and the int64 position of each maximum in its flattened spatial plane."""
    kernels = _compiled(input, input.shape[-len(kernel) :], "pool places")
    function = plain.max_pool_with_indices if kernels is None else kernels.max_pool_with_indices
    found = function(input, kernel, stride, padding, dilation, output)
    return _laid_out(found[0], input, kernel), _laid_out(found[1], input, kernel)


def max_pool_backward(grad: Array, input: Array, result: Array, kernel: Ints, stride: Ints,
                      padding: Ints, dilation: Ints) -> Array:  # fmt: skip
    """The gradient of `max_pool` from its input and result."""
    spatial = input.shape[-len(kernel) :]
    kernels = _compiled(input, spatial, "pool places")
    if kernels is not None and result.size:
        return kernels.max_pool_backward(  # type: ignore[no-any-return]
            grad, input, kernel, stride, padding, dilation
        )
    if plain.suits_taps(kernel, stride, padding, dilation):
        return plain.max_pool_backward_by_taps(grad, input, result, kernel, stride, dilation)
    output = result.shape[-len(kernel) :]
    _, indices = plain.max_pool_with_indices(input, kernel, stride, padding, dilation, output)
    return plain_planes.scatter_planes(grad, indices, spatial)


def scatter_planes(values: Array, indices: Array, spatial: Ints, unique: bool) -> Array:
    """Add values `(..., *output)` into zero planes `(..., *spatial)` at their flat indices."""
    kernels = _compiled(values, spatial)
    if kernels is None or not prod(spatial):
        return plain_planes.scatter_planes(values, indices, spatial, unique)
    return kernels.scatter_planes(values, indices, spatial)  # type: ignore[no-any-return]


def avg_pool(input: Array, kernel: Ints, stride: Ints, padding: Ints, output: Ints,
             count_include_pad: bool = True,
             divisor_override: int | None = None) -> Array:  # fmt: skip
    """The mean of every window; integers divide towards zero."""
    kernels = _compiled(input, input.shape[-len(kernel) :])
    more = count_include_pad, divisor_override
    pool = plain.avg_pool if kernels is None else kernels.avg_pool
    found = pool(input, kernel, stride, padding, output, *more)
    if len(kernel) == 3:  # torch lays out means of volumes in the one way only
        return np.ascontiguousarray(found)
    return in_format_of(found, input)


def avg_pool_backward(grad: Array, spatial: Ints, kernel: Ints, stride: Ints, padding: Ints,
                      count_include_pad: bool = True,
                      divisor_override: int | None = None) -> Array:  # fmt: skip
    """The gradient `(..., *spatial)` of `avg_pool`: every window spreads its grad evenly."""
    kernels = _compiled(grad, spatial)
    function = plain.avg_pool_backward if kernels is None else kernels.avg_pool_backward
    return function(  # type: ignore[no-any-return]
        grad, spatial, kernel, stride, padding, count_include_pad, divisor_override
    )


def adaptive_avg_pool(input: Array, output: Ints) -> Array:
    """The mean of every segment."""
    step = plain_adaptive.even_step(input.shape[-len(output) :], output)
    if step is None or prod(output) == 1 or not is_floating(input.dtype):
        found = None if prod(output) == 1 else resample.segment_means(input, output)
        if found is None:
            return plain_adaptive.adaptive_avg_pool(input, output)
        # torch lays out means of volumes in the one way only
        return np.ascontiguousarray(found) if len(output) == 3 else found
    return avg_pool(input, step, step, (0,) * len(step), output)


def adaptive_avg_pool_backward(grad: Array, spatial: Ints) -> Array:
    """The gradient `(..., *spatial)` of `adaptive_avg_pool`."""
    found = resample.segment_means_backward(grad, spatial)
    if found is None:
        return plain_adaptive.adaptive_avg_pool_backward(grad, spatial)
    return np.ascontiguousarray(found)


def adaptive_max_pool(input: Array, output: Ints) -> tuple[Array, Array]:
    """The maximum of every segment and its position in its flattened spatial plane."""
    step = plain_adaptive.even_step(input.shape[-len(output) :], output)
    if step is None or prod(output) == 1 or not is_floating(input.dtype):
        return _segment_max(input, output)
    rank = len(step)
    return max_pool_with_indices(input, step, step, (0,) * rank, (1,) * rank, output)


def _segment_max(input: Array, output: Ints) -> tuple[Array, Array]:
    spatial = input.shape[-len(output) :]
    kernels = _compiled(input, spatial, "pool places")
    if kernels is None or 0 in output:
        return plain_adaptive.adaptive_max_pool(input, output)
    bounds = [np.array(plain_adaptive.segments(*each)).T.reshape(-1)
              for each in zip(spatial, output, strict=True)]  # fmt: skip
    return kernels.segment_max(input, np.concatenate(bounds)[None], output)  # type: ignore[no-any-return]


def fractional_max_pool(input: Array, taps: Ints, output: Ints,
                        samples: Array) -> tuple[Array, Array]:  # fmt: skip
    """Maxima `(N, C, *output)` of windows at places that samples say, and their positions."""
    spatial = input.shape[2:]
    kernels = _compiled(input, spatial, "pool places")
    if kernels is None or 0 in output or 0 in taps:
        return plain_fractional.fractional_max_pool(input, taps, output, samples)
    starts = plain_fractional.plane_starts(input.shape, taps, output, samples)
    planes = prod(input.shape[:2])
    bounds = []
    for places, count, length in zip(starts, output, taps, strict=True):
        each = np.broadcast_to(places.reshape(*places.shape[:2], count), (*input.shape[:2], count))
        each = each.reshape(planes, count)
        bounds += [each, each + length]
    return kernels.segment_max(input, np.concatenate(bounds, 1), output)  # type: ignore[no-any-return]
