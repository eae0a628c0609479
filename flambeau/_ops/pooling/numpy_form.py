"""Max pools and average pools over sliding windows, on `(..., *spatial)` arrays.

Both work dim by dim: a window over several dims is a window over the last one, then over the one
before, and so on, so that a `k x k` window costs `2k` passes over strided views, not `k * k`.
`output` is the spatial shape of the result, from `pool_check`. Half types are computed in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from flambeau._ops.images.planes import scatter_planes
from flambeau._ops.launching.precision import Array, is_floating, narrow, widen
from flambeau._ops.launching.windows import Ints, extent
from flambeau._runtime.cpu import quietly

Index = tuple[Any, ...]
INT64 = np.dtype(np.int64)
# benchmarks/pool_kernels.py: blocks of planes keep values, masks and indices in the cache.
BLOCK_ELEMENTS = 1 << 16
# benchmarks/pool_kernels.py: with more taps, finding positions beats comparing each tap.
MOST_TAPS = 16


@dataclass(frozen=True)
class Along:
    """The windows along one dim (a negative number) of size `size`."""

    dim: int
    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    count: int

    @cached_property
    def after(self) -> int:
        """How many elements the last window reaches beyond the input."""
        span = (self.count - 1) * self.stride + extent(self.kernel, self.dilation)
        return max(0, span - self.padding - self.size)

    @cached_property
    def is_padded(self) -> bool:
        """True when some window leaves the input."""
        return self.padding > 0 or self.after > 0

    def at(self, place: slice) -> Index:
        """The index that takes `place` along the dim."""
        return (..., place, *(slice(None),) * (-self.dim - 1))

    @cached_property
    def taps(self) -> list[Index]:
        """For every kernel position the padded input's elements that it touches."""
        starts = range(0, self.kernel * self.dilation, self.dilation)
        last = (self.count - 1) * self.stride + 1
        return [self.at(slice(low, low + last, self.stride)) for low in starts]

    def pad(self, array: Array, value: float) -> Array:
        """The array with `value` around it as far as the windows reach."""
        if not self.is_padded:
            return array
        shape = list(array.shape)
        shape[self.dim] += self.padding + self.after
        padded = np.full(shape, value, array.dtype)
        padded[self.at(slice(self.padding, self.padding + self.size))] = array
        return padded

    def inside(self, places: Array) -> Array:
        """Of windows that start in the padding: their first tap is some dilations later."""
        return np.where(places < 0, places % self.dilation, places)

    @cached_property
    def firsts(self) -> Array:
        """Where each window has its first tap behind the padding, maybe behind the input."""
        return self.inside(np.arange(self.count) * self.stride - self.padding)

    def pad_indices(self, indices: Array) -> Array:
        """The indices with what first taps in the padding stand for around them."""
        if not self.is_padded:
            return indices
        places = self.inside(np.arange(-self.padding, self.size + self.after))
        return np.take(indices, np.minimum(places, self.size - 1), axis=self.dim)


@lru_cache(512)
def _dims(
    spatial: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints
) -> list[Along]:
    """The spatial dims, the last one first."""
    dims = range(-len(kernel), 0)
    numbers = zip(dims, spatial, kernel, stride, padding, dilation, output, strict=True)
    return [Along(*each) for each in numbers][::-1]


@cache
def lowest(dtype: np.dtype) -> float | int:
    """What padding holds in a max pool: minus infinity, or the smallest integer."""
    return -np.inf if is_floating(dtype) else int(np.iinfo(dtype).min)


@quietly
def max_pool(
    input: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints
) -> Array:
    """The largest value of every window; NaN wins. Padding counts as minus infinity."""
    result = widen(input)
    spatial = input.shape[-len(kernel) :]
    for along in _dims(spatial, kernel, stride, padding, dilation, output):
        result = along.pad(result, lowest(result.dtype))
        result = _reduce_taps(np.maximum, result, along)
    return narrow(result, input.dtype)


def _reduce_taps(function: np.ufunc, array: Array, along: Along) -> Array:
    taps = along.taps
    if len(taps) == 1:
        return array[taps[0]].copy()
    total = function(array[taps[0]], array[taps[1]])
    for tap in taps[2:]:
        function(total, array[tap], out=total)
    return total


