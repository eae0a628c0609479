"""Second derivatives of `grid_sample`, by operators that are recorded for the third.

A sample is a sum over the elements around its position, each times a weight: a product with one
factor for each dim. A factor is a polynomial of the position's fraction in that dim, and the
fraction is linear in the grid's coordinate. So what the gradients are linear in, the change of a
weight with the grid, is made of the factors' derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from flambeau._ops.images import numpy_grid as kernels
from flambeau._ops.launching.precision import widen
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import wrap


class Dim:
    """One dim: the factors of its neighbours, and their first and second derivatives."""

    def __init__(self, fraction: Any, slope: Any, change: Any, mode: str) -> None:
        self.slope = slope  # of the fraction by the grid's coordinate
        self.change = slope * change  # of the fraction as the grid changes
        self.factors, self.first, self.second = (_cubic if mode == "bicubic" else _linear)(fraction)


def _linear(fraction: Any) -> tuple[list[Any], ...]:
    return [1 - fraction, fraction], [-1, 1], [0, 0]


def _cubic(fraction: Any) -> tuple[list[Any], ...]:
    """Keys' polynomials."""
    a = kernels.CUBIC
    factors, first, second = [], [], []
    for shift in (-1, 0, 1, 2):
        side = -1 if shift > 0 else 1
        x = (fraction - shift) * side
        if shift in (0, 1):
            factors.append(((a + 2) * x - (a + 3)) * x * x + 1)
            first.append((3 * (a + 2) * x - 2 * (a + 3)) * x * side)
            second.append(6 * (a + 2) * x - 2 * (a + 3))
        else:
            factors.append(((a * x - 5 * a) * x + 8 * a) * x - 4 * a)
            first.append(((3 * a * x - 10 * a) * x + 8 * a) * side)
            second.append(6 * a * x - 10 * a)
    return factors, first, second


def _dims(grid: Any, of_grid: Any, sampler: kernels.Sampler) -> list[Dim]:
    positions, slopes = kernels.positions_of(widen(grid._data), sampler, sampler.mode != "bicubic")
    found = []
    for dim, (position, slope) in enumerate(zip(positions, slopes, strict=True)):
        place = len(positions) - 1 - dim
        coordinate = ops.select(grid, -1, place)
        steady = wrap(_typed(position - np.floor(position), grid))
        turned = wrap(_typed(slope, grid))
        fraction = steady + turned * (coordinate - coordinate.detach())
        found.append(Dim(fraction, turned, ops.select(of_grid, -1, place), sampler.mode))
    return found


def _typed(array: np.ndarray, like: Any) -> np.ndarray:
    return array.astype(like._data.dtype, copy=False)


def _change(dims: list[Dim], shifts: Sequence[int], kept: int | None = None) -> Any:
    """How a weight changes with the grid; with `kept`, the derivative of that by one fraction."""
    total: Any = 0
    for moved, dim in enumerate(dims):
        factors = []
        for other, shift in enumerate(shifts):
            order = (other == moved) + (other == kept)
            source = dims[other]
            factors.append((source.factors, source.first, source.second)[order][shift])
        total = total + dim.change * prod(factors)
    return total


class Neighbour:
    """One input element for each position, as indices into flattened planes."""

    def __init__(self, corner: kernels.Corner, channels: int) -> None:
        images, places = len(corner.index), prod(corner.index.shape[1:])
        index = corner.index.reshape(images, 1, places)
        self.outside = wrap(np.logical_not(corner.inside).reshape(images, 1, places))
        self.index = wrap(np.repeat(index, channels, 1))

    def read(self, planes: Any) -> Any:
        """The elements; 0 where there are none."""
        return ops.masked_fill(ops.gather(planes, 2, self.index), self.outside, 0)

    def add(self, total: Any, values: Any) -> Any:
        """The transposed map of `read`."""
        return ops.scatter_add(total, 2, self.index, ops.masked_fill(values, self.outside, 0))


def curves(grad: Any, input: Any, grid: Any, of_grid: Any, options: tuple[int, int, bool]) -> Any:
    """What `of_grid`, a gradient of the grid's gradient, gives for grad, input and grid."""
    mode, padding = kernels.MODES[options[0]], kernels.PADDING_MODES[options[1]]
    sampler = kernels.Sampler(mode, padding, options[2], input._data.shape[2:])
    dims = _dims(grid, of_grid, sampler)
    planes, grads = ops.flatten(input, 2), ops.flatten(grad, 2)
    of_grad, of_planes = ops.zeros_like(grads), ops.zeros_like(planes)
    of_dims: list[Any] = [0] * len(dims)
    corners = kernels.corners_of(widen(grid._data), sampler)
    neighbours = product(range(len(dims[0].factors)), repeat=len(dims))
    for shifts, corner in zip(neighbours, corners, strict=True):
        neighbour = Neighbour(corner, input._data.shape[1])
        elements = neighbour.read(planes)
        change = ops.flatten(_change(dims, shifts), 1).unsqueeze(1)
        of_grad = of_grad + elements * change
        of_planes = neighbour.add(of_planes, grads * change)
        pull = ops.reshape((elements * grads).sum(1), grid._data.shape[:-1])
        for place, dim in enumerate(dims):
            of_dims[place] = of_dims[place] + pull * dim.slope * _change(dims, shifts, place)
    return (ops.reshape(of_grad, grad._data.shape), ops.reshape(of_planes, input._data.shape),
            ops.stack(of_dims[::-1], -1))  # fmt: skip
