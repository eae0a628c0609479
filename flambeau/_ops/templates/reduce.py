"""Compiled reductions: which form fits an array's memory, and how large ones are split.

What is left of a reduction after its kernel is small, and joined by NumPy: parts of long rows have
a fixed length, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flambeau._compiler.fuse import Formula
from flambeau._compiler.types import Scalar, f32, f64, i64
from flambeau._ops.templates import row_formulas as formulas
from flambeau._ops.templates import rows

PART = 1 << 15
"""Elements of a part of a long row."""


class Shape(NamedTuple):
    """How rows lie in memory: `form`, strides and sizes for `rows.run`; the shape of the results
    in memory, and the order of dims that makes it the array's own."""

    form: str
    steps: tuple[int, int]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    order: tuple[int, ...] | None


def shape_of(data: np.ndarray, axes: tuple[int, ...]) -> Shape | None:
    """The form for a reduction of some dims; None where the memory fits neither."""
    shape = data.shape
    if data.flags.c_contiguous:
        start, stop = min(axes), max(axes) + 1
        if stop - start == len(axes):
            outer, n = math.prod(shape[:start]), math.prod(shape[start:stop])
            inner = math.prod(shape[stop:])
            kept = shape[:start] + shape[stop:]
            if inner == 1:
                return Shape("along", (n, 0), (outer, 1, n), kept, None)
            return Shape("across", (n * inner, inner), (outer, n, inner), kept, None)
    return _sorted_shape(data, axes)


