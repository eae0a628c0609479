"""Launches the kernels of max and average pools.

Arrays are `(..., *spatial)` of float16, bfloat16, float32 or float64; functions as in `pool`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.conv.launch_depthwise import BAND, ROOM, Plan, layout, three, types_of
from flambeau._ops.launching.precision import Array
from flambeau._ops.launching.windows import Ints
from flambeau._ops.pooling import kernels, segment_kernels
from flambeau._runtime.launch import Kernel, kernel
from flambeau._runtime.observed import constant, scratch

ROWS = 4
"""Rows of windows that a kernel works on at a time."""
TASK_NUMBERS = 1 << 14
"""Numbers read that are worth a task of their own."""
NO_PLACES = constant(np.empty(0, np.int64))


def _plan(shape: Ints, output: Ints, taps: Ints, stride: Ints, padding: Ints, dilation: Ints,
          gap: Ints = (1, 1, 1)) -> Plan:  # fmt: skip
    """Windows over planes, as of a convolution with one channel."""
    spatial = len(taps)
    return Plan(
        prod(shape[:-spatial]), 1, 1, three(shape[-spatial:], 1), three(output, 1), three(taps, 1),
        three(padding, 0), three(stride, 1), three(dilation, 1), gap,
    )  # fmt: skip


def _tasks(units: int, numbers: int, threads: int) -> int:
    return max(1, min(units, numbers // TASK_NUMBERS, 4 * threads))


@lru_cache(512)
def _moves(plan: Plan) -> tuple[Array, Array]:
    """How far each tap lies from a window's first one in the input, and the dilations."""
    _, height, width = plan.inputs
    steps = product(*(range(0, n * gap, gap) for n, gap in zip(plan.taps, plan.dilation,
                                                               strict=True)))  # fmt: skip
    moves = [(z * height + y) * width + x for z, y, x in steps]
    return np.array(moves, np.int64), np.array(plan.dilation, np.int64)


class Ready(NamedTuple):
    """A launch whose arrays are not given yet."""

    kernel: Kernel
    tasks: int
    room: int
    """Elements that the tasks work in, in the type `wide`."""
    wide: np.dtype[Any]
    shape: tuple[int, ...]
    rest: tuple[Array, ...]
    """The arguments behind the arrays."""


