"""Reductions on GPUs: how dims become rows, and rows that are few and long become parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flambeau._compiler.fuse import Formula
from flambeau._compiler.types import NAMES, Scalar
from flambeau._core.layout import contiguous_strides
from flambeau._ops.cuda import fills, formulas, rows
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.rows import Rows
from flambeau._ops.cuda.table import checked, on_gpu
from flambeau._ops.reductions.sums import accumulation_type
from flambeau._ops.rows import formulas as shared
from flambeau._ops.table.dims import wrap_dims
from flambeau._tensor.device_array import DeviceArray, empty

INT64, BOOL, UINT8 = np.dtype(np.int64), np.dtype(bool), np.dtype(np.uint8)


# ---- dims as rows


def _joined(data: Any, dims: list[int]) -> list[tuple[int, int]]:
    """(size, step in elements) of some dims, those joined that are as one."""
    found: list[tuple[int, int]] = []
    for d in dims:
        size, step = data.shape[d], data.strides[d] // data.itemsize
        if size == 1:
            continue
        if found and found[-1][1] == size * step:
            found[-1] = (found[-1][0] * size, step)
        else:
            found.append((size, step))
    return found


def rows_over(data: Any, axes: tuple[int, ...]) -> Rows | None:
    """The rows that lie along some dims, in the order of the others; None where there are more
    dims than rows have."""
    kept = _joined(data, [d for d in range(data.ndim) if d not in axes])
    along = _joined(data, [d for d in range(data.ndim) if d in axes])
    if len(kept) > 2 or len(along) > 2:  # noqa: PLR2004
        return None
    kept = [(1, 0)] * (2 - len(kept)) + kept
    along = [(1, 0)] * (2 - len(along)) + along
    (outer, outer_step), (inner, inner_step) = kept
    (segments, segment_step), (n, step) = along
    if inner_step != 1 and outer == 1:  # rows that do not lie side by side
        outer, outer_step, inner, inner_step = inner, inner_step, 1, 0
    return Rows(outer, inner, outer_step, inner_step, segments, n, segment_step, step or 1)


def _in_order(data: Any, axes: tuple[int, ...]) -> tuple[Any, Rows]:
    """An array and its rows: a copy with the reduced dims last, where memory fits no kernel."""
    found = rows_over(data, axes)
    if found is not None:
        return data, found
    order = [*[d for d in range(data.ndim) if d not in axes], *axes]
    turned = data.transpose(order)
    copied = fills.new(turned.shape, None, data.dtype, data)
    if not fills.copy(copied, turned):
        raise NotImplementedError(NAMES[data.dtype])
    length = math.prod([data.shape[d] for d in axes])
    return copied, rows.matrix(data.size // max(length, 1), length)


def shape_of(data: Any, axes: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The shape of what comes of a reduction."""
    if keepdim:
        return tuple(1 if d in axes else n for d, n in enumerate(data.shape))
    return tuple(n for d, n in enumerate(data.shape) if d not in axes)


