"""Launches the kernels of max and average pools.

Arrays are `(..., *spatial)` of float16, bfloat16, float32 or float64; functions as in `pool`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from flambeau._compiler.types import OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.conv.launch_depthwise import BAND, ROOM, Plan, layout, three, types_of
from flambeau._ops.launching.precision import Array
from flambeau._ops.launching.windows import Ints
from flambeau._ops.pooling import kernels
from flambeau._runtime.launch import kernel

ROWS = 4
"""Rows of windows that a kernel works on at a time."""
TASK_NUMBERS = 1 << 14
"""Numbers read that are worth a task of their own."""


def _plan(shape: Ints, output: Ints, taps: Ints, stride: Ints, padding: Ints, dilation: Ints,
          gap: Ints = (1, 1, 1)) -> Plan:  # fmt: skip
    """Windows over planes, as of a convolution with one channel."""
    spatial = len(taps)
    return Plan(
        prod(shape[:-spatial]), 1, 1, three(shape[-spatial:], 1), three(output, 1), three(taps, 1),
        three(padding, 0), three(stride, 1), three(dilation, 1), gap,
    )  # fmt: skip


def _tasks(units: int, numbers: int) -> int:
    return max(1, min(units, numbers // TASK_NUMBERS, 4 * get_num_threads()))


@lru_cache(512)
def _moves(plan: Plan) -> tuple[Array, Array]:
    """How far each tap lies from a window's first one in the input, and the dilations."""
    _, height, width = plan.inputs
    steps = product(*(range(0, n * gap, gap) for n, gap in zip(plan.taps, plan.dilation,
                                                               strict=True)))  # fmt: skip
    moves = [(z * height + y) * width + x for z, y, x in steps]
    return np.array(moves, np.int64), np.array(plan.dilation, np.int64)


