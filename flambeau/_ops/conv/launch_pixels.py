"""Launches the kernels of dense convolutions that read pixels with all their channels.

Arrays are `(N, C, *spatial)` with one to three spatial dims, weights `(O, C / groups, *kernel)`, of
float16, bfloat16, float32 or float64; half types are summed in float32 and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from flambeau._core.settings import get_num_threads
from flambeau._ops.conv.kernels import pixels as kernels
from flambeau._ops.conv.launch import Phase, fill_phase, free_slots, phase_of, widened
from flambeau._ops.conv.launch_depthwise import three, types_of
from flambeau._ops.launching.epilogue import NOTHING, Epilogue
from flambeau._ops.launching.precision import Array
from flambeau._ops.launching.windows import Ints, extent
from flambeau._ops.products.gemm_tiles import Tile, tile_of
from flambeau._runtime.launch import kernel

BAND_BYTES = 288 << 10
"""What a band takes that is laid out: it stays in the second cache, beside a panel of weights."""
JOINED_BYTES, JOINED_WINDOWS = 512 << 10, 256
"""What small images may take that are computed together, and how many windows they may have."""
PANEL_BYTES = 96 << 10
"""The part of a panel of weights that is used for all windows of a band before the next one."""
UNITS_PER_THREAD = 4
"""So many units of work are found for every thread, where there are rows and outputs for them."""
TASK_PRODUCTS = 1 << 20
"""Multiply-adds that are worth a task of their own: some 20 µs."""
PACKED_PER_TASK = 1 << 14
"""Numbers of a weight that one task packs."""
LEAST_OUTPUTS = 12
"""Outputs of a group from which a tile's vectors are worth filling."""
LEAST_RUN = 6
"""Numbers of a run from which its start is worth computing."""
LEAST_WINDOWS, LEAST_PACKED_WINDOWS = 96, 4
"""Windows for which a weight is worth packing, and those that use a packed one."""


@dataclass(frozen=True, slots=True)
class Spots:
    """Where results lie in an image: numbers of a plane, the first one's place, how far apart."""

    plane: int
    start: int
    move: Ints