@lru_cache(512)
def _ready_max(shape: Ints, dtype: np.dtype[Any], numbers: tuple[Ints, ...], output: Ints,
               indexed: bool, threads: int) -> Ready:  # fmt: skip
    statics, wide = types_of(dtype)
    taps, stride, padding, dilation = numbers
    plan = _plan(shape, output, taps, stride, padding, dilation)
    sizes, offsets = layout(plan, ROWS, 4 * statics["W"], wide.itemsize)
    tasks = _tasks(plan.images * -(-plan.outputs[1] // int(sizes[BAND])), prod(shape), threads)
    run = kernel(kernels.max_pool, **statics, R=ROWS, INDEXED=indexed)
    return Ready(run, tasks, tasks * int(sizes[ROOM]), wide, (*shape[: -len(taps)], *output),
                 tuple(map(constant, (offsets, *_moves(plan), sizes))))  # fmt: skip


def _max_pool(input: Array, numbers: tuple[Ints, ...], output: Ints,
              indexed: bool) -> tuple[Array, Array]:  # fmt: skip
    run, tasks, room, wide, shape, rest = _ready_max(input.shape, input.dtype, numbers, output,
                                                     indexed, get_num_threads())  # fmt: skip
    values = np.empty(shape, input.dtype)
    places = np.empty(shape, np.int64) if indexed else NO_PLACES
    run.parallel(tasks, np.ascontiguousarray(input), values, places, scratch(room, wide), *rest)
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
    tasks = _tasks(plan.images, input.size, get_num_threads())
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
    tasks = _tasks(planes, result.size, get_num_threads())
    needs_sums = OF_NUMPY[NAMES[values.dtype]].bits < 32
    work = np.empty(tasks * size if needs_sums else 0, wide)
    kernel(kernels.scatter_planes, **statics).parallel(
        tasks, np.ascontiguousarray(values), np.ascontiguousarray(indices), result, work, planes,
        values.size // planes, size,
    )  # fmt: skip
    return result


# ---- windows whose bounds are told


def segment_max(input: Array, bounds: Array, output: Ints) -> tuple[Array, Array]:
    """The largest value of every window and its int64 position in its flattened plane.

    `bounds` is `(planes, numbers)`, or `(1, numbers)` for the same windows in all planes: for each
    spatial dim where the windows start, and where they stop. None is empty.
    """
    rank = len(output)
    inputs, outputs = three(input.shape[-rank:], 1), three(output, 1)
    missing = np.broadcast_to([0, 1] * (3 - rank), (len(bounds), 2 * (3 - rank)))
    bounds = np.ascontiguousarray(np.concatenate([missing, bounds], 1), np.int64)
    statics, wide = types_of(input.dtype)
    planes = prod(input.shape[:-rank])
    tasks = _tasks(planes, input.size, get_num_threads())
    room = inputs[2] + statics["W"]
    values = np.empty((*input.shape[:-rank], *output), input.dtype)
    places = np.empty(values.shape, np.int64)
    kernel(segment_kernels.segment_max, **statics).parallel(
        tasks, np.ascontiguousarray(input), values, places, scratch(tasks * room, wide),
        scratch(tasks * room, np.dtype(np.int32)), bounds, planes,
        0 if len(bounds) == 1 else bounds.shape[1], *inputs, *outputs, room,
    )  # fmt: skip
    return values, places


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


def _ready_mean(plan: Plan, shape: Ints, dtype: np.dtype[Any], size: int,
                counts: tuple[Array, ...], threads: int) -> Ready:  # fmt: skip
    statics, wide = types_of(dtype)
    width = statics["W"]
    sizes, offsets = layout(plan, ROWS, 4 * width, wide.itemsize)
    padded = [np.ones(-(-len(each) // width) * width, wide) for each in counts]
    for target, each in zip(padded, counts, strict=True):
        target[: len(each)] = each
    tasks = _tasks(plan.images * -(-plan.outputs[1] // int(sizes[BAND])), size, threads)
    run = kernel(kernels.average_pool, **statics, R=ROWS)
    return Ready(run, tasks, tasks * int(sizes[ROOM]), wide, shape,
                 tuple(map(constant, (*padded, offsets, sizes))))  # fmt: skip


def _average(source: Array, ready: Ready) -> Array:
    run, tasks, room, wide, shape, rest = ready
    result = np.empty(shape, source.dtype)
    run.parallel(tasks, np.ascontiguousarray(source), result, scratch(room, wide), *rest)
    return result


@lru_cache(512)
def _ready_windows(shape: Ints, dtype: np.dtype[Any], taps: Ints, stride: Ints, padding: Ints,
                   output: Ints, count_include_pad: bool, override: int | None,
                   threads: int) -> Ready:  # fmt: skip
    plan = _plan(shape, output, taps, stride, padding, (1,) * len(taps))
    numbers = (plan.outputs, plan.inputs, plan.taps, plan.step, plan.pad)
    counts = _counts(*numbers, count_include_pad, override)
    whole = (*shape[: -len(taps)], *output)
    return _ready_mean(plan, whole, dtype, prod(shape), counts, threads)


def avg_pool(input: Array, taps: Ints, stride: Ints, padding: Ints, output: Ints,
             count_include_pad: bool = True, override: int | None = None) -> Array:  # fmt: skip
    """The mean of every window."""
    return _average(input, _ready_windows(input.shape, input.dtype, taps, stride, padding, output,
                                          count_include_pad, override,
                                          get_num_threads()))  # fmt: skip


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
    ready = _ready_mean(plan, (*lead, *spatial), divided.dtype, divided.size, each,
                        get_num_threads())  # fmt: skip
    result = _average(divided, ready)
    return result.astype(grad.dtype, copy=False)


def suits(dtype: np.dtype[Any], spatial: Ints) -> bool:
    """Whether the kernels serve numbers of this type and planes of this size."""
    return NAMES[dtype] in ("float16", "bfloat16", "float32", "float64") and prod(spatial) < 2**31
