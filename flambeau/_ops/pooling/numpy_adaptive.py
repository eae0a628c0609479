"""Adaptive pools: output position `o` covers input floor(o * in / out) to ceil((o+1) * in / out).

Arrays are `(..., *spatial)`. Dims are pooled one after the other, the last one first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau._ops.launching.precision import Array, is_floating, narrow, refuse, widen
from flambeau._ops.launching.windows import Ints
from flambeau._ops.pooling.numpy_form import avg_pool, max_pool_with_indices

Shape = Sequence[int]
SHORT_PLANE = 1024


def adaptive_output_shape(function: str, input_shape: Shape, output: Ints) -> tuple[int, ...]:
    """The shape of `adaptive_{avg,max}_pool{1,2,3}d` results, or torch's errors."""
    spatial = int(function[-2])
    is_max = "max" in function
    if not is_max:
        check_average_size(function, input_shape, output)
    if len(input_shape) not in (spatial + 1, spatial + 2):
        raise RuntimeError(_rank_words(function, input_shape, spatial, is_max))
    _check_not_empty(function, input_shape, spatial)
    if len(output) != spatial:
        raise RuntimeError(f"{function}(): internal error: output_size.size() must be {spatial}")
    if min(output) < 0:
        raise RuntimeError(_negative_words(function, input_shape, output, is_max))
    return (*input_shape[:-spatial], *output)


def check_average_size(function: str, input_shape: Shape, output: Ints) -> None:
    """What average pools look at before the input."""
    spatial = int(function[-2])
    if len(output) != spatial:
        raise RuntimeError(f"{function}: output_size must be {spatial}")
    if spatial > 1 and min(output) < 0:
        raise RuntimeError(_negative_words(function, input_shape, output, is_max=False))


def _rank_words(function: str, input_shape: Shape, spatial: int, is_max: bool) -> str:
    if spatial == 1:
        return (
            f"Expected 2 to 3 dimensions, but got {len(input_shape)}-dimensional tensor for "
            f"argument #1 'self' (while checking arguments for {function})"
        )
    colon = ":" if is_max else ""
    return (
        f"{function}(): Expected {spatial + 1}D or {spatial + 2}D tensor, "
        f"but got{colon} {list(input_shape)}"
    )


def _check_not_empty(function: str, input_shape: Shape, spatial: int) -> None:
    # Average pools over one and two dims let an empty channel dim pass, all of them a first dim.
    sizes = list(input_shape)
    first = len(sizes) - spatial if function in AVERAGES_OVER_PLANES else 1
    if function == "adaptive_avg_pool1d":
        # torch runs it as the two-dimensional pool with a dim of size one.
        function, sizes = "adaptive_avg_pool2d", [*sizes[:-1], 1, sizes[-1]]
    refuse_empty(function, "input", sizes, first)


def refuse_empty(function: str, name: str, sizes: list[int], first: int = 1) -> None:
    """Torch's error where a dim from `first` on is empty."""
    for dim in range(first, len(sizes)):
        if sizes[dim] == 0:
            raise RuntimeError(
                f"{function}(): Expected {name} to have non-zero size for non-batch dimensions, "
                f"but {name} has sizes {sizes} with dimension {dim} being empty"
            )


AVERAGES_OVER_PLANES = ("adaptive_avg_pool1d", "adaptive_avg_pool2d")


def _negative_words(function: str, input_shape: Shape, output: Ints, is_max: bool) -> str:
    full = [1, *output] if len(output) == 1 else list(output)
    if is_max:
        lead = list(input_shape[: len(input_shape) - len(output)])
        first = next(size for size in full if size < 0)
        return f"Trying to create tensor with negative dimension {first}: {lead + full}"
    name = "adaptive_avg_pool3d" if len(output) == 3 else "adaptive_avg_pool2d"
    shown = ", ".join(map(str, full[:2])) + "".join(f",{size}" for size in full[2:])
    return (
        f"{name}: elements of output_size must be greater than or equal to 0 but received "
        f"{{{shown}}}"
    )