@dataclass(frozen=True, slots=True)
class Shape:
    """A convolution: counts of a group, and three numbers each in the order z, y, x."""

    images: int
    groups: int
    channels: int
    outputs: int
    inputs: Ints
    windows: Ints
    taps: Ints
    pad: Ints
    step: Ints
    gap: Ints
    out: Spots | None = None
    """Where results go, if they don't follow each other."""
    depth: int = 0
    """Rows of a panel of weights, if it holds those of other convolutions, too."""

    @property
    def runs(self) -> tuple[int, int]:
        """How many numbers of the input follow each other, and how often that is so."""
        joined = self.taps[2] if self.gap[2] == 1 else 1
        return joined * self.channels, prod(self.taps) // joined


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How a convolution is computed: what the kernel takes."""

    native: Any
    tasks: int
    slots: int
    room: int
    wide: np.dtype[Any]
    no_bias: Array
    tables: tuple[Array, Array, Array]
    """`places`, `runs` and `sizes`."""


def _tile(windows: int, sums_type: Any) -> Tile:
    """The register tile for bands of so many windows: with as few windows in vain as possible."""
    best = tile_of(sums_type)
    heights = (best.rows, max(1, best.rows - 1))
    rows = min(heights, key=lambda rows: -(-windows // rows) * (rows * best.vectors + 1.5))
    return Tile(rows, best.vectors, best.width)


def _bands(shape: Shape, itemsize: int, panels: int,
           threads: int) -> tuple[int, int, int, int]:  # fmt: skip
    """(rows of windows of a band, bands of a plane, images of a band, shares of its outputs)."""
    rows = shape.windows[1]
    reach = extent(shape.taps[1], shape.gap[1])
    wide = (shape.windows[2] - 1) * shape.step[2] + extent(shape.taps[2], shape.gap[2])
    line = wide * shape.channels * itemsize * shape.taps[0]
    most = max(1, (BAND_BYTES // line - reach) // shape.step[1] + 1)
    bands = -(-rows // most)
    joined = 1
    if bands == shape.windows[0] == 1:
        joined = _joined(shape, line * ((rows - 1) * shape.step[1] + reach))
    others = -(-shape.images // joined) * shape.groups * shape.windows[0]
    units = UNITS_PER_THREAD * threads
    if bands * others < units and bands > 1:
        bands = min(rows, -(-bands // threads) * threads)
    shares = min(panels, -(-units // (bands * others)))
    return -(-rows // bands), bands, joined, shares


def _joined(shape: Shape, size: int) -> int:
    """How many images are computed together, each of which takes `size` bytes as it is laid out:
    the weight is read from memory once for all of them. Where it stays near anyway, or an image
    has many windows, that gains nothing."""
    windows = shape.windows[1] * shape.windows[2]
    most = min(shape.images, JOINED_BYTES // size, JOINED_WINDOWS // windows)
    return max(1, most)


def _planned(shape: Shape, dtype: np.dtype[Any], threads: int) -> Plan:
    statics, wide = types_of(dtype)
    best = tile_of(statics["A"])
    panels = -(-shape.outputs // best.columns)
    band, bands, joined, shares = _bands(shape, wide.itemsize, panels, threads)
    windows = joined * band * shape.windows[2]
    tile = _tile(windows, statics["A"])
    across = (shape.windows[2] - 1) * shape.step[2] + extent(shape.taps[2], shape.gap[2])
    lines = (band - 1) * shape.step[1] + extent(shape.taps[1], shape.gap[1])
    length, runs = shape.runs
    parts = max(1, min(runs, length * runs * best.columns * wide.itemsize // PANEL_BYTES))
    pixels = joined * shape.taps[0] * lines * across + tile.width
    room_pixels = -(-pixels * shape.channels // 16) * 16
    spare = windows + max(tile.rows, tile.width)
    room = room_pixels + spare * best.columns
    units = -(-shape.images // joined) * shape.windows[0] * bands * shape.groups * shares
    channels = shape.groups * shape.outputs
    products = shape.images * channels * prod(shape.windows) * length * runs
    tasks = max(1, min(units, products // TASK_PRODUCTS))
    area = shape.windows[1] * shape.windows[2]
    out = shape.out or Spots(shape.windows[0] * area, 0, (area, shape.windows[2], 1))
    sizes = np.array([
        shape.images, shape.groups, shape.channels, *shape.inputs, *shape.windows, *shape.pad,
        *shape.step[:2], shape.gap[0], shape.taps[0], lines, across, shape.outputs, band, bands,
        shares, joined, runs, length, parts, shape.depth or runs * length, out.plane, out.start,
        *out.move, room_pixels, room,
    ], np.int64)  # fmt: skip
    native = kernel(kernels.convolve_pixels, T=statics["T"], A=statics["A"],
                    APART=shape.out is not None, **tile.constants)  # fmt: skip
    tables = (*_tables(shape, band, joined, spare, lines, across), sizes)
    return Plan(native, tasks, min(tasks, threads), room, wide, np.zeros(channels, wide), tables)


def _tables(shape: Shape, band: int, joined: int, spare: int, lines: int,
            across: int) -> tuple[Array, Array]:  # fmt: skip
    """Where the windows of a band start in it (`spare` of them), and from there its runs."""
    width = shape.windows[2]
    image, place = np.divmod(np.minimum(np.arange(spare), joined * band * width - 1), band * width)
    line = image * shape.taps[0] * lines + place // width * shape.step[1]
    pixels = line * across + place % width * shape.step[2]
    taps = (*shape.taps[:2], shape.taps[2] if shape.gap[2] > 1 else 1)
    starts = [(z * lines + y * shape.gap[1]) * across + x * shape.gap[2]
              for z, y, x in product(*map(range, taps))]  # fmt: skip
    return pixels * shape.channels, np.array(starts) * shape.channels


def multiply(plan: Plan, input: Array, packed: Array, bias: Array | None, out: Array,
             after: Epilogue = NOTHING) -> Array:  # fmt: skip
    """The convolution of a packed weight, in `out`."""
    plan.native.parallel(
        plan.tasks, widened(input), packed, plan.no_bias if bias is None else widened(bias),
        out, np.empty(plan.slots * plan.room, plan.wide), free_slots(plan.slots), *plan.tables,
        *after.arguments(out),
    )  # fmt: skip
    return out


# ---- the weight


@lru_cache(128)
def _rows(inputs: int, order: tuple[int, ...]) -> Array:
    """Where the numbers `[input, tap]` lie in a panel `[tap, input]`; tap t becomes order[t]."""
    return (np.arange(inputs)[:, None] + np.array(order) * inputs).reshape(-1).astype(np.int64)


def pack(weight: Array, groups: int) -> Array:
    """A weight as `multiply` takes it."""
    outputs, inputs, taps = len(weight) // groups, weight.shape[1], prod(weight.shape[2:])
    rows = _rows(inputs, tuple(range(taps)))
    return _packed(weight, rows, groups, outputs, inputs, inputs, inputs * taps, taps)


def pack_turned(weight: Array, groups: int, order: tuple[int, ...]) -> Array:
    """The weight of the convolution that is the gradient of another's input: inputs and outputs
    change places, and tap t becomes order[t]."""
    outputs, inputs, taps = weight.shape[1], len(weight) // groups, prod(weight.shape[2:])
    rows = np.array(order) * inputs
    return _packed(weight, rows, groups, outputs, inputs, 1, taps, outputs * taps)


def _packed(weight: Array, rows: Array, groups: int, outputs: int, inputs: int, chunk: int,
            output_step: int, input_step: int) -> Array:  # fmt: skip
    taps = prod(weight.shape[2:])
    run, shape, wide, tasks = _packing(weight.dtype, groups, outputs, inputs, taps, chunk,
                                       get_num_threads())  # fmt: skip
    result = np.empty(shape, wide)
    run.parallel(
        tasks, np.ascontiguousarray(weight), result, rows, groups, outputs, inputs, taps, chunk,
        outputs * inputs * taps, output_step, input_step,
    )  # fmt: skip
    return result


@lru_cache(512)
def _packing(dtype: np.dtype[Any], groups: int, outputs: int, inputs: int, taps: int, chunk: int,
             threads: int) -> tuple[Any, tuple[int, ...], np.dtype[Any], int]:  # fmt: skip
    """The kernel, the shape and type of the panels, and into how many tasks the work falls."""
    statics, wide = types_of(dtype)
    tile = tile_of(statics["A"])
    panels = -(-outputs // tile.columns)
    shape = groups, panels, inputs * taps, tile.columns
    units = groups * panels * -(-inputs // chunk)
    tasks = max(1, min(4 * threads, units, prod(shape) // PACKED_PER_TASK))
    return kernel(kernels.pack_weight, **statics, NR=tile.columns), shape, wide, tasks


# ---- convolutions


@lru_cache(1024)
def forward_plan(input: Ints, weight: Ints, output: Ints, stride: Ints, padding: Ints,
                 dilation: Ints, groups: int, dtype: np.dtype[Any], threads: int,
                 is_packed: bool) -> Plan | None:  # fmt: skip
    """For the convolution of an input's shape with a weight's, which `is_packed` or not; None where
    gathering columns is faster."""
    shape = Shape(
        input[0], groups, input[1] // groups, weight[0] // groups, three(input[2:], 1),
        three(output, 1), three(weight[2:], 1), three(padding, 0), three(stride, 1),
        three(dilation, 1),
    )  # fmt: skip
    return _planned(shape, dtype, threads) if _pays(shape, is_packed) else None


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """How an input's gradient is computed: a convolution of grad for every remainder of a position
    modulo the stride, with the taps that reach it."""

    order: tuple[int, ...]
    """Which place taps have in the packed weight: those of a remainder follow each other."""
    parts: tuple[tuple[Plan, int], ...]
    """Plans, and at which place of the packed weight each begins."""
    holes: tuple[Ints, ...]
    """Remainders that no tap reaches."""
    step: Ints

    def run(self, grad: Array, weight: Array, bias: Array | None, shape: Ints,
            groups: int) -> Array:  # fmt: skip
        """The gradient, of a shape; for transposed convolutions a bias is added."""
        out = np.empty(shape, grad.dtype)
        packed = pack_turned(weight, groups, self.order)
        source = widened(grad)
        for plan, first in self.parts:
            numbers = first * (len(weight) // groups) * packed.shape[-1]
            multiply(plan, source, packed.reshape(-1)[numbers:], bias, out)
        for hole in self.holes:
            shift = np.zeros(shape[1], grad.dtype) if bias is None else bias
            fill_phase(out, shift, hole, self.step)
        return out


@lru_cache(1024)
def gradient_plan(grad: Ints, weight: Ints, input: Ints, stride: Ints, padding: Ints,
                  dilation: Ints, groups: int, dtype: np.dtype[Any],
                  threads: int) -> Gradient | None:  # fmt: skip
    """For the gradient of a convolution's input, from its grad's shape; None where gathering
    columns is faster, or padding reaches further than a kernel."""
    step, kernel_, inputs = three(stride, 1), three(weight[2:], 1), three(input[2:], 1)
    numbers = zip(inputs, step, three(padding, 0), three(dilation, 1), kernel_, strict=True)
    every = [[phase_of(each, r) for r in range(each[1])] for each in numbers]
    order = [0] * prod(kernel_)
    parts, holes, first = [], [], 0
    for start in product(*map(range, step)):
        phases = [dim[r] for dim, r in zip(every, start, strict=True)]
        taps = list(product(*(phase.taps[::-1] for phase in phases)))
        for place, (z, y, x) in enumerate(taps):
            order[(z * kernel_[1] + y) * kernel_[2] + x] = first + place
        if prod(phase.count for phase in phases):
            if taps:
                spots = _spots(inputs, step, start)
                shape = _shape_of(phases, grad, groups, input[1], spots, prod(kernel_))
                if shape is None or not _pays(shape, False):
                    return None
                parts.append((_planned(shape, dtype, threads), first))
            else:
                holes.append(start)
        first += len(taps)
    return Gradient(tuple(order), tuple(parts), tuple(holes), step)


def _spots(inputs: Ints, step: Ints, start: Ints) -> Spots | None:
    """Where the gradients of positions `start` modulo `step` lie."""
    if set(step) == {1}:
        return None
    area = inputs[1] * inputs[2]
    place = start[0] * area + start[1] * inputs[2] + start[2]
    return Spots(inputs[0] * area, place, (step[0] * area, step[1] * inputs[2], step[2]))


def _shape_of(phases: list[Phase], grad: Ints, groups: int, channels: int, spots: Spots | None,
              taps: int) -> Shape | None:  # fmt: skip
    """The convolution of grad that gives a phase; None where padding reaches too far. `taps`: those
    of all phases, whose weights lie together."""
    if any(phase.moves[-1] > 0 for phase in phases):
        return None
    return Shape(
        grad[0], groups, grad[1] // groups, channels // groups, three(grad[2:], 1),
        tuple(phase.count for phase in phases), tuple(len(phase.taps) for phase in phases),
        tuple(-phase.moves[-1] for phase in phases), (1, 1, 1),
        tuple(phase.gap for phase in phases), spots, taps * grad[1] // groups,
    )  # fmt: skip


def _pays(shape: Shape, is_packed: bool) -> bool:
    windows = shape.images * prod(shape.windows)
    least = LEAST_PACKED_WINDOWS if is_packed else LEAST_WINDOWS
    return shape.outputs >= LEAST_OUTPUTS and shape.runs[0] >= LEAST_RUN and windows >= least
