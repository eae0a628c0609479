"""`grid_sample` over two or three spatial dims and `affine_grid`, with their gradients.

Input is `(N, C, *spatial)` and grid `(N, *output, spatial rank)` with coordinates from -1 to 1,
the last spatial dim's first. Half types are computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from flambeau._ops.factories.ranges import spaced_in
from flambeau._ops.launching.precision import Array, is_floating, narrow, refuse, widen
from flambeau._ops.launching.windows import Ints
from flambeau._ops.table.dims import wrap_dim

Shape = Sequence[int]
MODES = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")
CUBIC = -0.75
PLANE_DIMS = 2


def grid_sample_output_shape(input_shape: Shape, grid_shape: Shape, mode: str,
                             wanted: int = 0) -> tuple[int, ...]:  # fmt: skip
    """`(N, C, *output)`, or torch's errors for shapes that do not fit.

    `wanted`: how many spatial dims there have to be; 0: two or three.
    """
    spatial = len(input_shape) - 2
    shapes = f"but got input with sizes {list(input_shape)} and grid with sizes {list(grid_shape)}"
    if input_shape[0] != grid_shape[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, {shapes}"
        )
    if grid_shape[-1] != spatial:
        # torch looks at the ranks only after this, so a grid of another rank can pass here.
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {spatial} in last dimension, "
            f"but got grid with sizes {list(grid_shape)}"
        )
    for dim in range(2, len(input_shape)):
        if input_shape[dim] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {list(input_shape)} with dimension {dim} being empty"
            )
    expected = (wanted,) if wanted else (2, 3)
    if spatial not in expected or len(grid_shape) != len(input_shape):
        ranks = f"{(wanted or (2 if spatial == 2 else 3)) + 2}D"
        raise RuntimeError(
            f"grid_sampler(): expected {ranks} input and grid with same number of dimensions, "
            f"{shapes}"
        )
    if spatial == 3 and mode == "bicubic":
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return (*input_shape[:2], *grid_shape[1:-1])


@dataclass(frozen=True, slots=True)
class Sampler:
    """The options of one call; `spatial` is the input's."""

    mode: str
    padding_mode: str
    align_corners: bool
    spatial: tuple[int, ...]

    def unnormalize(self, coordinate: Array, size: int) -> tuple[Array, float]:
        """Map -1 … 1 to element positions; returns them and their constant derivative."""
        moved = coordinate + 1
        if self.align_corners:
            return moved * coordinate.dtype.type((size - 1) / 2), (size - 1) / 2
        # Of a grid that meets the pixels rounding decides between which of them a position lies:
        # in planes it is done once, as by one instruction, in volumes after each step.
        exact = coordinate.dtype.type
        if len(self.spatial) == PLANE_DIMS:
            exact = np.float64 if exact is np.float32 else np.longdouble
        position = moved.astype(exact) * exact(size / 2) - exact(0.5)
        return position.astype(coordinate.dtype), size / 2

    def fold_back(self, position: Array, size: int) -> tuple[Array, Array | float]:
        """Apply the padding mode to positions; returns them and their derivative."""
        if self.padding_mode == "zeros":
            return position, 1.0
        if self.padding_mode == "border":
            return clip_positions(position, size)
        low, high = (0, 2 * (size - 1)) if self.align_corners else (-1, 2 * size - 1)
        reflected, sign = reflect_positions(position, low, high)
        clipped, inside = clip_positions(reflected, size)
        return clipped, sign * inside


def clip_positions(position: Array, size: int) -> tuple[Array, Array]:
    """Clamp to 0 … size - 1; the derivative is 0 on and beyond the borders."""
    inside = (position > 0) & (position < size - 1)
    # NaN goes to the first element, as in torch's vectorised kernels.
    clean = np.where(np.isnan(position), 0, position)
    return np.clip(clean, 0, size - 1).astype(position.dtype), inside.astype(position.dtype)


def reflect_positions(position: Array, twice_low: int, twice_high: int) -> tuple[Array, Array]:
    """Mirror at both borders until inside; borders are given doubled to stay integers."""
    if twice_low == twice_high:
        return np.zeros_like(position), np.zeros_like(position)
    real = position.dtype.type
    low, span = real(twice_low / 2), real((twice_high - twice_low) / 2)
    shifted = position - low
    sign = np.where(shifted < 0, real(-1), real(1))
    distance = np.abs(shifted)
    extra = np.fmod(distance, span)
    flips = np.floor(distance / span)
    even = np.fmod(flips, 2) == 0
    reflected = np.where(even, extra + low, span - extra + low)
    return reflected, np.where(even, sign, -sign)


