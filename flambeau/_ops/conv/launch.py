"""Launches the kernels of dense convolutions and of their gradients.

Arrays are `(N, C, *spatial)` with one to three spatial dims, weights `(O, C / groups, *kernel)`, of
float16, bfloat16, float32 or float64; half types are summed in float32 and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from flambeau._core.settings import get_num_threads
from flambeau._ops.conv.kernels import dense as kernels
from flambeau._ops.conv.launch_depthwise import channel_sums, three, types_of
from flambeau._ops.launching.epilogue import NOTHING, Epilogue
from flambeau._ops.launching.precision import Array, widen
from flambeau._ops.launching.windows import Ints
from flambeau._ops.products.gemm_tiles import tile_of
from flambeau._runtime.launch import kernel

BLOCK_DEPTH = 256
"""Rows of a packed block of columns: a panel of them stays in the first cache."""
BLOCK_COLUMNS = 256
"""Columns of a packed block, which stays in the second cache."""
MERGED_ROWS = 16
"""Rows up to which the phases of a strided convolution's gradient are computed together."""
TURNED_PER_TASK = 1 << 14
"""Numbers of a weight whose order one task changes."""
BLOCK_ROWS = 192
"""Rows of columns that are gathered at a time for a weight's gradient."""
PARTS_BYTES = 2 << 20
"""What the parts of a weight's gradient may take together."""
TASK_PRODUCTS = 1 << 20
"""Multiply-adds that are worth a task of their own: some 20 µs."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over an input: three numbers each, in the order z, y, x.

    Window `w` reads `input[w * step + displacement]` for every displacement of `taps`. Sums are
    counted in the dims `view`, along which the result's numbers lie `move` apart.
    """

    inputs: Ints
    outputs: Ints
    step: Ints
    taps: tuple[Ints, ...]
    view: Ints
    move: Ints


ONES = (1, 1, 1)


@lru_cache(512)
def _table(windows: Windows) -> Array:
    """The displacements as the kernels take them: z, y, x and elements."""
    _, height, width = windows.inputs
    return np.array([(z, y, x, (z * height + y) * width + x) for z, y, x in windows.taps], np.int64)


def _pointwise(area: int) -> Windows:
    """Windows of one number each: a plain product."""
    flat = (1, 1, area)
    return Windows(flat, flat, ONES, ((0, 0, 0),), flat, ONES)


