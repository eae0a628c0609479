"""Running sums, products and extremes along a dim, by compiled kernels."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from flambeau._compiler import types
from flambeau._core import settings
from flambeau._core.layout import around
from flambeau._ops.scans import kernels as scan_kernels
from flambeau._runtime.launch import Kernel, kernel

INT64 = np.dtype(np.int64)
LONG = 1 << 17
"""From this length on a row is added up in parts, where it is one of few."""
PART = 1 << 15
ADDED_IN = {"float64": types.f64, "float32": types.f64, "float16": types.f32,
            "bfloat16": types.f32}  # fmt: skip
"""What a float type is added up in; integers in i64."""


def fits(data: np.ndarray, result: np.dtype[Any]) -> bool:
    """Whether there are kernels: real numbers in and out."""
    return data.size > 0 and _known(data.dtype, result)


@cache
def _known(source: np.dtype[Any], result: np.dtype[Any]) -> bool:
    known = source.name in types.OF_NUMPY and result.name in types.OF_NUMPY
    return known and result.kind != "b"


def _statics(source: np.dtype[Any], result: np.dtype[Any], multiply: bool,
             back: bool) -> dict[str, Any]:  # fmt: skip
    """The constants of kernels that read one type and write another."""
    added_in = ADDED_IN.get(result.name, types.i64)
    return {"T": types.OF_NUMPY[source.name], "A": added_in, "R": types.OF_NUMPY[result.name],
            "MUL": int(multiply), "BACK": int(back)}  # fmt: skip


@cache
def _lanes(bits: int) -> int:
    from flambeau._runtime import features

    return features.vector_bits() // bits


def _tasks(items: int, size: int) -> int:
    """Parts of at least some 20 us, up to four for each thread."""
    return max(1, min(items, 4 * settings.get_num_threads(), size // 8192))


def accumulate(data: np.ndarray, dim: int, result: np.dtype[Any], multiply: bool = False,
               back: bool = False) -> np.ndarray:  # fmt: skip
    """Running sums (products) along a dim in row-major memory; `back`: from the end."""
    if data.dtype is not result:
        kinds = data.dtype.kind in "fV", result.kind in "fV"
        if kinds[0] != kinds[1] or (kinds[0] and data.dtype != result):
            data = data.astype(result)
    if not data.flags.c_contiguous:
        data = np.array(data, order="C")
    out = np.empty(data.shape, result)
    launch = _launch(
        data.dtype, result, data.shape, dim, multiply, back, settings.get_num_threads()
    )
    if launch is not None:
        launch.scan.parallel(launch.tasks, data, out, *launch.sizes)
        return out
    statics = _statics(data.dtype, result, multiply, back)
    rows = (-1, data.shape[dim])
    for line, target in zip(data.reshape(rows), out.reshape(rows), strict=True):
        _parts(statics, line, target)
    return out


class Launch(NamedTuple):
    """A kernel with its number of tasks and the sizes that it is given."""

    scan: Kernel
    tasks: int
    sizes: tuple[int, ...]


@lru_cache(4096)
def _launch(source: np.dtype[Any], result: np.dtype[Any], shape: tuple[int, ...], dim: int,
            multiply: bool, back: bool, threads: int) -> Launch | None:  # fmt: skip
    """The launch for row-major arrays of a shape; None for long rows that threads share."""
    outer, n, inner = around(shape, dim)
    statics = _statics(source, result, multiply, back)
    size = outer * n * inner
    if inner > 1:
        lanes = _lanes(statics["A"].bits)
        vectors = 8 if inner % (8 * lanes) == 0 or inner > 64 * lanes else 1
        tasks = _tasks(outer * -(-inner // (lanes * vectors)), size)
        columns = kernel(scan_kernels.scan_columns, **statics, W=lanes, U=vectors)
        return Launch(columns, tasks, (outer, n, inner))
    exact = statics["A"] is types.i64 or statics["T"] is types.f32
    if exact and not multiply and n >= LONG and outer < threads:
        return None
    tasks = _tasks(-(-outer // scan_kernels.ROWS), size)
    return Launch(kernel(scan_kernels.scan_lines, **statics), tasks, (outer, n))


def _parts(statics: dict[str, Any], line: np.ndarray, out: np.ndarray) -> None:
    """The number of parts follows from the length alone: so do the bits of the result."""
    parts = line.size // PART
    totals = np.empty(parts, np.int64 if statics["A"] is types.i64 else np.float64)
    add = kernel(scan_kernels.part_totals, T=statics["T"], A=statics["A"], MUL=0)
    add.parallel(parts, line, totals, line.size)
    kernel(scan_kernels.scan_parts, **statics).parallel(parts, line, out, totals, line.size)


def extremes(data: np.ndarray, dim: int, least: bool) -> tuple[np.ndarray, np.ndarray]:
    """Running maxima (minima) along a dim and the last index of each."""
    if not data.flags.c_contiguous:
        data = np.array(data, order="C")
    outer, n, inner = around(data.shape, dim)
    values, indices = np.empty(data.shape, data.dtype), np.empty(data.shape, INT64)
    lanes = _lanes(64) if inner >= _lanes(64) else 1
    element = types.OF_NUMPY[types.NAMES[data.dtype]]
    scan = kernel(scan_kernels.running_extremes, T=element, W=lanes, LEAST=int(least))
    tasks = _tasks(outer * -(-inner // lanes), data.size)
    scan.parallel(tasks, data, values, indices, outer, n, inner)
    return values, indices
