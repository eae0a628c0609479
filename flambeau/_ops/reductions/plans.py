"""Plans of reductions: which form fits an array's memory, and how large ones are split.

A plan holds all that depends on shapes, strides and types, so that a call is a few launches. What
is left after the kernels is small, and joined by NumPy: parts of long rows have a fixed length, so
that results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flambeau._compiler.fuse import Formula
from flambeau._compiler.types import Scalar
from flambeau._core import settings
from flambeau._ops.rows import launch as rows
from flambeau._runtime.cpu import address
from flambeau._runtime.launch import WATCHED

PART = 1 << 15
"""Elements of a part of a long row."""


# ---- how the reduced dims lie


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


# ---- launches


class Launch(NamedTuple):
    """One launch: `sizes` and strides of `form`, from an element of the array and a result on."""

    form: str
    sizes: tuple[int, ...]
    steps: tuple[int, int]
    source: int = 0
    target: int = 0


class Split(NamedTuple):
    """The launches of a reduction; their results are `parts` to be joined along `axis`."""

    launches: list[Launch]
    parts: tuple[int, ...]
    axis: int | None = None

    @property
    def results(self) -> int:
        """How many results the launches have."""
        return math.prod(self.parts)


def _whole(form: str, steps: tuple[int, int], sizes: tuple[int, ...]) -> Split:
    """Every row at once."""
    count = sizes[0] if form == "along" else sizes[0] * sizes[2]
    return Split([Launch(form, sizes, steps)], (count,))


def _in_parts(form: str, steps: tuple[int, int], sizes: tuple[int, ...]) -> Split:
    """Long rows, of which there are few, in parts."""
    if form == "along":
        count, segments, n = sizes
        if n >= 2 * PART and segments == 1 and count <= 16:
            return _along_parts(steps[0], count, n)
    else:
        outer, n, inner = sizes
        part = max(PART // inner, 64)
        if outer == 1 and inner <= 4 * rows.LIMIT and n >= 4 * part:
            equal = next((size for size in range(part, part // 2, -1) if n % size == 0), part)
            return _across_parts(steps[1], n, inner, equal)
    return _whole(form, steps, sizes)


def _along_parts(row_step: int, count: int, n: int) -> Split:
    whole, rest = divmod(n, PART)
    found = whole + (rest > 0)
    launches = []
    for row in range(count):
        source, target = row * row_step, row * found
        launches.append(Launch("along", (whole, 1, PART), (PART, 0), source, target))
        if rest:
            source, target = source + n - rest, target + whole
            launches.append(Launch("along", (1, 1, rest), (rest, 0), source, target))
    return Split(launches, (count, found), 1)


def _across_parts(step: int, n: int, inner: int, part: int) -> Split:
    groups, rest = divmod(n, part)
    launches = [Launch("across", (groups, part, inner), (part * step, step))]
    if rest:
        source, target = (n - rest) * step, groups * inner
        launches.append(Launch("across", (1, rest, inner), (0, step), source, target))
    return Split(launches, (groups + (rest > 0), inner), 0)


def tasks_and_sizes(launch: Launch, compute: Scalar) -> tuple[int, tuple[int, ...]]:
    """How many tasks share a launch, and the sizes that its kernel is given."""
    form, sizes = launch.form, launch.sizes
    work = math.prod(sizes)
    if form == "along":
        return rows.task_count(work, sizes[0]), sizes
    outer, n, inner = sizes
    block = rows.block_width(outer, n, inner, rows.statics(compute)["W"])
    return rows.task_count(work, outer * -(-inner // block)), (*sizes, block)


# ---- plans


class Plan:
    """A reduction of arrays of one shape, layout and type."""

    def __init__(self, formula: Formula, data: np.ndarray, axes: tuple[int, ...], keepdim: bool,
                 compute: Scalar, dtypes: tuple[Any, ...], join: Any,
                 shape: Shape) -> None:  # fmt: skip
        self.kernel = shape.form, formula, compute
        self.ready: rows.Ready | None = None  # the kernel, from the first run on
        self.dtypes, self.join = dtypes, join
        split = (_whole if join is None else _in_parts)(shape.form, shape.steps, shape.sizes)
        self.count, self.parts, self.axis = split.results, split.parts, split.axis
        self.launches = [
            (*tasks_and_sizes(launch, compute), *launch[2:]) for launch in split.launches
        ]
        turned = shape.order is not None and len(shape.order) > 1
        self.kept, self.order = shape.kept, shape.order if turned else None
        if keepdim:
            self.shape = tuple([1 if d in axes else n for d, n in enumerate(data.shape)])
        else:
            self.shape = tuple([n for d, n in enumerate(data.shape) if d not in axes])
        self.is_direct = len(self.launches) == 1 and self.axis is None and self.order is None

    def run(self, data: np.ndarray, numbers: tuple[float, ...]) -> tuple[np.ndarray, ...]:
        """The results for an array, one for each dtype."""
        inputs = (data, *numbers)
        shape = self.shape if self.is_direct else self.count
        outputs = tuple([np.empty(shape, dtype) for dtype in self.dtypes])
        ready = self.ready
        if ready is None:
            ready = self.ready = rows.ready(*self.kernel, inputs, outputs, False)
        if self.is_direct:
            tasks, sizes, steps, _, _ = self.launches[0]
            ready.launch(tasks, inputs, outputs, sizes, steps)
            return outputs
        for tasks, sizes, steps, source, target in self.launches:
            if source or target:
                given = (_memory_from(data, source), *numbers)
                ready.launch(tasks, given, [out[target:] for out in outputs], sizes, steps)
            else:
                ready.launch(tasks, inputs, outputs, sizes, steps)
        if self.axis is not None:
            table = outputs[0].reshape(self.parts)
            outputs = (self.join.reduce(table, self.axis, self.dtypes[0]),)
        return tuple([self._shaped(out) for out in outputs])

    def _shaped(self, out: np.ndarray) -> np.ndarray:
        """The results of rows in the order of memory as an array of the kept dims."""
        if self.order is not None:
            out = np.ascontiguousarray(out.reshape(self.kept).transpose(self.order))
        return out.reshape(self.shape)


class Repeat:
    """A reduction by one launch with one result, ready to be run again on arrays that are alike:
    what a small sum costs (benchmarks/small_calls.py) is the way to here and back."""

    __slots__ = ("dtype", "kernel", "rest", "shape", "tasks")

    def __init__(self, plan: Plan) -> None:
        assert plan.ready is not None
        self.tasks, sizes, steps, _, _ = plan.launches[0]
        self.kernel, self.rest = plan.ready.kernel, (*sizes, *steps)
        self.shape, self.dtype = plan.shape, plan.dtypes[0]

    def run(self, data: np.ndarray) -> np.ndarray:
        """The results for an array."""
        out = np.empty(self.shape, self.dtype)
        self.kernel.parallel(self.tasks, data, out, *self.rest)
        return out


class RepeatInParts:
    """The same for a reduction by several launches, whose results are joined."""

    __slots__ = ("dtype", "kernel", "launches", "plan")

    def __init__(self, plan: Plan, dtype: Any) -> None:
        assert plan.ready is not None
        self.plan, self.dtype = plan, dtype
        self.kernel = plan.ready.kernel
        self.launches = [(tasks, (*sizes, *steps), source, target)
                         for tasks, sizes, steps, source, target in plan.launches]  # fmt: skip

    def run(self, data: np.ndarray) -> np.ndarray:
        """The results for an array, in the type that is wanted of them."""
        plan = self.plan
        wide = plan.dtypes[0]
        out = np.empty(plan.count, wide)
        start, end, size, width = address(data), address(out), data.itemsize, out.itemsize
        for tasks, rest, source, target in self.launches:
            self.kernel.parallel(tasks, start + source * size, end + target * width, *rest)
        joined = plan.join.reduce(out.reshape(plan.parts), plan.axis, wide)
        return joined.astype(self.dtype, copy=False).reshape(plan.shape)


def repeat_of(plan: Plan, dtype: Any) -> Repeat | RepeatInParts | None:
    """The short way to results of a type for a plan that has run, if there is one."""
    ready = plan.ready
    if WATCHED or len(plan.dtypes) > 1 or ready is None or ready.kept:
        return None
    if plan.is_direct and plan.dtypes[0] == dtype:
        return Repeat(plan)
    return RepeatInParts(plan, dtype) if plan.axis is not None and plan.order is None else None


def _memory_from(data: np.ndarray, start: int) -> np.ndarray:
    """The memory of an array without gaps from an element on."""
    item = data.itemsize
    size = sum((n - 1) * step for n, step in zip(data.shape, data.strides, strict=True)) // item + 1
    return np.lib.stride_tricks.as_strided(data, (size,), (item,))[start:]


PLANS: dict[Any, Plan | None] = {}
MOST_PLANS = 4096


def plan_of(
    formula: Formula,
    data: np.ndarray,
    axes: tuple[int, ...],
    keepdim: bool,
    compute: Scalar,
    dtypes: tuple[Any, ...],
    join: Any = None,
) -> Plan | None:
    """The plan for a formula over some dims; None where the array's memory fits no kernel, or is
    empty. With `join`, a ufunc, long rows may be split into parts.
    """
    key = (
        formula,
        data.shape,
        data.strides,
        data.dtype.num,
        axes,
        keepdim,
        compute.name,
        dtypes,
        settings.get_num_threads(),
    )
    if key in PLANS:
        return PLANS[key]
    found = shape_of(data, axes) if data.size else None
    plan = None
    if found is not None:
        plan = Plan(formula, data, axes, keepdim, compute, dtypes, join, found)
    if len(PLANS) > MOST_PLANS:
        PLANS.clear()
    PLANS[key] = plan
    return plan