@cache
def _tile(rows: int, sums_type: Any) -> dict[str, int]:
    """The register tile for a product with so many rows: of two, the one with fewer in vain."""
    tile = tile_of(sums_type)
    sums = tile.rows * tile.vectors
    if rows <= 2:
        return {"MR": 2, "NV": 4, "W": tile.width}
    shapes = [(tile.rows, tile.vectors), (sums // 3, 3)]
    height, vectors = min(shapes, key=lambda shape: -(-rows // shape[0]) * shape[0])
    return {"MR": height, "NV": vectors, "W": tile.width}


def _blocks(groups: int, rows: int, columns: int, depth: int, height: int,
            width: int, threads: int) -> tuple[int, int, int]:  # fmt: skip
    """(blocks of columns, blocks of rows, tasks) for products of [rows, depth] and [.., columns].

    `height` and `width` are those of a tile.
    """
    panels, strips = -(-columns // width), -(-rows // height)
    wanted = max(1, groups * rows * columns * depth // TASK_PRODUCTS)
    of_columns = -(-panels // (BLOCK_COLUMNS // width))
    of_rows = 1
    if groups * of_columns < 2 * threads and wanted > 1:
        if rows > columns:  # each thread reads its part of the weight only
            of_rows = min(strips, -(-threads // groups))
        of_columns = min(panels, max(of_columns, -(-threads // (groups * of_rows))))
        if groups * of_columns * of_rows < threads:
            of_rows = min(strips, -(-threads // (groups * of_columns)))
    return of_columns, of_rows, min(wanted, groups * of_columns * of_rows)


def _ceil(count: int, part: int) -> int:
    """Into how many parts of a size a count falls."""
    return -(-count // part)


def _odd_pitch(count: int, itemsize: int) -> int:
    """As the kernel of this name."""
    line = 64 // itemsize
    return (-(-count // line) | 1) * line


def _multiply(source: Array, matrix: Array, bias: Array, out: Array, places: Array,
              windows: Windows, groups: int, after: Epilogue = NOTHING) -> None:  # fmt: skip
    """Write the windows' products with `matrix` `(O, C / groups * taps)` to `out`.

    `places` says where each row's sums start in an image of the output.
    """
    statics, wide = types_of(out.dtype)
    rows, channels = len(matrix) // groups, source.shape[1] // groups
    tile = _tile(rows, statics["A"])
    sizes, tasks, room = _layout(windows, groups, channels, rows, out.shape, tile["MR"],
                                 tile["NV"] * tile["W"], wide, get_num_threads())  # fmt: skip
    native = kernel(kernels.convolve, T=statics["T"], A=statics["A"], RUNS=BLOCK_COLUMNS, **tile)
    slots = min(tasks, get_num_threads())
    native.parallel(
        tasks, source, matrix, bias, out, places, np.empty(slots * room, wide), free_slots(slots),
        _table(windows), sizes, *after.arguments(out),
    )  # fmt: skip


def free_slots(count: int) -> Array:
    """Parts of the tasks' memory: 0 where one is free; -1 is the end."""
    slots = np.zeros(count + 1, np.int64)
    slots[count] = -1
    return slots


@lru_cache(512)
def _layout(windows: Windows, groups: int, channels: int, rows: int, result: tuple[int, ...],
            height: int, width: int, wide: np.dtype[Any],
            threads: int) -> tuple[Array, int, int]:  # fmt: skip
    """What the kernel takes for `sizes`, into how many tasks the work falls, and the memory of one.

    `result` is the shape of the output, `height` and `width` are those of a tile.
    """
    depth = channels * len(windows.taps)
    columns = result[0] * prod(windows.outputs)
    of_columns, of_rows, tasks = _blocks(groups, rows, columns, depth, height, width, threads)
    of_depth = _ceil(depth, BLOCK_DEPTH)
    most_depth = _ceil(depth, of_depth)
    most_panels = _ceil(_ceil(columns, width), of_columns)
    most_rows = _ceil(_ceil(rows, height), of_rows) * height
    pitch = _odd_pitch(most_panels * width, wide.itemsize)
    room_columns, room_sums = pitch * most_depth + 16, pitch * most_rows + 16
    room = room_columns + room_sums + most_depth * height
    sizes = np.array([
        groups, channels, *windows.inputs, *windows.outputs, *windows.step, len(windows.taps),
        rows, depth, of_depth, columns, of_columns, of_rows, *windows.view, *windows.move,
        prod(result[1:]), room_columns, room_sums, room,
    ], np.int64)  # fmt: skip
    return sizes, tasks, room


def _is_pointwise(kernel_: Ints, stride: Ints, padding: Ints) -> bool:
    return set(kernel_) | set(stride) == {1} and set(padding) == {0}


def widened(array: Array) -> Array:
    """Row-major, and half types as float32."""
    return np.ascontiguousarray(widen(array))


def _forward_windows(spatial: Ints, kernel_: Ints, output: Ints, stride: Ints, padding: Ints,
                     dilation: Ints) -> Windows:  # fmt: skip
    area = prod(output)
    if _is_pointwise(kernel_, stride, padding) and tuple(spatial) == tuple(output):
        return _pointwise(area)
    dims = zip(three(kernel_, 1), three(padding, 0), three(dilation, 1), strict=True)
    each = [[k * gap - pad for k in range(taps)] for taps, pad, gap in dims]
    return Windows(
        three(spatial, 1), three(output, 1), three(stride, 1), tuple(product(*each)),
        (1, 1, area), ONES,
    )  # fmt: skip


def forward(input: Array, weight: Array, bias: Array | None, output: Ints, stride: Ints,
            padding: Ints, dilation: Ints, groups: int,
            after: Epilogue = NOTHING) -> Array:  # fmt: skip
    """The convolution `(N, O, *output)` plus bias, and what comes after it."""
    windows = _forward_windows(input.shape[2:], weight.shape[2:], output, stride, padding, dilation)
    result = np.empty((len(input), len(weight), *output), input.dtype)
    source = widened(input)
    matrix = widened(weight).reshape(len(weight), -1)
    shift = np.zeros(len(weight), source.dtype) if bias is None else widened(bias)
    places = np.arange(len(weight)) * prod(output)
    _multiply(source, matrix, shift, result, places, windows, groups, after)
    return result


@dataclass(frozen=True, slots=True)
class Phase:
    """Positions `q * stride + remainder` along one dim of an input's gradient: how many there are,
    which taps reach them, and which grad each of these reads there (less q)."""

    count: int
    taps: list[int]
    moves: list[int]

    @property
    def gap(self) -> int:
        """How far the grads that follow each other are apart."""
        return self.moves[0] - self.moves[1] if len(self.moves) > 1 else 1


def phase_of(numbers: tuple[int, ...], remainder: int) -> Phase:
    """`numbers`: the dim's size, stride, padding, dilation and taps."""
    size, stride, padding, dilation, taps = numbers
    offsets = [(k, remainder + padding - k * dilation) for k in range(taps)]
    reached = [(k, offset // stride) for k, offset in offsets if offset % stride == 0]
    count = max(0, -(-(size - remainder) // stride))
    return Phase(count, [k for k, _ in reached], [move for _, move in reached])


def backward_input(grad: Array, weight: Array, input_shape: Ints, stride: Ints, padding: Ints,
                   dilation: Ints, groups: int,
                   bias: Array | None = None) -> Array:  # fmt: skip
    """The gradient of `forward`'s input; for transposed convolutions a bias is added.

    Every remainder of a position modulo the stride is a convolution of grad with stride 1.
    """
    source = widened(grad)
    result = np.empty(tuple(input_shape), grad.dtype)
    channels, area = input_shape[1], prod(input_shape[2:])
    shift = np.zeros(channels, source.dtype) if bias is None else widened(bias)
    places = np.arange(channels) * area
    if _is_pointwise(weight.shape[2:], stride, padding) and input_shape[2:] == grad.shape[2:]:
        matrix = _turned(weight, groups, [0])
        _multiply(source, matrix, shift, result, places, _pointwise(area), groups)
        return result
    shape, step, kernel_ = three(input_shape[2:], 1), three(stride, 1), three(weight.shape[2:], 1)
    numbers = list(zip(shape, step, three(padding, 0), three(dilation, 1), kernel_, strict=True))
    if _merges(channels // groups, shape, step, source):
        _merged_phases(source, weight, shift, result, numbers, groups)
        return result
    for start in product(*map(range, step)):
        phases = [phase_of(each, first) for each, first in zip(numbers, start, strict=True)]
        counts = tuple(phase.count for phase in phases)
        if not prod(counts):
            continue
        taps = _flat_taps([phase.taps for phase in phases], kernel_)
        if not taps:
            fill_phase(result, shift, start, step)
            continue
        whole = prod(step) == 1
        windows = Windows(
            three(grad.shape[2:], 1), counts, ONES, tuple(product(*[p.moves for p in phases])),
            (1, 1, area) if whole else counts, ONES if whole else _strides(shape, step),
        )  # fmt: skip
        first = _flat_place(start, shape)
        matrix = _turned(weight, groups, taps)
        _multiply(source, matrix, shift, result, places + first, windows, groups)
    return result


def _merges(channels: int, shape: Ints, step: Ints, source: Array) -> bool:
    """Whether the phases of a gradient are worth one product with zeros in its matrix.

    They are where a phase alone has so few rows that gathering takes longer than multiplying.
    Zeros times infinity would be NaN, so all numbers must be finite.
    """
    even = all(size % stride == 0 for size, stride in zip(shape, step, strict=True))
    if prod(step) == 1 or channels * prod(step) > MERGED_ROWS or not even:
        return False
    return bool(np.isfinite(channel_sums(source)).all())


def _merged_phases(source: Array, weight: Array, shift: Array, result: Array,
                   numbers: list[tuple[int, ...]], groups: int) -> None:  # fmt: skip
    """All phases as rows of one product, over every number of grad that one of them reads."""
    shape, step, _, _, kernel_ = (tuple(each) for each in zip(*numbers, strict=True))
    every = [[phase_of(each, r) for r in range(each[1])] for each in numbers]
    moves = [sorted({move for phase in dim for move in phase.moves}) for dim in every]
    area, channels = prod(shape), len(shift)
    matrices, starts = [], []
    for start in product(*map(range, step)):
        phases = [dim[first] for dim, first in zip(every, start, strict=True)]
        tables = [dict(zip(phase.moves, phase.taps, strict=True)) for phase in phases]
        taps = [_tap_at(tables, move, kernel_) for move in product(*moves)]
        matrices.append(_turned(weight, groups, taps).reshape(groups, channels // groups, -1))
        starts.append(np.full(channels // groups, _flat_place(start, shape)))
    matrix = np.concatenate(matrices, axis=1)
    of_rows = np.arange(channels).reshape(groups, -1)
    places = (np.tile(of_rows, len(starts)) * area + np.concatenate(starts)).reshape(-1)
    shifts = np.tile(shift.reshape(groups, -1), len(starts)).reshape(-1)
    counts = tuple(size // stride for size, stride in zip(shape, step, strict=True))
    windows = Windows(
        three(source.shape[2:], 1), counts, ONES, tuple(product(*moves)), counts,
        _strides(shape, step),
    )  # fmt: skip
    _multiply(source, matrix.reshape(len(places), -1), shifts, result, places, windows, groups)


def _tap_at(tables: list[dict[int, int]], moves: Ints, kernel_: Ints) -> int:
    """The tap that reads grad so far away, -1 if none does."""
    found = [table.get(move, -1) for table, move in zip(tables, moves, strict=True)]
    return -1 if min(found) < 0 else (found[0] * kernel_[1] + found[1]) * kernel_[2] + found[2]


def _strides(shape: Ints, step: Ints) -> tuple[int, int, int]:
    """How far positions that lie `step` apart are apart in memory."""
    return step[0] * shape[1] * shape[2], step[1] * shape[2], step[2]


def _flat_place(place: Ints, shape: Ints) -> int:
    return (place[0] * shape[1] + place[1]) * shape[2] + place[2]


def _flat_taps(taps: list[list[int]], kernel_: Ints) -> list[int]:
    return [(z * kernel_[1] + y) * kernel_[2] + x for z, y, x in product(*taps)]


def _turned(weight: Array, groups: int, taps: list[int]) -> Array:
    """A weight `(O, C / groups, *kernel)` as `(C, O / groups * len(taps))`."""
    statics, wide = types_of(weight.dtype)
    outputs, channels = len(weight) // groups, weight.shape[1]
    result = np.empty((groups * channels, outputs * len(taps)), wide)
    tasks = max(1, min(4 * get_num_threads(), groups * channels, result.size // TURNED_PER_TASK))
    kernel(kernels.turn_weight, T=statics["T"], A=statics["A"]).parallel(
        tasks, np.ascontiguousarray(weight), result, np.array(taps, np.int64), groups, outputs,
        channels, prod(weight.shape[2:]), len(taps),
    )  # fmt: skip
    return result


def fill_phase(result: Array, shift: Array, start: Ints, step: Ints) -> None:
    """Positions that no window reaches."""
    spatial = result.ndim - 2
    places = [slice(r, None, s) for r, s in zip(start, step, strict=True)][3 - spatial :]
    result[(slice(None), slice(None), *places)] = shift.reshape(-1, *(1,) * spatial)


def backward_weight(grad: Array, input: Array, weight_shape: Ints, stride: Ints, padding: Ints,
                    dilation: Ints, groups: int) -> Array:  # fmt: skip
    """The gradient of `forward`'s weight."""
    statics, wide = types_of(grad.dtype)
    windows = _forward_windows(
        input.shape[2:], weight_shape[2:], grad.shape[2:], stride, padding, dilation
    )
    rows, depth = weight_shape[0] // groups, prod(weight_shape[1:])
    columns = len(grad) * prod(windows.outputs)
    tile = _weight_tile(rows, statics["A"])
    height, width = tile["MR"], tile["NV"] * tile["W"]
    products = groups * rows * depth * columns
    parts = _parts(weight_shape, columns, products, wide.itemsize)
    wanted = max(1, min(4 * get_num_threads(), products // TASK_PRODUCTS))
    strips = -(-depth // height)
    shares = min(strips, max(1, -(-wanted // (groups * parts))))
    tasks = min(max(1, products // TASK_PRODUCTS), groups * shares * parts)
    block = BLOCK_ROWS // height * height
    most = -(-strips // shares) * height
    column_block = min(BLOCK_COLUMNS, columns)
    room_columns = _odd_pitch(column_block, wide.itemsize) * (min(most, block) + height) + 16
    room_right = -(-rows // width) * width * column_block
    room_sums = _odd_pitch(-(-rows // width) * width, wide.itemsize) * (most + height)
    room = room_columns + room_right + room_sums
    sizes = np.array([
        groups, input.shape[1] // groups, *windows.inputs, *windows.outputs, *windows.step,
        len(windows.taps), rows, depth, shares, columns, 0, 0, *windows.view, *windows.move,
        0, room_columns, room_right, room,
    ], np.int64)  # fmt: skip
    slots = min(tasks, get_num_threads())
    out = np.empty((parts, *weight_shape), wide)
    kernel(kernels.convolve_weight, A=statics["A"], RUNS=BLOCK_COLUMNS, **tile).parallel(
        tasks, widened(input), widened(grad), out, np.empty(slots * room, wide), free_slots(slots),
        _table(windows), sizes, parts, block, column_block,
    )  # fmt: skip
    total = out[0] if parts == 1 else out.sum(0)
    return total.astype(grad.dtype, copy=False)


def _weight_tile(rows: int, sums_type: Any) -> dict[str, int]:
    """The register tile where the outputs of a group lie along its vectors."""
    tile = tile_of(sums_type)
    if rows <= tile.width:
        return {"MR": tile.rows * tile.vectors, "NV": 1, "W": tile.width}
    return tile.constants


def _parts(weight_shape: Ints, columns: int, products: int, itemsize: int) -> int:
    """Into how many parts the sum over the windows is split: what a small weight leaves room for.

    It does not depend on the number of threads, so that neither do the sums.
    """
    room = PARTS_BYTES // (prod(weight_shape) * itemsize)
    return max(1, min(8, room, products // (2 * TASK_PRODUCTS), columns // BLOCK_COLUMNS))