def _like(data: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return empty(shape, contiguous_strides(shape), np.dtype(dtype), data.place.index or 0)


WORKING = {"f32": np.float32, "f64": np.float64, "i64": np.int64}


def reduce(data: Any, axes: tuple[int, ...], keepdim: bool, dtype: Any, whole: Formula,
           begin: Formula | None = None, end: Formula | None = None, *, given: tuple[Any, ...] = (),
           last: tuple[Any, ...] = (), compute: Scalar | None = None) -> Any:  # fmt: skip
    """One result of a formula over some dims.

    Args:
        whole: what gives the result of a row; `begin` of a part of one, `end` of what parts gave.
        given: further parameters of `whole` (numbers), and of `begin` what it has of them.
        last: further parameters of `end`.
    """
    out = _like(data, shape_of(data, axes, keepdim), dtype)
    data, view = _in_order(data, axes)
    computed = compute or rows.compute_type(data.dtype)
    parts = rows.parts_for(view, data.itemsize) if begin is not None and end is not None else 1
    short = rows.shorter(view, data) if parts > 1 else 0
    if parts == 1:
        rows.run(whole, computed, (data, *given), (out,), view)
        return out
    assert begin is not None and end is not None  # noqa: PT018
    more = given[: len(begin.kinds) - 1]
    if short:
        parts = view.n // short
        pieces = _like(data, (view.count, parts), WORKING[computed.name])
        rows.run(begin, computed, (data, *more), (pieces,), rows.matrix(view.count * parts, short))
    else:
        pieces = _like(data, (view.count, parts), WORKING[computed.name])
        rows.run(begin, computed, (data, *more), (pieces,), view, parts=parts)
    rows.run(end, computed, (pieces, *last), (out,), rows.matrix(view.count, parts))
    return out


# ---- rows


def either_way(row: str, other: str) -> Callable[[Any], Any]:
    """Register a function whose first parameter says which of two rows it computes: True for the
    first."""

    def register(kernel: Any) -> Any:
        for name, first in ((row, True), (other, False)):
            on_gpu(name)(repeated(checked(partial(kernel, first))))
        return kernel

    return register


@on_gpu("sum.dim_IntList")
@repeated
@checked
def sum_(data: DeviceArray, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum over dims."""
    return _total(data, dim, keepdim, dtype, shared.sum_of)


@on_gpu("nansum")
@repeated
@checked
def nansum(data: DeviceArray, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum of what is not nan."""
    floats = data.dtype.kind in "fV"
    return _total(data, dim, keepdim, dtype, shared.sum_of_numbers if floats else shared.sum_of)


def _total(data: DeviceArray, dim: Any, keepdim: bool, dtype: Any, formula: Formula) -> Any:
    if data.dtype.kind == "c":
        return NotImplemented
    result, _ = accumulation_type(data, dtype)
    same_kind = (data.dtype.kind in "fV") == (result.kind in "fV")
    if result.kind in "cb" or not same_kind or NAMES[data.dtype].startswith("float8"):
        return NotImplemented
    axes = wrap_dims(dim, data.ndim)
    return reduce(data, axes, keepdim, result, formula, formula, shared.sum_of,
                  compute=_wider(data, result))  # fmt: skip


def _wider(data: Any, result: np.dtype[Any]) -> Scalar:
    return rows.compute_type(result if result.itemsize > data.dtype.itemsize else data.dtype)


@on_gpu("mean.dim")
@repeated
@checked
def mean(data: DeviceArray, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The average over dims."""
    result = data.dtype if dtype is None else dtype.numpy_dtype
    if data.dtype.kind not in "fV" or result.kind not in "fV":
        return NotImplemented
    axes = wrap_dims(dim, data.ndim)
    count = float(math.prod([data.shape[d] for d in axes]))
    return reduce(data, axes, keepdim, result, formulas.mean_of, shared.sum_of, formulas.mean_of,
                  given=(count,), last=(count,), compute=_wider(data, result))  # fmt: skip


@on_gpu("prod.dim_int")
@repeated
@checked
def prod(data: DeviceArray, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The product over a dim, or of all."""
    result, _ = accumulation_type(data, dtype)
    if data.dtype.kind == "c" or (data.dtype.kind in "fV") != (result.kind in "fV"):
        return NotImplemented
    axes = wrap_dims(dim, data.ndim)
    return reduce(data, axes, keepdim, result, shared.product_of, shared.product_of,
                  shared.product_of, compute=_wider(data, result))  # fmt: skip


def _extreme(data: DeviceArray, axes: tuple[int, ...], keepdim: bool, largest: bool) -> Any:
    if not data.size or data.dtype.kind == "c" or NAMES[data.dtype] == "uint64":
        return NotImplemented
    formula = shared.largest if largest else shared.smallest
    return reduce(data, axes, keepdim, data.dtype, formula, formula, formula)


@either_way("amax", "amin")
def extreme(largest: bool, data: DeviceArray, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest or smallest elements over dims."""
    return _extreme(data, wrap_dims(dim, data.ndim), keepdim, largest)


@either_way("max", "min")
def extreme_of_all(largest: bool, data: DeviceArray) -> Any:
    """The largest or smallest element."""
    return _extreme(data, tuple(range(data.ndim)), False, largest)


def _with_place(data: DeviceArray, dim: Any, keepdim: bool, largest: bool) -> Any:
    """(extreme, its first place) along a dim, or of all elements in row-major order."""
    axes = wrap_dims(dim, data.ndim)
    if dim is None and not data.flags.c_contiguous:
        copied = fills.new(data.shape, None, data.dtype, data)
        if not fills.copy(copied, data):
            return NotImplemented
        data = copied
    if not data.size or (data.dtype.kind == "u" and data.itemsize == 8):
        return NotImplemented
    shape, compute = shape_of(data, axes, keepdim), rows.compute_type(data.dtype)
    place = _like(data, shape, INT64)
    ordered, view = _in_order(data, axes)
    parts = rows.parts_for(view, data.itemsize)
    if parts == 1:
        found = _like(data, shape, data.dtype)
        formula = shared.largest_place if largest else shared.smallest_place
        rows.run(formula, compute, (ordered,), (found, place), view)
        return found, place
    found = _extreme(data, axes, keepdim, largest)
    data = ordered
    pieces = _like(data, (view.count, parts), WORKING[compute.name])
    rows.run(formulas.place_of, compute, (data, found), (pieces,), view, parts=parts)
    rows.run(shared.smallest, compute, (pieces,), (place,), rows.matrix(view.count, parts))
    return found, place


EXACT = {"f32": 1 << 24, "f64": 1 << 53, "i64": 1 << 62}
"""Places that numbers of a type hold."""


@either_way("max.dim", "min.dim")
def extreme_along(largest: bool, data: DeviceArray, dim: Any, keepdim: bool = False) -> Any:
    """The largest or smallest elements along a dim, and their places."""
    count = data.size if dim is None or not data.ndim else data.shape[wrap_dims(dim, data.ndim)[0]]
    if data.dtype.kind == "c" or count > EXACT[rows.compute_type(data.dtype).name]:
        return NotImplemented
    return _with_place(data, dim, keepdim, largest)


@either_way("argmax", "argmin")
def place(largest: bool, data: DeviceArray, dim: Any = None, keepdim: bool = False) -> Any:
    """The place of the first largest or smallest element."""
    if data.dtype.kind == "b":
        return NotImplemented
    found = extreme_along(largest, data, dim, keepdim)
    return found if found is NotImplemented else found[1]


@either_way("all.dims", "any.dims")
def truth(every: bool, data: DeviceArray, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether every element, or any, is not 0."""
    if data.dtype.kind == "c" or (isinstance(dim, (tuple, list)) and not dim):
        return NotImplemented
    result = UINT8 if data.dtype == UINT8 else BOOL
    first = shared.all_true if every else shared.any_true
    then = shared.smallest if every else shared.largest
    axes = wrap_dims(dim, data.ndim)
    if not data.size:
        return NotImplemented
    return reduce(data, axes, keepdim, result, first, first, then)


@on_gpu("count_nonzero.dim_IntList")
@repeated
@checked
def count_nonzero(data: DeviceArray, dim: Any = None) -> Any:
    """How many elements are not 0."""
    if data.dtype.kind not in "biu":
        return NotImplemented
    axes = wrap_dims(dim, data.ndim)
    return reduce(data, axes, False, INT64, shared.nonzero_count, shared.nonzero_count,
                  shared.sum_of)  # fmt: skip


def of_formula(formula: Formula) -> Callable[..., Any]:
    """What computes a reduction of the kind `rows`."""

    @repeated
    @checked
    def computed(data: DeviceArray, dim: Any, keepdim: bool = False) -> Any:
        if data.dtype.kind not in "fV" or not data.size:
            return NotImplemented
        return reduce(data, wrap_dims(dim, data.ndim), keepdim, data.dtype, formula)

    return computed


@on_gpu("vector_norm")
@repeated
@checked
def vector_norm(data: DeviceArray, order: Any = 2, dim: Any = None, keepdim: bool = False,
                dtype: Any = None) -> Any:  # fmt: skip
    """The norm of order 1, 2 or inf over dims."""
    if data.dtype.kind not in "fV" or isinstance(order, complex) or not data.size:
        return NotImplemented
    if dtype is not None and dtype.numpy_dtype != data.dtype:
        return NotImplemented
    forms = {
        2.0: (formulas.length_of, shared.sum_of_squares, formulas.root_of_total),
        1.0: (shared.sum_of_sizes, shared.sum_of_sizes, shared.sum_of),
        math.inf: (shared.largest_size, shared.largest_size, shared.largest),
    }
    if float(order) not in forms:
        return NotImplemented
    return reduce(data, wrap_dims(dim, data.ndim), keepdim, data.dtype, *forms[float(order)])


# ---- variance


def _moments(data: DeviceArray, dim: Any, correction: Any, keepdim: bool, root: bool) -> Any:
    """(variance or its root, mean)."""
    axes = wrap_dims(dim, data.ndim)
    count = math.prod([data.shape[d] for d in axes])
    freedom = count - (1 if correction is None else correction)
    if data.dtype.kind not in "fV" or not data.size or freedom <= 0:
        return NotImplemented
    compute = rows.compute_type(data.dtype)
    middle = reduce(data, axes, keepdim, WORKING[compute.name], formulas.mean_of, shared.sum_of,
                    formulas.mean_of, given=(float(count),), last=(float(count),))  # fmt: skip
    out = _like(data, shape_of(data, axes, keepdim), data.dtype)
    data, view = _in_order(data, axes)
    parts = rows.parts_for(view, data.itemsize)
    if parts == 1:
        formula = formulas.deviation_about if root else formulas.variance_about
        rows.run(formula, compute, (data, middle, float(freedom)), (out,), view)
    else:
        pieces = _like(data, (view.count, parts), WORKING[compute.name])
        rows.run(formulas.squares_about, compute, (data, middle), (pieces,), view, parts=parts)
        formula = formulas.root_of_mean if root else formulas.mean_of
        rows.run(formula, compute, (pieces, float(freedom)), (out,), rows.matrix(view.count, parts))
    return out, middle


@either_way("_std", "_var")
def spread(root: bool, data: DeviceArray, dim: Any = None, correction: Any = None,
           keepdim: bool = False) -> Any:  # fmt: skip
    """The standard deviation, or the variance, over dims."""
    found = _moments(data, dim, correction, keepdim, root)
    return found if found is NotImplemented else found[0]


@either_way("_std_mean", "_var_mean")
def spread_and_mean(root: bool, data: DeviceArray, dim: Any = None, correction: Any = None,
                    keepdim: bool = False) -> Any:  # fmt: skip
    """Standard deviation or variance over dims, and mean."""
    found = _moments(data, dim, correction, keepdim, root)
    return found if found is NotImplemented else _in_own_type(found, data)


def _in_own_type(found: Any, data: Any) -> Any:
    spread, middle = found
    if middle.dtype == data.dtype:
        return spread, middle
    mean = _like(data, middle.shape, data.dtype)
    return (spread, mean) if fills.copy(mean, middle) else NotImplemented