def segments(size: int, count: int) -> list[tuple[int, int]]:
    """The start and end of every segment along one dim."""
    return [(o * size // count, -(-(o + 1) * size // count)) for o in range(count)]


def _at(dim: int, start: int, end: int) -> tuple[Any, ...]:
    return (..., slice(start, end), *(slice(None),) * (-dim - 1))


@np.errstate(all="ignore")
def adaptive_avg_pool(input: Array, output: Ints) -> Array:
    """The mean of every segment; float16, bfloat16 in float32. Integers are refused."""
    if not is_floating(input.dtype):
        name = "adaptive_avg_pool3d_cpu" if len(output) == 3 else "adaptive_avg_pool2d"
        raise refuse(name, input.dtype)
    step = even_step(input.shape[-len(output) :], output)
    if step is not None and prod(output) > 1:
        return avg_pool(input, step, step, (0,) * len(step), output)
    result = widen(input)
    if prod(output) == 1:
        return narrow(_plane_mean(result, len(output)), input.dtype)
    for dim, count in zip(range(-1, -len(output) - 1, -1), reversed(output), strict=True):
        result = _mean_along(result, dim, count)
    return narrow(result, input.dtype)


def even_step(spatial: Shape, output: Ints) -> tuple[int, ...] | None:
    """The kernel and stride of the plain pool that does the same, when sizes divide."""
    if 0 in output or any(size % count for size, count in zip(spatial, output, strict=True)):
        return None
    return tuple(size // count for size, count in zip(spatial, output, strict=True))


def _plane_mean(array: Array, rank: int) -> Array:
    lead = array.shape[: array.ndim - rank]
    plane = prod(array.shape[array.ndim - rank :])
    flat = array.reshape(prod(lead), plane)
    # A product with ones sums short rows much faster than a reduction does.
    total = flat @ np.ones(plane, array.dtype) if plane <= SHORT_PLANE else flat.sum(1)
    return (total / np.asarray(plane, array.dtype)).reshape(*lead, *(1,) * rank)


def _mean_along(array: Array, dim: int, count: int) -> Array:
    size = array.shape[dim]
    split = array.ndim + dim
    result = np.empty((*array.shape[:split], count, *array.shape[split + 1 :]), array.dtype)
    for place, (start, end) in enumerate(segments(size, count)):
        part = array[_at(dim, start, end)]
        part.mean(dim, keepdims=True, out=result[_at(dim, place, place + 1)])
    return result


@np.errstate(all="ignore")
def adaptive_avg_pool_backward(grad: Array, spatial: Ints) -> Array:
    """The gradient `(..., *spatial)` of `adaptive_avg_pool`."""
    result = widen(grad)
    for dim, size in zip(range(-len(spatial), 0), spatial, strict=True):
        result = _spread_along(result, dim, size)
    return narrow(result, grad.dtype)


def _spread_along(grad: Array, dim: int, size: int) -> Array:
    count = grad.shape[dim]
    if count and size % count == 0:
        return np.repeat(grad / np.asarray(size // count, grad.dtype), size // count, axis=dim)
    shape = list(grad.shape)
    shape[dim] = size
    total = np.zeros(shape, grad.dtype)
    for place, (start, end) in enumerate(segments(size, count)):
        share = grad[_at(dim, place, place + 1)] / np.asarray(end - start, grad.dtype)
        total[_at(dim, start, end)] += share
    return total


def adaptive_max_pool(input: Array, output: Ints) -> tuple[Array, Array]:
    """The maximum of every segment and its int64 position in the flattened spatial plane.

    The first of equal values counts, the last of several NaN.
    """
    if not is_floating(input.dtype):
        name = "adaptive_max_pool3d_cpu" if len(output) == 3 else "adaptive_max_pool2d"
        raise refuse(name, input.dtype)
    spatial = input.shape[-len(output) :]
    step = even_step(spatial, output)
    if step is not None and prod(output) > 1:
        rank = len(step)
        return max_pool_with_indices(input, step, step, (0,) * rank, (1,) * rank, output)
    values = widen(input)
    indices = np.broadcast_to(np.arange(prod(spatial)).reshape(spatial), input.shape)
    has_nan = bool(np.isnan(values).any())
    for dim, count in zip(range(-1, -len(output) - 1, -1), reversed(output), strict=True):
        values, indices = _max_along(values, indices, dim, count, has_nan)
    return narrow(values, input.dtype), indices


def _max_along(
    values: Array, indices: Array, dim: int, count: int, has_nan: bool
) -> tuple[Array, Array]:
    shape = list(values.shape)
    shape[dim] = count
    best, best_index = np.empty(shape, values.dtype), np.empty(shape, np.int64)
    for place, (start, end) in enumerate(segments(values.shape[dim], count)):
        part = values[_at(dim, start, end)]
        where = part.argmax(dim, keepdims=True)
        if has_nan:
            where = _last_nan(part, where, dim)
        target = _at(dim, place, place + 1)
        best[target] = np.take_along_axis(part, where, dim)
        best_index[target] = np.take_along_axis(indices[_at(dim, start, end)], where, dim)
    return best, best_index


def _last_nan(part: Array, where: Array, dim: int) -> Array:
    nan = np.isnan(part)
    last = part.shape[dim] - 1 - np.flip(nan, dim).argmax(dim, keepdims=True)
    return np.where(nan.any(dim, keepdims=True), last, where)
