"""Compiled reductions: which formula, computed in which type, gives which result.

How an array's dims become rows, and long rows parts, is `reduce_plans`'s.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.fuse import Formula
from flambeau._compiler.types import Scalar, f32, f64, i64
from flambeau._core.settings import get_num_threads
from flambeau._ops.reductions.plans import (
    PART,
    Launch,
    Repeat,
    RepeatInParts,
    plan_of,
    repeat_of,
    tasks_and_sizes,
)
from flambeau._ops.rows import formulas
from flambeau._ops.rows import launch as rows


def reduce(formula: Formula, data: np.ndarray, axes: tuple[int, ...], keepdim: bool,
           compute: Scalar, dtypes: tuple[Any, ...], *numbers: float) -> Any:  # fmt: skip
    """The results of a formula over some dims, one array for each dtype; None where the array's
    memory fits no kernel.
    """
    plan = plan_of(formula, data, axes, keepdim, compute, dtypes)
    return None if plan is None else plan.run(data, numbers)


def in_parts(formula: Formula, join: Any, data: np.ndarray, axes: tuple[int, ...], keepdim: bool,
             compute: Scalar, dtype: Any, *numbers: float) -> np.ndarray | None:  # fmt: skip
    """As `reduce` for one result that `join`, a ufunc, makes of the results of parts."""
    plan = plan_of(formula, data, axes, keepdim, compute, (dtype,), join)
    return None if plan is None else plan.run(data, numbers)[0]


def launch(form: str, formula: Formula, compute: Scalar, inputs: Any, outputs: Any,
           steps: tuple[int, int], sizes: tuple[int, ...], tasks: int = 0) -> None:  # fmt: skip
    """One launch of a formula over rows. Without `tasks` it is split here, and `sizes` are those
    of the form without the block. The split and the kernel are kept for the next launch of the
    kind."""
    if outputs[0].nbytes >= rows.STREAMED:
        if not tasks:
            tasks, sizes = tasks_and_sizes(Launch(form, sizes, steps), compute)
        rows.run(form, formula, compute, inputs, outputs, steps, sizes, tasks)
        return
    key = (form, formula, compute.name, steps, sizes, tasks, get_num_threads(),
           *rows.types_of((*inputs, *outputs)))  # fmt: skip
    found = LAUNCHES.get(key)
    if found is None:
        if len(LAUNCHES) >= MOST_LAUNCHES:
            LAUNCHES.clear()
        ready = rows.ready(form, formula, compute, inputs, outputs, False)
        if not tasks:
            tasks, sizes = tasks_and_sizes(Launch(form, sizes, steps), compute)
        found = LAUNCHES[key] = (
            ready.launch_in, ready.room(tasks, sizes), tasks, (*sizes, *steps)
        )  # fmt: skip
    launch_in, room, tasks, numbers = found
    launch_in(room, tasks, inputs, outputs, numbers)


LAUNCHES: dict[Any, tuple[Any, int, int, tuple[int, ...]]] = {}
MOST_LAUNCHES = 1024


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


def repeat_of_total(data: np.ndarray, axes: tuple[int, ...], keepdim: bool,
                    wide: bool) -> Repeat | RepeatInParts | None:  # fmt: skip
    """The short way to sums of arrays of floats like this one, in their type or float64."""
    compute, widest = _sum_type(data.dtype)
    dtype = widest if wide else data.dtype
    plan = plan_of(formulas.sum_of, data, axes, keepdim, compute, (widest,), np.add)
    if plan is not None and plan.is_direct:
        plan = plan_of(formulas.sum_of, data, axes, keepdim, compute, (dtype,))
        assert plan is not None
        plan.run(data, ())
    return None if plan is None else repeat_of(plan, dtype)


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
    if found is None or compute is not f32 or _are_finite(found[1]):
        return found
    return _moments(data, axes, keepdim, f64, correction)


def _are_finite(variances: np.ndarray) -> bool:
    """Whether the largest is finite; `argmax` finds nan before all numbers."""
    return not variances.size or math.isfinite(variances.item(variances.argmax()))


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


def of_rows(formula: Formula, data: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The result of a formula for each row, in the type to compute in."""
    compute = rows.compute_type(data.dtype)
    dtype = np.float32 if compute is f32 else np.float64
    found = reduce(formula, data, axes, keepdim, compute, (dtype,))
    return None if found is None else found[0]
