"""Fractional max pools: windows of one size at positions drawn from given random samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from flambeau._ops.launching.precision import Array, is_floating, narrow, refuse, widen
from flambeau._ops.launching.windows import Ints

SIDE_WORDS = {2: ("height", "width"), 3: ("time", "height", "width")}
CHECKED = {2: (0, 1), 3: (0, 2, 1)}
"""The order in which torch looks at the sides."""
FUNCTIONS = {2: "fractional_max_pool2d()", 3: "fractional_max_pool3d_out()"}


def fractional_output_shape(
    input_shape: Sequence[int], kernel: Ints, output: Ints
) -> tuple[int, ...]:
    """`(..., *output)`, or torch's errors for ranks and sizes that do not fit."""
    spatial = len(kernel)
    function = FUNCTIONS[spatial]
    rank = len(input_shape)
    if rank not in (spatial + 1, spatial + 2):
        raise RuntimeError(
            f"{function}: Expected {spatial + 1}D or {spatial + 2}D tensor, "
            f"but got: {list(input_shape)}"
        )
    for dim in range(rank - spatial - 1, rank):
        if input_shape[dim] == 0:
            raise RuntimeError(
                f"{function}: Expected input to have non-zero size for non-batch dimensions, "
                f"but got{list(input_shape)} with dimension {dim} being empty."
            )
    sides = list(zip(SIDE_WORDS[spatial], input_shape[-spatial:], kernel, output, strict=True))
    for name, size, taps, count in [sides[place] for place in CHECKED[spatial]]:
        if count + taps - 1 > size - (spatial == 3):  # volumes leave one place free
            raise RuntimeError(
                f"{function}: pool {name} {taps} too large relative to input {name} {size}"
            )
    return (*input_shape[:-spatial], *output)


def window_starts(samples: Array, size: int, count: int, kernel: int) -> Array:
    """Where the windows along one dim start: `(...) -> (..., count)`.

    Start `i` is trunc((i + u) * alpha) - trunc(u * alpha) with alpha = (size - kernel) /
    (count - 1); the last window ends with the input (Graham, Fractional Max-Pooling, 2014).
    """
    if count == 1:
        return np.full((*samples.shape, 1), size - kernel)
    real = samples.dtype.type
    alpha = real(size - kernel) / real(count - 1)
    places = np.arange(count).astype(samples.dtype)
    starts = np.trunc((places + samples[..., None]) * alpha) - np.trunc(samples * alpha)[..., None]
    starts = starts.astype(np.int64)
    starts[..., -1] = size - kernel
    return starts


def fractional_max_pool(
    input: Array, kernel: Ints, output: Ints, samples: Array
) -> tuple[Array, Array]:
    """Maxima `(N, C, *output)` and their int64 flat positions; samples are `(N, C, spatial)`.

    The samples' last dim is (width, height) over two dims, (time, height, width) over three.
    """
    if not is_floating(input.dtype):
        raise refuse(f"fractional_max_pool{len(kernel)}d_out_frame", input.dtype)
    values = widen(input)
    spatial = len(kernel)
    if 0 in output:
        shape = (*input.shape[:2], *output)
        return np.empty(shape, input.dtype), np.empty(shape, np.int64)
    places = plane_starts(input.shape, kernel, output, samples)
    images = np.arange(input.shape[0]).reshape(-1, *(1,) * (1 + spatial))
    channels = np.arange(input.shape[1]).reshape(1, -1, *(1,) * spatial)
    best = np.full((*input.shape[:2], *output), -np.inf, values.dtype)
    best_index = _first_places(places, input.shape[2:])
    best_index = np.array(np.broadcast_to(best_index, best.shape))
    for number, tap in enumerate(product(*map(range, kernel))):
        where = [start + offset for start, offset in zip(places, tap, strict=True)]
        candidate = values[(images, channels, *where)]
        flat = np.ravel_multi_index(np.broadcast_arrays(*where), input.shape[2:])
        better = (candidate > best) | np.isnan(candidate)
        if number == 0:
            better[...] = True
        np.copyto(best, candidate, where=better)
        np.copyto(best_index, flat, where=better)
    return narrow(best, input.dtype), best_index


def _first_places(places: list[Array], sizes: Ints) -> Array:
    """The flat position of each window's start; beyond the plane for empty windows."""
    found = places[0]
    for size, place in zip(sizes[1:], places[1:], strict=True):
        found = found * size + place
    return found


def plane_starts(
    input_shape: Sequence[int], kernel: Ints, output: Ints, samples: Array
) -> list[Array]:
    """Per spatial dim the starts, shaped to broadcast to `(N, C, *output)`."""
    spatial = len(kernel)
    numbers = zip(input_shape[2:], output, kernel, strict=True)
    found = []
    for dim, (size, count, taps) in enumerate(numbers):
        which = spatial - 1 - dim if spatial == 2 else dim
        starts = window_starts(samples[..., which], size, count, taps)
        shape = [1] * spatial
        shape[dim] = count
        found.append(starts.reshape(*starts.shape[:2], *shape))
    return found