def max_pool_with_indices(
    input: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints
) -> tuple[Array, Array]:
    """`max_pool` and the int64 position of each maximum in its flattened spatial plane.

    The first of equal values counts, the last of several NaN.
    """
    spatial = input.shape[-len(kernel) :]
    dims = _dims(spatial, kernel, stride, padding, dilation, output)
    planes = input.reshape(prod(input.shape[: -len(kernel)]), *spatial)
    values = np.empty((len(planes), *output), input.dtype)
    places = np.empty(values.shape, np.int64)
    indices = np.arange(prod(spatial), dtype=np.int32 if prod(spatial) < 2**31 else np.int64)
    step = max(1, BLOCK_ELEMENTS // max(1, prod(spatial)))
    for start in range(0, len(planes), step):
        block = slice(start, start + step)
        values[block], places[block] = _max_of_planes(
            widen(planes[block]), indices.reshape(1, *spatial), dims
        )
    if any((along.firsts >= along.size).any() for along in dims):
        _place_outside(places, dims[::-1])
    shape = (*input.shape[: -len(kernel)], *output)
    return values.reshape(shape), places.reshape(shape)


def _place_outside(places: Array, dims: list[Along]) -> None:
    """Windows that hold no element of the plane: where the first tap would be if it went on."""
    place, outside = np.int64(0), np.False_
    for along in dims:
        place = np.add.outer(place * along.size, along.firsts)
        outside = np.logical_or.outer(outside, along.firsts >= along.size)
    np.copyto(places, place, where=outside)


def _max_of_planes(values: Array, indices: Array, dims: list[Along]) -> tuple[Array, Array]:
    has_nan = is_floating(values.dtype) and bool(np.isnan(values.max()))
    for along in dims:
        values = along.pad(values, lowest(values.dtype))
        indices = along.pad_indices(indices)
        values, indices = _max_along(values, indices, along.taps, has_nan)
    return values, indices


def _max_along(
    values: Array, indices: Array, taps: list[Index], has_nan: bool
) -> tuple[Array, Array]:
    best = values[taps[0]].copy()
    best_index = np.broadcast_to(indices[taps[0]], best.shape).copy()
    for tap in taps[1:]:
        # Copied to be contiguous, and the index moved by arithmetic: a masked copy and strided
        # comparisons take three times as long (benchmarks/pool_kernels.py).
        candidate = np.ascontiguousarray(values[tap])
        better = candidate > best
        if has_nan:
            better |= np.isnan(candidate)
        step = indices[tap] - best_index
        step *= better.astype(step.dtype)
        best_index += step
        np.maximum(best, candidate, out=best)
    return best, best_index


def max_pool_backward(
    grad: Array, indices: Array, spatial: Ints, kernel: Ints, stride: Ints, dilation: Ints
) -> Array:
    """The gradient `(..., *spatial)` of `max_pool_with_indices` from its indices."""
    return scatter_planes(grad, indices, spatial, windows_apart(kernel, stride, dilation))


def windows_apart(kernel: Ints, stride: Ints, dilation: Ints) -> bool:
    """True when no two windows share an element."""
    spans = [extent(taps, gap) for taps, gap in zip(kernel, dilation, strict=True)]
    return all(step >= span for step, span in zip(stride, spans, strict=True))


def suits_taps(kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> bool:
    """Whether `max_pool_backward_by_taps` takes less time than finding positions."""
    if any(padding) or prod(kernel) > MOST_TAPS:
        return False
    return windows_apart(kernel, stride, dilation)


def max_pool_backward_by_taps(
    grad: Array, input: Array, result: Array, kernel: Ints, stride: Ints, dilation: Ints
) -> Array:
    """The gradient of an unpadded `max_pool` from its input and result, for windows apart.

    Each grad goes to the first tap of its window that equals the maximum.
    """
    spatial, output = input.shape[-len(kernel) :], result.shape[-len(kernel) :]
    none = (0,) * len(kernel)
    if result.size and is_floating(result.dtype) and np.isnan(widen(result).max()):
        _, indices = max_pool_with_indices(input, kernel, stride, none, dilation, output)
        return max_pool_backward(grad, indices, spatial, kernel, stride, dilation)
    dims = _dims(spatial, kernel, stride, none, dilation, output)
    sizes = [along.size + along.after for along in dims[::-1]]
    total = np.zeros((*input.shape[: -len(kernel)], *sizes), grad.dtype)
    for along in dims:
        input = along.pad(input, lowest(input.dtype))
    _give_to_taps(total, input, np.ascontiguousarray(grad), result, dims)
    if sizes == list(spatial):
        return total
    return np.ascontiguousarray(total[(..., *(slice(size) for size in spatial))])


def _give_to_taps(
    total: Array, values: Array, grad: Array, result: Array, dims: list[Along]
) -> None:
    left: Array | None = None  # windows whose maximum is still to be found
    bits = np.dtype(f"i{grad.itemsize}")
    grad_bits, total_bits = grad.view(bits), total.view(bits)
    taps = [
        (..., *(index[1] for index in indices))
        for indices in product(*(along.taps for along in dims[::-1]))
    ]
    for tap in taps[:-1]:
        found = values[tap] == result
        if left is None:
            left = ~found
        else:
            found &= left
            left ^= found
        # Masked as integers: infinity times 0 would be NaN, and np.where takes twice as long.
        np.multiply(found.astype(bits), grad_bits, out=total_bits[tap])
    total_bits[taps[-1]] = grad_bits if left is None else left.astype(bits) * grad_bits


@quietly
def avg_pool(
    input: Array,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    output: Ints,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of every window; integers divide towards zero."""
    result = widen(input)
    spatial = input.shape[-len(kernel) :]
    dims = _dims(spatial, kernel, stride, padding, (1,) * len(kernel), output)
    for along in dims:
        result = _reduce_taps(np.add, along.pad(result, 0), along)
    numbers = (spatial, kernel, stride, padding, output, count_include_pad, divisor_override)
    if result.dtype.kind in "iu":
        divisor = _divisor(*numbers, INT64)
        quotient = abs(result) // abs(divisor)
        return (quotient * np.sign(result) * np.sign(divisor)).astype(input.dtype)
    result /= _divisor(*numbers, result.dtype)
    return narrow(result, input.dtype)


@quietly
def avg_pool_backward(
    grad: Array,
    spatial: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The gradient `(..., *spatial)` of `avg_pool`: every window spreads its grad evenly."""
    spatial, output = tuple(spatial), grad.shape[-len(kernel) :]
    dims = _dims(spatial, kernel, stride, padding, (1,) * len(kernel), output)
    result = widen(grad)
    numbers = (spatial, kernel, stride, padding, output, count_include_pad, divisor_override)
    result = result / _divisor(*numbers, result.dtype)
    for along in dims[::-1]:
        result = _spread(result, along)
    return narrow(np.ascontiguousarray(result), grad.dtype)


def _spread(grad: Array, along: Along) -> Array:
    """The transposed map of a window sum along one dim."""
    shape = list(grad.shape)
    shape[along.dim] = along.padding + along.size + along.after
    total = np.zeros(shape, grad.dtype)
    for tap in along.taps:
        view = total[tap]
        np.add(view, grad, out=view)
    return total[along.at(slice(along.padding, along.padding + along.size))]


@lru_cache(512)
def _divisor(spatial: Ints, kernel: Ints, stride: Ints, padding: Ints, output: Ints,
             count_include_pad: bool, override: int | None, dtype: np.dtype) -> Array:  # fmt: skip
    """How many elements each window counts, `(*output)`, or 0-dim where all count the same;
    windows end with the right padding."""
    if override is not None:
        return np.asarray(override, dtype)
    counts = []
    for along in _dims(spatial, kernel, stride, padding, (1,) * len(kernel), output)[::-1]:
        start = np.arange(along.count) * along.stride - along.padding
        end = np.minimum(start + along.kernel, along.size + along.padding)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, along.size)
        counts.append(end - start)
    found = reduce(np.multiply.outer, counts).astype(dtype)
    first = found[(0,) * found.ndim]
    return np.asarray(first) if (found == first).all() else found
