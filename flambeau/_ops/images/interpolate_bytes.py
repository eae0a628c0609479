"""Resizing of uint8 images in integer arithmetic, as image libraries do it.

Weights become 16-bit integers with as many fraction bits as the largest weight allows; each pass
rounds to bytes, the last dim first.
"""

from __future__ import annotations

import numpy as np

from flambeau._ops.images.numpy_interpolate import Scales, Taps, taps_for
from flambeau._ops.launching.precision import Array
from flambeau._ops.launching.windows import Ints

MOST_BITS = 22


def interpolate_bytes(
    input: Array,
    mode: str,
    output: Ints,
    align_corners: bool = False,
    scales: Scales | None = None,
    antialias: bool = False,
) -> Array:
    """Resize uint8 `(N, C, H, W)` by 'bilinear' or 'bicubic' to `(N, C, *output)`."""
    scales = scales if scales is not None else (None,) * len(output)
    all_taps = taps_for(
        mode, input.shape[2:], output, align_corners, scales, True, antialias, False
    )
    result = input
    for dim in reversed(range(len(output))):
        if input.shape[2 + dim] == output[dim]:
            continue
        result = _apply(result, all_taps[dim], dim + 2)
    return np.ascontiguousarray(result)


def fraction_bits(largest: float) -> int:
    """The most fraction bits for which `largest` still fits a signed 16-bit weight."""
    bits = 0
    while bits < MOST_BITS and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    return bits


def integers(taps: Taps) -> tuple[Array, int]:
    """The weights as integers, and how many bits of them are a fraction."""
    merged = _merge_repeated(taps)
    bits = fraction_bits(float(merged.max()))
    scaled = merged * (1 << bits)
    return np.trunc(scaled + np.where(scaled < 0, -0.5, 0.5)).astype(np.int32), bits


def _apply(array: Array, taps: Taps, dim: int) -> Array:
    weights, bits = integers(taps)
    shape = [1] * array.ndim
    shape[dim] = -1
    total: Array = np.int32(1 << (bits - 1))
    for positions, weight in zip(taps.positions, weights, strict=True):
        total = total + np.take(array, positions, axis=dim) * weight.reshape(shape)
    return np.clip(total >> bits, 0, 255).astype(np.uint8)


def _merge_repeated(taps: Taps) -> Array:
    """The weights with those of repeated positions (at the borders) put into one."""
    weights = np.array(taps.weights)
    for number in range(1, len(weights)):
        same = taps.positions[number] == taps.positions[number - 1]
        weights[number] += np.where(same, weights[number - 1], 0)
        weights[number - 1][same] = 0
    return weights