def positions_of(grid: Array, sampler: Sampler, fold: bool) -> tuple[list[Array], list[Array]]:
    """Per spatial dim, first dim first, the element positions and their derivatives."""
    positions, slopes = [], []
    for dim, size in enumerate(sampler.spatial):
        coordinate = grid[..., len(sampler.spatial) - 1 - dim]
        position, slope = sampler.unnormalize(coordinate, size)
        derivative: Array = np.full(position.shape, slope, position.dtype)
        if fold:
            position, change = sampler.fold_back(position, size)
            derivative = derivative * change
        positions.append(position)
        slopes.append(derivative)
    return positions, slopes


@dataclass(frozen=True, slots=True)
class Corner:
    """One input element per output element: flat index, whether it exists, weight, d weight."""

    index: Array
    inside: Array
    weight: Array
    slopes: list[Array]


def corners_of(grid: Array, sampler: Sampler) -> list[Corner]:
    """The elements around every position; the last dim's shift changes fastest."""
    if sampler.mode == "bicubic":
        return _cubic_corners(grid, sampler)
    positions, slopes = positions_of(grid, sampler, fold=True)
    if sampler.mode == "nearest":
        places = [np.rint(position) for position in positions]
        ones = np.ones(positions[0].shape, grid.dtype)
        return [_corner(places, sampler, ones, [])]
    lows = [np.floor(position) for position in positions]
    parts = [position - low for position, low in zip(positions, lows, strict=True)]
    corners = []
    for shifts in product((0, 1), repeat=len(positions)):
        factors = [part if shift else 1 - part for part, shift in zip(parts, shifts, strict=True)]
        signs = [slope if shift else -slope for slope, shift in zip(slopes, shifts, strict=True)]
        places = [low + shift for low, shift in zip(lows, shifts, strict=True)]
        corners.append(_corner(places, sampler, *_weight(factors, signs)))
    return corners


def _weight(factors: list[Array], slopes: list[Array]) -> tuple[Array, list[Array]]:
    """The product of the factors, and its derivative for each of them."""
    changes = [slope * prod(factors[:dim] + factors[dim + 1 :]) for dim, slope in enumerate(slopes)]
    return prod(factors), changes


def _corner(places: list[Array], sampler: Sampler, weight: Array, slopes: list[Array]) -> Corner:
    inside = np.ones(places[0].shape, bool)
    index = np.zeros(places[0].shape, np.int64)
    for place, size in zip(places, sampler.spatial, strict=True):
        valid = (place >= 0) & (place < size)
        inside &= valid
        index = index * size + np.where(valid, place, 0).astype(np.int64)
    return Corner(index, inside, weight, slopes)


def _cubic_corners(grid: Array, sampler: Sampler) -> list[Corner]:
    positions, slopes = positions_of(grid, sampler, fold=False)
    lows = [np.floor(position) for position in positions]
    tables = [_cubic_weights(position - low) for position, low in zip(positions, lows, strict=True)]
    corners = []
    for shifts in product(range(4), repeat=len(positions)):
        factors = [table[0][shift] for table, shift in zip(tables, shifts, strict=True)]
        changes = [
            table[1][shift] * slope
            for table, shift, slope in zip(tables, shifts, slopes, strict=True)
        ]
        places = []
        for low, shift, size in zip(lows, shifts, sampler.spatial, strict=True):
            folded, _ = sampler.fold_back(low + (shift - 1), size)
            places.append(folded if sampler.padding_mode == "zeros" else np.rint(folded))
        others = [change * prod(factors[:d] + factors[d + 1 :]) for d, change in enumerate(changes)]
        corners.append(_corner(places, sampler, prod(factors), others))
    return corners


def _cubic_weights(part: Array) -> tuple[list[Array], list[Array]]:
    """Keys' weights of the four neighbours and their derivatives with respect to `part`."""
    weights, slopes = [], []
    a = part.dtype.type(CUBIC)
    for shift in (-1, 0, 1, 2):
        signed = part - shift
        x, sign = np.abs(signed), np.sign(signed)
        if shift in (0, 1):
            weights.append(((a + 2) * x - (a + 3)) * x * x + 1)
            slopes.append((3 * (a + 2) * x - 2 * (a + 3)) * x * sign)
            continue
        weights.append(((a * x - 5 * a) * x + 8 * a) * x - 4 * a)
        slopes.append(((3 * a * x - 10 * a) * x + 8 * a) * sign)
    return weights, slopes


def _check_dtype(dtype: np.dtype, spatial: int) -> None:
    if not is_floating(dtype):
        name = "grid_sampler3d_cpu" if spatial == 3 else "grid_sampler_2d_cpu_kernel_impl"
        raise refuse(name, dtype)


