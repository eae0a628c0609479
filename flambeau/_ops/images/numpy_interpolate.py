"""Resizing of `(N, C, *spatial)` arrays: nearest, linear, cubic, with and without antialiasing.

Each mode is separable: one sparse matrix per dim, given as `Taps` (for every output position a
few input positions and their weights), is applied along one dim after the other. Coordinates are
computed in float32 for float32 and half inputs, as torch does, because rounding decides which
neighbour is the nearest. `scales` are torch's explicit scale factors or None per dim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flambeau._core.settled import settled
from flambeau._ops.launching.precision import Array, is_floating, narrow, refuse, widen
from flambeau._ops.launching.windows import Ints
from flambeau._ops.products.blas import matmul
from flambeau._runtime.cpu import quietly

Scales = Sequence[float | None]
SIZE_WORDS = {
    1: ("W",),
    2: ("H", "W"),
    3: ("D", "H", "W"),
}
CUBIC = -0.75
# Up to a matrix of this size a dense product beats gathering the few elements that count.
DENSE_ELEMENTS = 1 << 18
# The Catmull-Rom spline, which the antialiasing filter uses as image libraries do.
CUBIC_ANTIALIAS = -0.5
LANCZOS_LOBES = 3


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """`output[o] = sum over t of input[positions[t, o]] * weights[t, o]`.

    `weights` is None when every output copies one input. Each row of positions never falls.
    `counts` says of how many inputs each output is made, where that differs: what comes behind them
    has the weight 0.
    """

    positions: Array
    weights: Array | None
    counts: Array | None = None


def upsample_output_shape(input_shape: Sequence[int], output: Ints) -> tuple[int, ...]:
    """`(N, C, *output)`, or torch's errors for ranks and sizes that do not fit."""
    spatial = len(output)
    if len(input_shape) != spatial + 2:
        raise RuntimeError(
            f"It is expected input_size equals to {spatial + 2}, but got size {len(input_shape)}"
        )
    _check_sizes(input_shape[2:], output)
    if 0 in input_shape[1:]:
        raise RuntimeError(
            f"Non-empty {spatial + 2}D data tensor expected but got a tensor with sizes "
            f"{list(input_shape)}"
        )
    return (*input_shape[:2], *output)


def _check_sizes(spatial: Sequence[int], output: Ints) -> None:
    if min(*spatial, *output) > 0:
        return
    words = [
        ", ".join(
            f"{side}: {size}" for side, size in zip(SIZE_WORDS[len(sizes)], sizes, strict=True)
        )
        for sizes in (spatial, output)
    ]
    joint = "and output" if len(output) == 1 else "output"
    raise RuntimeError(
        "Input and output sizes should be greater than 0, but got input "
        f"({words[0]}) {joint} ({words[1]})"
    )


def scale_of(
    size: int, count: int, align_corners: bool, factor: float | None, real: type
) -> np.floating:
    """Input steps per output step along one dim, in the precision `real`."""
    if align_corners:
        return real(size - 1) / real(count - 1) if count > 1 else real(0)
    if factor is not None and factor > 0:
        return real(1.0 / factor)
    return real(size) / real(count)


def nearest_taps(size: int, count: int, factor: float | None, offset: float) -> Taps:
    """`floor((o + offset) * scale)`; offset 0 is 'nearest', 0.5 'nearest-exact'."""
    scale = scale_of(size, count, False, factor, np.float32)
    places = (np.arange(count, dtype=np.float32) + np.float32(offset)) * scale
    positions = np.minimum(np.floor(places).astype(np.int64), size - 1)
    return Taps(positions[None], None)