def _sorted_shape(data: np.ndarray, axes: tuple[int, ...]) -> Shape | None:
    """Dims in the order of memory; neighbours that are one run are one."""
    strides, item = data.strides, data.itemsize
    dims = sorted((d for d in range(data.ndim) if data.shape[d] != 1), key=lambda d: -strides[d])
    groups: list[list[int]] = []  # size, stride
    pattern = ""
    for d in dims:
        letter = "r" if d in axes else "o"
        size, stride = data.shape[d], strides[d]
        if stride <= 0 or stride % item:
            return None
        if pattern.endswith(letter) and groups[-1][1] == size * stride // item:
            groups[-1] = [groups[-1][0] * size, stride // item]
        else:
            groups.append([size, stride // item])
            pattern += letter
    if not groups or groups[-1][1] != 1:
        return None
    kept = [d for d in dims if d not in axes]
    kept_shape = tuple(data.shape[d] for d in kept)
    rank = [kept.index(d) for d in sorted(kept)]
    sizes, steps = [g[0] for g in groups], [g[1] for g in groups]
    found = _of_pattern(pattern, sizes, steps)
    if found is None:
        return None
    form, apart, counts = found
    return Shape(form, apart, counts, kept_shape, tuple(rank))


def _of_pattern(pattern: str, sizes: list[int], steps: list[int]) -> Any:
    """Form, strides and sizes for groups of dims: `o` kept, `r` reduced."""
    if pattern == "r":
        return "along", (0, 0), (1, 1, sizes[0])
    if pattern == "or":
        return "along", (steps[0], 0), (sizes[0], 1, sizes[1])
    if pattern == "ror":
        return "along", (steps[1], steps[0]), (sizes[1], sizes[0], sizes[2])
    if pattern == "ro":
        return "across", (0, steps[0]), (1, sizes[0], sizes[1])
    if pattern == "oro":
        return "across", (steps[0], steps[1]), tuple(sizes)
    return None


# ---- one reduction


def reduce(formula: Formula, data: np.ndarray, axes: tuple[int, ...], keepdim: bool,
           compute: Scalar, dtypes: tuple[Any, ...], *numbers: float) -> Any:  # fmt: skip
    """The results of a formula over some dims, one array for each dtype; None where the array's
    memory fits no kernel.
    """
    found = shape_of(data, axes)
    if found is None or not data.size:
        return None
    form, steps, sizes, kept, order = found
    count = sizes[0] if form == "along" else sizes[0] * sizes[2]
    outputs = tuple([np.empty(count, dtype) for dtype in dtypes])
    launch(form, formula, compute, (data, *numbers), outputs, steps, sizes)
    return tuple([_shaped(out, data, axes, keepdim, kept, order) for out in outputs])


def launch(form: str, formula: Formula, compute: Scalar, inputs: Any, outputs: Any,
            steps: tuple[int, int], sizes: tuple[int, ...]) -> None:  # fmt: skip
    work = math.prod(sizes)
    if form == "along":
        tasks = rows.task_count(work, sizes[0])
    else:
        outer, n, inner = sizes
        block = rows.block_width(outer, n, inner, rows.statics(compute)["W"])
        tasks = rows.task_count(work, outer * -(-inner // block))
        sizes = (*sizes, block)
    rows.run(form, formula, compute, inputs, outputs, steps, sizes, tasks)


def _shaped(out: np.ndarray, data: np.ndarray, axes: tuple[int, ...], keepdim: bool,
            kept: tuple[int, ...], order: tuple[int, ...] | None) -> np.ndarray:  # fmt: skip
    """The results of rows in the order of memory as an array of the kept dims."""
    if order is not None and len(order) > 1:
        out = np.ascontiguousarray(out.reshape(kept).transpose(order))
    if keepdim:
        return out.reshape([1 if d in axes else n for d, n in enumerate(data.shape)])
    return out.reshape([n for d, n in enumerate(data.shape) if d not in axes])


# ---- reductions that can be done in parts


def in_parts(formula: Formula, join: Any, data: np.ndarray, axes: tuple[int, ...], keepdim: bool,
             compute: Scalar, dtype: Any, *numbers: float) -> np.ndarray | None:  # fmt: skip
    """As `reduce` for one result that `join`, a ufunc, makes of the results of parts."""
    found = shape_of(data, axes)
    if found is None or not data.size:
        return None
    form, steps, sizes, kept, order = found
    inputs = (data, *numbers)
    if form == "along":
        out = _along_parts(formula, join, inputs, steps, sizes, compute, dtype)
    else:
        out = _across_parts(formula, join, inputs, steps, sizes, compute, dtype)
    return _shaped(out, data, axes, keepdim, kept, order)


def _along_parts(formula: Formula, join: Any, inputs: Any, steps: tuple[int, int],
                 sizes: tuple[int, ...], compute: Scalar, dtype: Any) -> np.ndarray:  # fmt: skip
    count, segments, n = sizes
    if n < 2 * PART or segments > 1 or count > 16:
        out = np.empty(count, dtype)
        launch("along", formula, compute, inputs, (out,), steps, sizes)
        return out
    if count == 1 and inputs[0].flags.c_contiguous:
        row = (inputs[0].reshape(-1), *inputs[1:])
        return join.reduce(parts_of(formula, row, compute, (dtype,))[0], keepdims=True)
    table = _table(inputs[0], (count, n), (steps[0], 1))
    found = [parts_of(formula, (row, *inputs[1:]), compute, (dtype,))[0] for row in table]
    return np.array([join.reduce(parts) for parts in found], dtype)


def _table(data: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """The array's memory seen with another shape; strides are in elements."""
    steps = tuple(step * data.itemsize for step in strides)
    return np.lib.stride_tricks.as_strided(data, shape, steps)


def parts_of(formula: Formula, inputs: tuple[Any, ...], compute: Scalar,
             dtypes: tuple[Any, ...]) -> tuple[np.ndarray, ...]:  # fmt: skip
    """The results of a formula for every part of one long row; the last part may be shorter."""
    n = inputs[0].size
    whole, rest = divmod(n, PART)
    outputs = tuple([np.empty(whole + (rest > 0), dtype) for dtype in dtypes])
    if whole:
        launch("along", formula, compute, inputs, outputs, (PART, 0), (whole, 1, PART))
    if rest:
        tail = tuple([v[n - rest :] if isinstance(v, np.ndarray) else v for v in inputs])
        last = tuple([out[whole:] for out in outputs])
        launch("along", formula, compute, tail, last, (rest, 0), (1, 1, rest))
    return outputs


def _across_parts(formula: Formula, join: Any, inputs: Any, steps: tuple[int, int],
                  sizes: tuple[int, ...], compute: Scalar, dtype: Any) -> np.ndarray:  # fmt: skip
    """Long columns, of which there are few, are split into groups of rows."""
    outer, n, inner = sizes
    part = max(PART // inner, 64)
    if outer > 1 or inner > 4 * rows.LIMIT or n < 4 * part:
        out = np.empty(outer * inner, dtype)
        launch("across", formula, compute, inputs, (out,), steps, sizes)
        return out
    groups, rest = divmod(n, part)
    out = np.empty((groups + (rest > 0)) * inner, dtype)
    step = steps[1]
    sizes = (groups, part, inner)
    launch("across", formula, compute, inputs, (out,), (part * step, step), sizes)
    if rest:
        start = _table(inputs[0], (n, inner), (step, 1))[n - rest :]
        last = out[groups * inner :]
        launch("across", formula, compute, (start, *inputs[1:]), (last,), (0, step),
                (1, rest, inner))  # fmt: skip
    return join.reduce(out.reshape(-1, inner), 0, dtype)


# ---- the reductions


def _sum_type(dtype: np.dtype[Any]) -> tuple[Scalar, Any]:
    """(the type to add up in, that of the results): sums of floats end in float64."""
    if dtype.kind in "biu":
        return i64, np.int64
    return rows.compute_type(dtype), np.float64


def total(data: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> np.ndarray | None:
    """The sum: float64 of floats, int64 of integers."""
    compute, dtype = _sum_type(data.dtype)
    return in_parts(formulas.sum_of, np.add, data, axes, keepdim, compute, dtype)


def nansum(data: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> np.ndarray | None:
    """The sum of what is not nan, float64."""
    compute, dtype = _sum_type(data.dtype)
    return in_parts(formulas.sum_of_numbers, np.add, data, axes, keepdim, compute, dtype)


def nonzero_count(data: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> np.ndarray | None:
    """How many elements are not 0, int64."""
    compute = rows.compute_type(data.dtype) if data.dtype.kind not in "biu" else i64
    return in_parts(formulas.nonzero_count, np.add, data, axes, keepdim, compute, np.int64)


def product(data: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> np.ndarray | None:
    """The product, in float32 at least, or int64."""
    compute, dtype = _sum_type(data.dtype)
    if compute is f32:
        dtype = np.float32
    return in_parts(formulas.product_of, np.multiply, data, axes, keepdim, compute, dtype)


def extreme(data: np.ndarray, axes: tuple[int, ...], keepdim: bool,
            largest: bool) -> np.ndarray | None:  # fmt: skip
    """The largest or smallest element, in the array's type; half types in float32."""
    formula, join = _EXTREMES[largest]
    compute = rows.compute_type(data.dtype)
    dtype = np.float32 if compute is f32 else data.dtype
    return in_parts(formula, join, data, axes, keepdim, compute, dtype)


_EXTREMES = {True: (formulas.largest, np.maximum), False: (formulas.smallest, np.minimum)}


def truth(data: np.ndarray, axes: tuple[int, ...], keepdim: bool,
          every: bool) -> np.ndarray | None:  # fmt: skip
    """Whether all elements (or any) are not 0, as uint8."""
    formula, join = _TRUTHS[every]
    compute = rows.compute_type(data.dtype)
    return in_parts(formula, join, data, axes, keepdim, compute, np.uint8)


_TRUTHS = {True: (formulas.all_true, np.minimum), False: (formulas.any_true, np.maximum)}


def place(data: np.ndarray, axis: int | None, keepdim: bool, largest: bool) -> Any:
    """(values, int64 places) of the first largest or smallest elements, along a dim or in the
    flattened array.
    """
    if axis is not None and data.shape[axis] >= 1 << 31:  # places are 32-bit numbers in kernels
        return None
    formula = formulas.largest_place if largest else formulas.smallest_place
    compute = rows.compute_type(data.dtype)
    value = np.float32 if compute is f32 else data.dtype
    if axis is not None:
        return reduce(formula, data, (axis,), keepdim, compute, (value, np.int64))
    values, places = parts_of(
        formula, (np.ascontiguousarray(data).reshape(-1),), compute, (value, np.int64)
    )
    part = int((np.argmax if largest else np.argmin)(values))
    kept = (1,) * data.ndim if keepdim else ()
    found = np.array(part * PART + places[part])
    return values[part].reshape(kept), found.reshape(kept)


def moments(data: np.ndarray, axes: tuple[int, ...], keepdim: bool, correction: float) -> Any:
    """(mean, variance) in two passes, in the type to compute in; in float64 where that overflows,
    as values near 1e38 do whose standard deviation is a float32.
    """
    compute = rows.compute_type(data.dtype)
    found = _moments(data, axes, keepdim, compute, correction)
    if found is None or compute is not f32 or np.isfinite(found[1]).all():
        return found
    return _moments(data, axes, keepdim, f64, correction)


def _moments(data: np.ndarray, axes: tuple[int, ...], keepdim: bool, compute: Scalar,
             correction: float) -> Any:  # fmt: skip
    dtype = np.float32 if compute is f32 else np.float64
    if len(axes) < data.ndim or data.size <= PART:
        return reduce(formulas.variance, data, axes, keepdim, compute, (dtype, dtype), correction)
    flat = flattened(data)
    mean = np.add.reduce(parts_of(formulas.sum_of, (flat,), compute, (np.float64,))[0]) / flat.size
    squares = parts_of(formulas.sum_of_centered_squares, (flat, mean), compute, (np.float64,))[0]
    variance = np.add.reduce(squares) / max(flat.size - correction, 0)
    kept = (1,) * data.ndim if keepdim else ()
    return np.full(kept, mean, dtype), np.full(kept, variance, dtype)


def flattened(data: np.ndarray) -> np.ndarray:
    """All elements side by side, in any order; a view where the memory is dense."""
    order = sorted(range(data.ndim), key=lambda d: -data.strides[d])
    return np.ascontiguousarray(data.transpose(order)).reshape(-1)


def norm(data: np.ndarray, axes: tuple[int, ...], keepdim: bool, order: float) -> Any:
    """The vector norm of order 1, 2, inf: sums in float64, the largest in the type to compute in;
    None for other orders.
    """
    compute = rows.compute_type(data.dtype)
    if order == math.inf:
        dtype = np.float32 if compute is f32 else data.dtype
        return in_parts(formulas.largest_size, np.maximum, data, axes, keepdim, compute, dtype)
    formula = {1.0: formulas.sum_of_sizes, 2.0: formulas.sum_of_squares}.get(order)
    if formula is None:
        return None
    found = in_parts(formula, np.add, data, axes, keepdim, compute, np.float64)
    return found if found is None or order == 1 else np.sqrt(found)


def logsumexp(data: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> Any:
    """`log(sum(exp(x)))`, in the type to compute in."""
    compute = rows.compute_type(data.dtype)
    dtype = np.float32 if compute is f32 else np.float64
    found = reduce(formulas.logsumexp, data, axes, keepdim, compute, (dtype,))
    return None if found is None else found[0]