@np.errstate(all="ignore")
def grid_sample(
    input: Array,
    grid: Array,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Array:
    """Read input at the grid's positions: `(N, C, *output)`."""
    _check_dtype(input.dtype, input.ndim - 2)
    sampler = Sampler(mode, padding_mode, align_corners, input.shape[2:])
    flat = widen(input).reshape(*input.shape[:2], -1)
    total = np.zeros((*input.shape[:2], prod(grid.shape[1:-1])), flat.dtype)
    for corner in corners_of(widen(grid), sampler):
        total += _read(flat, corner) * corner.weight.reshape(len(grid), 1, -1)
    return narrow(total.reshape(*input.shape[:2], *grid.shape[1:-1]), input.dtype)


def _read(flat: Array, corner: Corner) -> Array:
    """The corner's elements of `(N, C, plane)`, zero where they lie outside."""
    index = corner.index.reshape(len(flat), 1, -1)
    inside = corner.inside.reshape(index.shape)
    return np.where(inside, np.take_along_axis(flat, index, 2), 0)


@np.errstate(all="ignore")
def grid_sample_backward(
    grad: Array,
    input: Array,
    grid: Array,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> tuple[Array, Array]:
    """The gradients of `grid_sample` with respect to input and grid."""
    sampler = Sampler(mode, padding_mode, align_corners, input.shape[2:])
    flat = widen(input).reshape(*input.shape[:2], -1)
    grads = widen(grad).reshape(*grad.shape[:2], -1)
    total = np.zeros(flat.shape, flat.dtype)
    grid_total = np.zeros(grid.shape, flat.dtype)
    for corner in corners_of(widen(grid), sampler):
        total += _spread(grads, corner, flat.shape[2])
        if not corner.slopes:
            continue
        pull = (_read(flat, corner) * grads).sum(1).reshape(grid.shape[:-1])
        for dim, slope in enumerate(corner.slopes):
            grid_total[..., len(corner.slopes) - 1 - dim] += pull * slope
    return (
        narrow(total.reshape(input.shape), input.dtype),
        narrow(grid_total, grid.dtype),
    )


def _spread(grads: Array, corner: Corner, plane: int) -> Array:
    """Add every output's grad to the input element that it read: `(N, C, plane)`."""
    images, channels = grads.shape[:2]
    weight = np.where(corner.inside, corner.weight, 0).reshape(images, 1, -1)
    rows = np.arange(images * channels).reshape(images, channels, 1) * plane
    index = corner.index.reshape(images, 1, -1) + rows
    total = np.bincount(index.ravel(), (grads * weight).ravel(), images * channels * plane)
    return total.astype(grads.dtype).reshape(images, channels, plane)


def base_grid(output: Ints, align_corners: bool, dtype: np.dtype) -> Array:
    """Homogeneous coordinates `(*output, rank + 1)`, the last dim's coordinate first.

    They are rounded as `linspace` and two more operators in that type round them.
    """
    rank = len(output)
    grid = np.ones((*output, rank + 1), dtype)
    for dim, size in enumerate(output):
        steps = spaced_in(-1, 1, size, dtype) if size > 1 else np.zeros(size, dtype)
        if not align_corners:
            steps = steps * dtype.type(size - 1) / dtype.type(size)
        shape = [1] * rank
        shape[dim] = size
        grid[..., rank - 1 - dim] = steps.reshape(shape)
    return grid


def _wide_base(output: Ints, align_corners: bool, dtype: np.dtype) -> Array:
    """`base_grid` as rows of a matrix, in the type that products of `dtype` are computed in."""
    return widen(base_grid(output, align_corners, dtype).reshape(-1, len(output) + 1))


@np.errstate(all="ignore")
def affine_grid(theta: Array, size: Ints, align_corners: bool = False) -> Array:
    """The grid `(N, *spatial, rank)` of affine maps theta `(N, rank, rank + 1)`."""
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    wrap_dim(2, theta.ndim)
    if theta.ndim > 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    rank = len(size) - 2
    expected = [size[0], rank + 1]
    if [theta.shape[0], theta.shape[2]] != expected:
        got = [theta.shape[0], theta.shape[2]]
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {expected} "
            f"but got: {got}."
        )
    wide = widen(theta)
    base = _wide_base(size[2:], align_corners, theta.dtype)
    result = base @ wide.swapaxes(1, 2)
    if theta.shape[1] != rank:
        raise RuntimeError(
            f"shape '{[size[0], *size[2:], rank]}' is invalid for input of size {result.size}"
        )
    return narrow(result.reshape(size[0], *size[2:], rank), theta.dtype)


@np.errstate(all="ignore")
def affine_grid_backward(grad: Array, size: Ints, align_corners: bool = False) -> Array:
    """The gradient `(N, rank, rank + 1)` of `affine_grid` with respect to theta."""
    rank = len(size) - 2
    wide = widen(grad).reshape(size[0], -1, rank)
    base = _wide_base(size[2:], align_corners, grad.dtype)
    return narrow(wide.swapaxes(1, 2) @ base, grad.dtype)
