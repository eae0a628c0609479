"""Launches the kernels of convolutions with one input channel per group.

Arrays are `(N, C, *spatial)` with one to three spatial dims, weights `(C * m, 1, *kernel)`, of
float16, bfloat16, float32 or float64; half types are summed in float32 and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from flambeau._compiler.types import OF_NUMPY, f32
from flambeau._core.settings import get_num_threads
from flambeau._ops.conv.kernels import depthwise as kernels
from flambeau._ops.launching.epilogue import NOTHING, Epilogue
from flambeau._ops.launching.precision import Array, widen
from flambeau._ops.launching.windows import Ints, extent
from flambeau._runtime.features import vector_bits
from flambeau._runtime.launch import kernel

TASK_PRODUCTS = 1 << 17
"""Multiply-adds that are worth a task of their own: some 20 µs."""
BAND_BYTES = 64 << 10
"""The part of a padded plane that a task holds; it stays in the second cache."""
TILES = ((8, 1), (4, 2), (1, 8))
"""Rows and vectors of outputs whose sums are kept in registers."""
MOST_SUMS = 9
"""Taps whose sums of a weight's gradient are kept in registers."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How planes of `inputs` become planes of `outputs`; three numbers each, in the order z, y, x.

    Output `o` sums `padded[o * step + k * dilation]` over the taps k, where the input, its numbers
    `gap` apart, starts at `pad` of the padded plane.
    """

    images: int
    channels: int
    multiplier: int
    inputs: Ints
    outputs: Ints
    taps: Ints
    pad: Ints
    step: Ints
    dilation: Ints
    gap: Ints

    def padded(self) -> list[int]:
        """How far the windows reach."""
        return [
            (count - 1) * step + extent(taps, dilation)
            for count, step, taps, dilation in zip(
                self.outputs, self.step, self.taps, self.dilation, strict=True
            )
        ]

    def tasks(self, units: int) -> int:
        """Into how many tasks the work is split, of which there are `units` parts."""
        products = self.images * self.channels * self.multiplier
        products *= prod(self.outputs) * prod(self.taps)
        return max(1, min(units, products // TASK_PRODUCTS, 4 * get_num_threads()))


@lru_cache(512)
def layout(plan: Plan, spare_rows: int, spare: int, itemsize: int) -> tuple[Array, Array]:
    """What the kernels take for `sizes` and `offsets`.

    `spare_rows` outputs below the last row and `spare` numbers behind it may be read.
    """
    depth, _, width = plan.padded()
    step_y, step_x = plan.step[1:]
    pitch = -(-width // step_x)
    row = pitch * step_x
    reach = extent(plan.taps[1], plan.dilation[1])
    wanted = BAND_BYTES // (row * itemsize * depth * step_y)
    band = min(plan.outputs[1], max(spare_rows, wanted // spare_rows * spare_rows))
    rows = (band - 1) * step_y + reach
    room = (depth * rows + spare_rows * step_y) * row + spare
    room = -(-room // 16) * 16 + 16
    offsets = [
        (z * plan.dilation[0] * rows + y * plan.dilation[1]) * row
        + x * plan.dilation[2] % step_x * pitch
        + x * plan.dilation[2] // step_x
        for z, y, x in product(*map(range, plan.taps))
    ]
    sizes = [
        plan.images, plan.channels, plan.multiplier, *plan.inputs, *plan.outputs, *plan.pad,
        *plan.step, *plan.gap, depth, width, band, rows, pitch, room, prod(plan.taps),
    ]  # fmt: skip
    return np.array(sizes, np.int64), np.array(offsets, np.int64)


def three(numbers: Ints, fill: int) -> tuple[int, ...]:
    return (fill,) * (3 - len(numbers)) + tuple(numbers)


@cache
def types_of(dtype: np.dtype[Any]) -> tuple[dict[str, Any], np.dtype[Any]]:
    element = OF_NUMPY[dtype.name]
    wide = f32 if element.bits < 32 else element
    statics = {"T": element, "A": wide, "W": vector_bits() // wide.bits}
    return statics, np.dtype(np.float32) if wide is f32 else dtype


def _best_tile(rows: int, cols: int, width: int) -> tuple[int, int]:
    """The tile with the fewest computations in vain."""
    return min(TILES, key=lambda tile: -(-rows // tile[0]) * -(-cols // (tile[1] * width)))


def _sums(plan: Plan, source: Array, weight: Array, bias: Array | None,
          after: Epilogue = NOTHING) -> Array:  # fmt: skip
    """The planes of the plan's outputs `(N, C * m, prod(outputs))`."""
    statics, wide = types_of(source.dtype)
    rows, vectors = _best_tile(plan.outputs[1], plan.outputs[2], statics["W"])
    spare = (vectors + 1) * statics["W"] * 2
    sizes, offsets = layout(plan, rows, spare, wide.itemsize)
    channels = plan.channels * plan.multiplier
    shift = np.zeros(channels, wide) if bias is None else np.ascontiguousarray(bias, wide)
    result = np.empty((plan.images, channels, *plan.outputs), source.dtype)
    tasks = plan.tasks(plan.images * plan.channels * -(-plan.outputs[1] // int(sizes[BAND])))
    work = np.empty(tasks * int(sizes[ROOM]), wide)
    kernel(kernels.depthwise, **statics, R=rows, V=vectors).parallel(
        tasks, np.ascontiguousarray(source), np.ascontiguousarray(weight, wide), shift, result,
        work, offsets, sizes, *after.arguments(result),
    )  # fmt: skip
    return result


BAND, ROOM = kernels.SIZES.index("BAND"), kernels.SIZES.index("ROOM")


def forward(input: Array, weight: Array, bias: Array | None, output: Ints, stride: Ints,
            padding: Ints, dilation: Ints, groups: int,
            after: Epilogue = NOTHING) -> Array:  # fmt: skip
    """The convolution `(N, C * m, *output)` plus bias, and what comes after it."""
    assert groups == input.shape[1]
    plan = _forward_plan(input.shape, weight.shape, output, stride, padding, dilation)
    result = _sums(plan, input, weight, bias, after)
    return result.reshape(*result.shape[:2], *output)


def _forward_plan(shape: Ints, weight_shape: Ints, output: Ints, stride: Ints, padding: Ints,
                  dilation: Ints) -> Plan:  # fmt: skip
    return Plan(
        shape[0], shape[1], weight_shape[0] // shape[1], three(shape[2:], 1), three(output, 1),
        three(weight_shape[2:], 1), three(padding, 0), three(stride, 1), three(dilation, 1),
        (1, 1, 1),
    )  # fmt: skip


def backward_input(grad: Array, weight: Array, input_shape: Ints, stride: Ints, padding: Ints,
                   dilation: Ints, groups: int,
                   bias: Array | None = None) -> Array:  # fmt: skip
    """The gradient of `forward`'s input: the mirrored kernel over gradients `stride` apart.

    For transposed convolutions a bias is added.
    """
    assert groups == input_shape[1]
    channels = input_shape[1]
    factors = len(weight) // channels
    spatial = tuple(range(2, weight.ndim))
    spans = [extent(n, gap) for n, gap in zip(weight.shape[2:], dilation, strict=True)]
    before = [span - 1 - pad for span, pad in zip(spans, padding, strict=True)]
    mirrored = np.flip(weight, spatial)
    parts = []
    for j in range(factors):  # one pass for each output of a channel
        plan = Plan(
            input_shape[0], channels, 1, three(grad.shape[2:], 1), three(input_shape[2:], 1),
            three(weight.shape[2:], 1), three(before, 0), (1, 1, 1), three(dilation, 1),
            three(stride, 1),
        )  # fmt: skip
        part = widen(grad[:, j::factors]) if factors > 1 else grad
        shift = bias if j == 0 else None
        parts.append(_sums(plan, part, mirrored[j::factors], shift))
    result = parts[0]
    for part in parts[1:]:
        result += part
    return result.reshape(input_shape).astype(grad.dtype, copy=False)


def backward_weight(grad: Array, input: Array, weight_shape: Ints, stride: Ints, padding: Ints,
                    dilation: Ints, groups: int) -> Array:  # fmt: skip
    """The gradient of `forward`'s weight."""
    assert groups == input.shape[1]
    statics, wide = types_of(input.dtype)
    plan = _forward_plan(input.shape, weight_shape, grad.shape[2:], stride, padding, dilation)
    sizes, offsets = layout(plan, 1, 2 * statics["W"], wide.itemsize)
    taps = len(offsets)
    tasks = plan.tasks(plan.channels)
    work = np.empty(tasks * int(sizes[ROOM]), wide)
    totals = np.empty(tasks * plan.multiplier * taps)
    result = np.empty(tuple(weight_shape), grad.dtype)
    passes = -(-taps // MOST_SUMS)
    kernel(kernels.depthwise_weight, **statics, K=-(-taps // passes)).parallel(
        tasks, np.ascontiguousarray(input), np.ascontiguousarray(grad), result, work, totals,
        offsets, sizes,
    )  # fmt: skip
    return result


def channel_sums(grad: Array) -> Array:
    """The gradient `(O,)` of a bias from `(N, O, *output)`."""
    statics, _ = types_of(grad.dtype)
    images, channels = grad.shape[:2]
    result = np.empty(channels, grad.dtype)
    tasks = max(1, min(channels, grad.size // TASK_PRODUCTS, 4 * get_num_threads()))
    kernel(kernels.channel_sums, **statics).parallel(
        tasks, np.ascontiguousarray(grad), result, images, channels, prod(grad.shape[2:])
    )
    return result
