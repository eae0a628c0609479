"""Convolutions with one input channel per group: a loop over kernel taps.

The padded input is split into phases, one per remainder modulo the stride, so that each kernel
tap reads consecutive elements: position `o` of the output lies at `o . pitch` of a phase that is
flattened over its spatial dims, and a tap only shifts it. The few elements between two rows are
computed in vain and dropped. Arrays are wide and `weight` is `(C * multiplier, 1, *kernel)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from flambeau._ops.launching.precision import Array
from flambeau._ops.launching.windows import Ints, pad_spatial, padded_for_mirror
from flambeau._ops.products.blas import matmul

# Work on this many bytes at a time, so that they stay in the second-level cache.
BLOCK_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Phases:
    """How the padded input splits: `grid` is the spatial shape of one phase."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    kernel: tuple[int, ...]
    output: tuple[int, ...]
    padded: tuple[int, ...]

    @property
    def grid(self) -> tuple[int, ...]:
        """The padded sizes divided by the stride, rounded up."""
        return tuple(-(-size // step) for size, step in zip(self.padded, self.stride, strict=True))

    @property
    def length(self) -> int:
        """How many flat elements the output positions span."""
        pitch = self._pitch()
        return 1 + sum((n - 1) * step for n, step in zip(self.output, pitch, strict=True))

    def _pitch(self) -> tuple[int, ...]:
        grid = self.grid
        return tuple(prod(grid[dim + 1 :]) for dim in range(len(grid)))

    def taps(self) -> Iterator[tuple[tuple[int, ...], int, slice]]:
        """Every kernel position with the number of its phase and its flat elements."""
        pitch = self._pitch()
        for tap in product(*map(range, self.kernel)):
            offsets = [t * gap for t, gap in zip(tap, self.dilation, strict=True)]
            phase, start = 0, 0
            for offset, step, unit in zip(offsets, self.stride, pitch, strict=True):
                phase = phase * step + offset % step
                start += offset // step * unit
            yield tap, phase, slice(start, start + self.length)

    def split(self, padded: Array) -> Array:
        """`(N, C, *padded)` as `(phases, N, C, prod(grid))`."""
        full = [size * step for size, step in zip(self.grid, self.stride, strict=True)]
        after = [size - have for size, have in zip(full, self.padded, strict=True)]
        padded = pad_spatial(padded, [0] * len(after), after)
        pairs = [size for both in zip(self.grid, self.stride, strict=True) for size in both]
        spatial = len(after)
        order = (*range(3, 3 + 2 * spatial, 2), 0, 1, *range(2, 2 + 2 * spatial, 2))
        moved = padded.reshape(*padded.shape[:2], *pairs).transpose(order)
        return moved.reshape(prod(self.stride), *padded.shape[:2], prod(self.grid))

    def join(self, split: Array) -> Array:
        """The inverse of `split`."""
        spatial = len(self.grid)
        opened = split.reshape(*self.stride, *split.shape[1:3], *self.grid)
        places = [n for d in range(spatial) for n in (spatial + 2 + d, d)]
        full = [size * step for size, step in zip(self.grid, self.stride, strict=True)]
        order = (spatial, spatial + 1, *places)
        joined = opened.transpose(order).reshape(*split.shape[1:3], *full)
        inner = tuple(slice(size) for size in self.padded)
        return joined[(slice(None), slice(None), *inner)]

    def inner(self, flat: Array) -> Array:
        """The output's positions in flat phases `(..., prod(grid))`, as a view."""
        grid = flat.reshape(*flat.shape[:-1], *self.grid)
        return grid[(..., *(slice(size) for size in self.output))]


def applies(weight_shape: Ints, groups: int) -> bool:
    """True when every group has one input channel (and there is more than one group)."""
    return groups > 1 and weight_shape[1] == 1


def _phases(weight_shape: Ints, padded: Ints, output: Ints, stride: Ints, dilation: Ints) -> Phases:
    kernel = tuple(weight_shape[2:])
    return Phases(tuple(stride), tuple(dilation), kernel, tuple(output), tuple(padded))


def _block_channels(channel_bytes: int, channels: int) -> int:
    return min(channels, max(1, BLOCK_BYTES // max(channel_bytes, 1)))


def _blocks(images: int, channels: int, step: int) -> Iterator[tuple[int, slice]]:
    for image in range(images):
        for start in range(0, channels, step):
            yield image, slice(start, start + step)


def _factors(weight: Array, channels: int) -> Array:
    """The weight as `(*kernel, C, multiplier, 1)`, ready to multiply flat phases."""
    split = weight.reshape(channels, -1, *weight.shape[2:])
    return np.ascontiguousarray(np.moveaxis(split, (0, 1), (-2, -1)))[..., None]


def forward(padded: Array, weight: Array, output: Ints, stride: Ints, dilation: Ints) -> Array:
    """`(N, C * multiplier, *output)` from the padded input."""
    images, channels = padded.shape[:2]
    phases = _phases(weight.shape, padded.shape[2:], output, stride, dilation)
    split = phases.split(padded)
    matrix = weight.reshape(channels, -1, prod(phases.kernel))
    multiplier = matrix.shape[1]
    result = np.empty((images, channels, multiplier, *output), padded.dtype)
    taps = list(phases.taps())
    step = _block_channels(len(taps) * split.shape[-1] * split.itemsize, channels)
    # Allocated once: fresh memory for every block would cost page faults.
    columns = np.empty((step, len(taps), phases.length), split.dtype)
    total = np.empty((step, multiplier, split.shape[-1]), split.dtype)
    for image, block in _blocks(images, channels, step):
        source = split[:, image, block]
        count = source.shape[1]
        for number, (_, phase, places) in enumerate(taps):
            columns[:count, number] = source[phase][:, places]
        matmul(matrix[block], columns[:count], out=total[:count, :, : phases.length])
        result[image, block] = phases.inner(total[:count])
    return result.reshape(images, -1, *output)


def _flat_grad(grad: Array, channels: int, phases: Phases) -> Array:
    """`(N, O, *output)` as `(N, C, multiplier, prod(grid))`, zero between the rows."""
    split = grad.reshape(len(grad), channels, -1, *grad.shape[2:])
    flat = np.zeros((*split.shape[:3], prod(phases.grid)), grad.dtype)
    phases.inner(flat)[...] = split
    return flat


def adjoint(
    grad: Array,
    weight: Array,
    input_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
) -> Array:
    """The transposed map of `forward`, without conjugation; returns `input_shape`."""
    images, channels = input_shape[:2]
    if set(stride) == {1} and len(weight) == channels:
        return _adjoint_by_forward(grad, weight, input_shape, padding, dilation)
    padded = [size + 2 * pad for size, pad in zip(input_shape[2:], padding, strict=True)]
    phases = _phases(weight.shape, padded, grad.shape[2:], stride, dilation)
    factors = _factors(weight, channels)
    flat = _flat_grad(grad, channels, phases)[..., : phases.length]
    total = np.zeros((prod(stride), images, channels, prod(phases.grid)), grad.dtype)
    taps = list(phases.taps())
    for image, block in _blocks(images, channels, _block_channels(flat.strides[1], channels)):
        source = flat[image, block]
        target = total[:, image, block]
        for tap, phase, places in taps:
            terms = source * factors[tap][block]
            view = target[phase][:, places]
            np.add(view, terms[:, 0] if terms.shape[1] == 1 else terms.sum(1), out=view)
    edges = [-pad for pad in padding]
    return np.ascontiguousarray(pad_spatial(phases.join(total), edges, edges))


def _adjoint_by_forward(
    grad: Array, weight: Array, input_shape: Ints, padding: Ints, dilation: Ints
) -> Array:
    """With stride 1 and one output per channel: the forward map with the mirrored kernel."""
    mirrored = np.flip(weight, tuple(range(2, weight.ndim)))
    padded = padded_for_mirror(grad, weight.shape[2:], input_shape, padding, dilation)
    return forward(padded, mirrored, input_shape[2:], (1,) * len(dilation), dilation)


def backward_weight(
    grad: Array, padded: Array, weight_shape: Ints, stride: Ints, dilation: Ints
) -> Array:
    """The gradient of `forward` with respect to its weight; conjugates the input."""
    channels = padded.shape[1]
    phases = _phases(weight_shape, padded.shape[2:], grad.shape[2:], stride, dilation)
    split = phases.split(padded)[:, :, :, None]
    flat = _flat_grad(grad, channels, phases)[..., : phases.length]
    total = np.zeros((channels, flat.shape[2], *phases.kernel), grad.dtype)
    taps = list(phases.taps())
    step = _block_channels(flat.strides[1], channels)
    for image, block in _blocks(len(grad), channels, step):
        for tap, phase, places in taps:
            view = split[phase, image, block][..., places]
            total[(block, slice(None), *tap)] += np.vecdot(view, flat[image, block])
    return total.reshape(weight_shape)