def _max_pool(input: Array, numbers: tuple[Ints, ...], output: Ints,
              indexed: bool) -> tuple[Array, Array]:  # fmt: skip
    statics, wide = types_of(input.dtype)
    taps, stride, padding, dilation = numbers
    plan = _plan(input.shape, output, taps, stride, padding, dilation)
    sizes, offsets = layout(plan, ROWS, 4 * statics["W"], wide.itemsize)
    shape = (*input.shape[: -len(taps)], *output)
    values = np.empty(shape, input.dtype)
    places = np.empty(shape if indexed else 0, np.int64)
    tasks = _tasks(plan.images * -(-plan.outputs[1] // int(sizes[BAND])), input.size)
    work = np.empty(tasks * int(sizes[ROOM]), wide)
    kernel(kernels.max_pool, **statics, R=ROWS, INDEXED=indexed).parallel(
        tasks, np.ascontiguousarray(input), values, places, work, offsets, *_moves(plan), sizes
    )
    return values, places


def max_pool(input: Array, taps: Ints, stride: Ints, padding: Ints, dilation: Ints,
             output: Ints) -> Array:  # fmt: skip
    """The largest value of every window; NaN wins."""
    return _max_pool(input, (taps, stride, padding, dilation), output, False)[0]


def max_pool_with_indices(input: Array, taps: Ints, stride: Ints, padding: Ints, dilation: Ints,
                          output: Ints) -> tuple[Array, Array]:  # fmt: skip
    """`max_pool` and the int64 position of each maximum in its flattened spatial plane."""
    return _max_pool(input, (taps, stride, padding, dilation), output, True)


def max_pool_backward(grad: Array, input: Array, taps: Ints, stride: Ints, padding: Ints,
                      dilation: Ints) -> Array:  # fmt: skip
    """The gradient of `max_pool` from its input."""
    statics, wide = types_of(input.dtype)
    output = grad.shape[-len(taps) :]
    plan = _plan(input.shape, output, taps, stride, padding, dilation)
    sizes, offsets = layout(plan, ROWS, 4 * statics["W"], wide.itemsize)
    result = np.empty(input.shape, grad.dtype)
    tasks = _tasks(plan.images, input.size)
    places = np.empty(tasks * prod(output), np.int64)
    values = np.empty(tasks * prod(output), input.dtype)
    work = np.empty(tasks * (int(sizes[ROOM]) + prod(plan.inputs)), wide)
    kernel(kernels.max_pool_backward, **statics, R=ROWS).parallel(
        tasks, np.ascontiguousarray(input), np.ascontiguousarray(grad), result, places, values,
        work, offsets, *_moves(plan), sizes,
    )  # fmt: skip
    return result


def scatter_planes(values: Array, indices: Array, spatial: Ints) -> Array:
    """Add values `(..., *output)` into zero planes `(..., *spatial)` at their flat indices."""
    statics, wide = types_of(values.dtype)
    lead = values.shape[: values.ndim - len(spatial)]
    planes, size = prod(lead), prod(spatial)
    result = np.empty((*lead, *spatial), values.dtype)
    tasks = _tasks(planes, result.size)
    needs_sums = OF_NUMPY[values.dtype.name].bits < 32
    work = np.empty(tasks * size if needs_sums else 0, wide)
    kernel(kernels.scatter_planes, **statics).parallel(
        tasks, np.ascontiguousarray(values), np.ascontiguousarray(indices), result, work, planes,
        values.size // planes, size,
    )  # fmt: skip
    return result


# ---- average pools


@lru_cache(512)
def _counts(output: Ints, inputs: Ints, taps: Ints, stride: Ints, padding: Ints,
            count_include_pad: bool, override: int | None) -> tuple[Array, ...]:  # fmt: skip
    """Three arrays whose products are what the windows' sums are divided by."""
    if override is not None:
        counts = [np.ones(count) for count in output]
        counts[0] *= override
        return tuple(counts)
    found = []
    for count, size, taken, step, pad in zip(output, inputs, taps, stride, padding, strict=True):
        start = np.arange(count) * step - pad
        end = np.minimum(start + taken, size + pad)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, size)
        found.append((end - start).astype(np.float64))
    return tuple(found)


def _average(source: Array, plan: Plan, shape: tuple[int, ...], counts: tuple[Array, ...]) -> Array:
    statics, wide = types_of(source.dtype)
    width = statics["W"]
    sizes, offsets = layout(plan, ROWS, 4 * width, wide.itemsize)
    padded = [np.ones(-(-len(each) // width) * width, wide) for each in counts]
    for target, each in zip(padded, counts, strict=True):
        target[: len(each)] = each
    result = np.empty(shape, source.dtype)
    tasks = _tasks(plan.images * -(-plan.outputs[1] // int(sizes[BAND])), source.size)
    work = np.empty(tasks * int(sizes[ROOM]), wide)
    kernel(kernels.average_pool, **statics, R=ROWS).parallel(
        tasks, np.ascontiguousarray(source), result, work, *padded, offsets, sizes
    )
    return result


def avg_pool(input: Array, taps: Ints, stride: Ints, padding: Ints, output: Ints,
             count_include_pad: bool = True, override: int | None = None) -> Array:  # fmt: skip
    """The mean of every window."""
    ones = (1,) * len(taps)
    plan = _plan(input.shape, output, taps, stride, padding, ones)
    numbers = (plan.outputs, plan.inputs, plan.taps, plan.step, plan.pad)
    counts = _counts(*numbers, count_include_pad, override)
    return _average(input, plan, (*input.shape[: -len(taps)], *output), counts)


def avg_pool_backward(grad: Array, spatial: Ints, taps: Ints, stride: Ints, padding: Ints,
                      count_include_pad: bool = True,
                      override: int | None = None) -> Array:  # fmt: skip
    """The gradient `(..., *spatial)` of `avg_pool`: sums over the windows of every number."""
    rank = len(taps)
    output, lead = three(grad.shape[-rank:], 1), grad.shape[:-rank]
    sizes, step, pad = three(spatial, 1), three(stride, 1), three(padding, 0)
    span = three(taps, 1)
    counts = _counts(output, sizes, span, step, pad, count_include_pad, override)
    divided, each = grad, tuple([np.ones(size) for size in sizes])
    if all((count == count[0]).all() for count in counts):
        each[0][:] = prod(float(count[0]) for count in counts)
    else:
        wide = types_of(grad.dtype)[1]
        divisor = counts[0][:, None, None] * counts[1][:, None] * counts[2]
        divided = grad.astype(wide) / divisor.reshape(grad.shape[-rank:]).astype(wide)
    before = [size - 1 - p for size, p in zip(span, pad, strict=True)]
    plan = Plan(prod(lead), 1, 1, output, sizes, span, tuple(before), (1, 1, 1), (1, 1, 1), step)
    result = _average(divided, plan, (*lead, *spatial), each)
    return result.astype(grad.dtype, copy=False)


def suits(dtype: np.dtype[Any], spatial: Ints) -> bool:
    """Whether the kernels serve numbers of this type and planes of this size."""
    return dtype.name in ("float16", "bfloat16", "float32", "float64") and prod(spatial) < 2**31