def nearest_taps_by_size(size: int, count: int, factor: float | None) -> Taps:
    """'nearest' where torch ignores the scale when the size stays or doubles.

    It does so over two dims, and in the backward over any number of dims.
    """
    if count in (size, 2 * size):
        return Taps((np.arange(count) // (count // size))[None], None)
    return nearest_taps(size, count, factor, 0.0)


def linear_taps(
    size: int, count: int, align_corners: bool, factor: float | None, real: type
) -> Taps:
    """The two neighbours of each source coordinate and their distances."""
    places = np.arange(count)
    if size == count:
        return Taps(places[None], None)
    source = _source(size, count, align_corners, factor, real)
    source = np.maximum(source, real(0))
    low = np.minimum(source.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    right = np.clip(source - low.astype(real), real(0), real(1))
    return Taps(np.stack([low, high]), np.stack([real(1) - right, right]))


def cubic_taps(
    size: int, count: int, align_corners: bool, factor: float | None, real: type
) -> Taps:
    """Keys' cubic convolution over four neighbours, clamped to the border."""
    source = _source(size, count, align_corners, factor, real)
    floor = np.floor(source)
    low = np.minimum(floor.astype(np.int64), size - 1)
    part = np.clip(source - low.astype(real), real(0), real(1))
    positions = np.stack([np.clip(low + shift, 0, size - 1) for shift in (-1, 0, 1, 2)])
    weights = [cubic(np.abs(part - real(shift)), real(CUBIC)) for shift in (-1, 0, 1, 2)]
    return Taps(positions, np.stack(weights))


def _source(size: int, count: int, align_corners: bool, factor: float | None, real: type) -> Array:
    scale = scale_of(size, count, align_corners, factor, real)
    places = np.arange(count).astype(real)
    if align_corners:
        return places * scale
    return (places + real(0.5)) * scale - real(0.5)


def triangle(distance: Array) -> Array:
    """The linear filter `max(0, 1 - |x|)`."""
    return np.maximum(distance.dtype.type(1) - np.abs(distance), 0)


def cubic(distance: Array, a: float) -> Array:
    """Keys' kernel with parameter `a` at distances |x| < 2, zero beyond."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0)).astype(distance.dtype)


def cubic_antialias(distance: Array) -> Array:
    """Keys' kernel with the parameter of image libraries."""
    return cubic(distance, distance.dtype.type(CUBIC_ANTIALIAS))


def lanczos(distance: Array) -> Array:
    """The sinc function under the central lobe of one three times as wide (Lanczos), at |x| < 3."""
    x = distance.astype(np.float64)
    inside = np.sinc(x) * np.sinc(x / LANCZOS_LOBES)
    return np.where(np.abs(x) < LANCZOS_LOBES, inside, 0).astype(distance.dtype)


Filter = Callable[[Array], Array]
# name: filter and how many input elements it spans.
FILTERS: dict[str, tuple[Filter, int]] = {
    "bilinear": (triangle, 2),
    "bicubic": (cubic_antialias, 4),
    "lanczos": (lanczos, 6),
}


def antialias_taps(
    size: int,
    count: int,
    align_corners: bool,
    factor: float | None,
    real: type,
    kernel: Filter,
    span: int,
) -> Taps:
    """A filter that widens with the scale, so that shrinking averages; weights sum to one."""
    scale = scale_of(size, count, align_corners, factor, real)
    half = real(0.5)
    widened = scale >= 1
    support = real(span) * half * (scale if widened else real(1))
    inverse = real(1) / scale if widened else real(1)
    center = scale * (np.arange(count).astype(real) + half)
    first = np.maximum((center - support + half).astype(np.int64), 0)
    last = np.minimum((center + support + half).astype(np.int64), size)
    widest = int((last - first).max())
    positions = first + np.arange(widest)[:, None]
    inside = positions < last
    weights = kernel((positions.astype(real) - center + half) * inverse)
    weights = np.where(inside, weights, real(0))
    total = weights.sum(0)
    weights = np.divide(weights, total, out=weights, where=total != 0)
    return Taps(np.minimum(positions, size - 1), weights, last - first)


@settled
def taps_for(
    mode: str,
    spatial: Sequence[int],
    output: Ints,
    align_corners: bool,
    scales: Scales,
    is_double: bool,
    antialias: bool,
    backward: bool,
) -> list[Taps]:
    """The taps of every spatial dim for one of torch's modes."""
    real = np.float64 if is_double else np.float32
    numbers = list(zip(spatial, output, scales, strict=True))
    if mode == "nearest" and (backward or len(output) == 2):
        return [nearest_taps_by_size(*each) for each in numbers]
    if mode == "nearest":
        return [nearest_taps(size, count, factor, 0.0) for size, count, factor in numbers]
    if mode == "nearest-exact":
        return [nearest_taps(size, count, factor, 0.5) for size, count, factor in numbers]
    if antialias:
        kernel, span = FILTERS[mode]
        return [
            antialias_taps(size, count, align_corners, factor, real, kernel, span)
            for size, count, factor in numbers
        ]
    function = cubic_taps if mode == "bicubic" else linear_taps
    return [function(size, count, align_corners, factor, real) for size, count, factor in numbers]


@quietly
def interpolate(
    input: Array,
    mode: str,
    output: Ints,
    align_corners: bool = False,
    scales: Scales | None = None,
    antialias: bool = False,
) -> Array:
    """Resize input to `(N, C, *output)`; modes as torch's except 'area' (an adaptive pool).

    Floating dtypes; uint8 too for the nearest modes (`interpolate_bytes` has the others).
    """
    scales = scales if scales is not None else (None,) * len(output)
    if not is_floating(input.dtype) and not (
        input.dtype == np.uint8 and mode in ("nearest", "nearest-exact")
    ):
        raise refuse(_refusing_kernel(mode, antialias), input.dtype)
    is_double = input.dtype == np.float64
    all_taps = taps_for(
        mode, input.shape[2:], output, align_corners, scales, is_double, antialias, False
    )
    result = widen(input) if all_taps[0].weights is not None else input
    for dim in _order(result, all_taps):
        result = apply_taps(result, all_taps[dim], dim + 2)
    return narrow(result, input.dtype)


def _refusing_kernel(mode: str, antialias: bool) -> str:
    if antialias:
        return "compute_index_ranges_weights"
    return {
        "linear": "compute_indices_weights_linear",
        "bilinear": "upsample_bilinear2d_channels_last",
        "trilinear": "compute_indices_weights_linear",
        "bicubic": "compute_indices_weights_cubic",
    }.get(mode, "upsample_nearest2d_channels_last")


def _order(array: Array, all_taps: list[Taps]) -> list[int]:
    """The dims to resize, the one that shrinks the array most first."""
    growth = [
        taps.positions.shape[1] / size for taps, size in zip(all_taps, array.shape[2:], strict=True)
    ]
    return sorted(range(len(all_taps)), key=lambda dim: growth[dim])


@lru_cache(32)
def dense(taps: Taps, size: int, dtype: np.dtype) -> Array:
    """The taps of one dim as a matrix `(outputs, size)`."""
    count = taps.positions.shape[1]
    matrix = np.zeros((count, size), dtype)
    weights = np.ones(taps.positions.shape) if taps.weights is None else taps.weights
    np.add.at(matrix, (np.arange(count), taps.positions), weights.astype(dtype))
    return matrix


def _suits_product(array: Array, taps: Taps, size: int) -> bool:
    """Small matrices multiply faster than they gather; a zero times infinity must not appear."""
    if taps.positions.shape[1] * size > DENSE_ELEMENTS:
        return False
    return math.isfinite(np.add.reduce(array, None))


def _multiply_along(matrix: Array, array: Array, dim: int) -> Array:
    if dim == array.ndim - 1:
        return matmul(array, matrix.T)
    lead, tail = array.shape[:dim], array.shape[dim + 1 :]
    product = matmul(matrix, array.reshape(*lead, array.shape[dim], -1))
    return product.reshape(*lead, len(matrix), *tail)


def apply_taps(array: Array, taps: Taps, dim: int) -> Array:
    """Apply one sparse matrix along one dim."""
    if taps.weights is None:
        return array.take(taps.positions[0], dim)
    if _suits_product(array, taps, array.shape[dim]):
        return _multiply_along(dense(taps, array.shape[dim], array.dtype), array, dim)
    shape = [1] * array.ndim
    shape[dim] = -1
    total = None
    for positions, weights in zip(taps.positions, taps.weights, strict=True):
        term = np.take(array, positions, axis=dim)
        term *= weights.astype(array.dtype).reshape(shape)
        total = term if total is None else np.add(total, term, out=total)
    return total


@quietly
def interpolate_backward(
    grad: Array,
    mode: str,
    spatial: Ints,
    align_corners: bool = False,
    scales: Scales | None = None,
    antialias: bool = False,
) -> Array:
    """The gradient `(N, C, *spatial)` of `interpolate` with respect to its input."""
    output = grad.shape[2:]
    scales = scales if scales is not None else (None,) * len(output)
    is_double = grad.dtype == np.float64
    all_taps = taps_for(mode, spatial, output, align_corners, scales, is_double, antialias, True)
    result = widen(grad)
    for dim, taps in enumerate(all_taps):
        result = apply_transposed(result, taps, dim + 2, spatial[dim])
    return narrow(result, grad.dtype)


def apply_transposed(grad: Array, taps: Taps, dim: int, size: int) -> Array:
    """Apply the transposed sparse matrix along one dim, which then has `size` elements."""
    if _suits_product(grad, taps, size):
        return _multiply_along(dense(taps, size, grad.dtype).T, grad, dim)
    shape = list(grad.shape)
    shape[dim] = size
    total = np.zeros(shape, grad.dtype)
    broadcast = [1] * grad.ndim
    broadcast[dim] = -1
    before = (slice(None),) * dim
    for number, positions in enumerate(taps.positions):
        term = grad
        if taps.weights is not None:
            weights = taps.weights[number].astype(grad.dtype)
            term = grad * weights.reshape(broadcast)
        # Positions never fall, so equal ones are neighbours: sum each run, then add once.
        first = np.flatnonzero(np.diff(positions, prepend=-1))
        if len(first) < len(positions):
            term = np.add.reduceat(term, first, axis=dim)
        total[(*before, positions[first])] += term
    return total
