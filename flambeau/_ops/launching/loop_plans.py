"""Elementwise kernels for given arrays: collapse dims, choose layouts, split into tasks, launch.

A `Fusion` is a row (or a formula) in one type. For every combination of shapes and strides it makes
a `Plan` once; a call with a known plan allocates the result, packs pointers and launches.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np

from flambeau._compiler import loops
from flambeau._compiler.expr import Expr
from flambeau._compiler.kernel_source import NoForm, conditions, fixed_number, static_parameters
from flambeau._compiler.loops import Loop, Operand
from flambeau._compiler.types import OF_NUMPY, Scalar, b8
from flambeau._core import settings
from flambeau._runtime import choice, features, launch
from flambeau._runtime.cpu import address
from flambeau._runtime.inline_cache import Argument, InlineCache, Result
from flambeau._runtime.observed import observers
from flambeau._runtime.warming import Warming

empty = np.empty
TASK = 5_000
"""Nanoseconds of work from which on a task of its own is worth while, by a rough estimate."""
TASKS_PER_THREAD = 4
MOST_PLANS = 512
NARROW = 8
"""Rows shorter than this are not worth a loop of their own."""
LONG = 32
"""Rows of so many elements cost hardly more than longer ones."""


@cache
def last_cache() -> int:
    """Bytes of the last-level cache; results beyond it are written past the caches."""
    try:
        found = os.sysconf("SC_LEVEL3_CACHE_SIZE")
    except (ValueError, OSError):
        found = 0
    return found or 16 << 20


@dataclass(slots=True)
class Plan:
    """A kernel and its arguments besides the pointers."""

    kernel: launch.Kernel
    shape: tuple[int, ...]
    dtypes: tuple[Any, ...]
    pointers: tuple[int, ...] | None  # which operands the kernel reads; None for all
    rest: tuple[Any, ...]
    tasks: int
    table: np.ndarray
    align: int
    words: tuple[int, ...] | None  # `rest` as numbers, for the one task of a small loop
    is_plain: bool  # such a loop with one result, which reads all operands

    def run(self, arrays: Sequence[np.ndarray], outs: Any) -> Any:
        """Launch; new row-major memory takes the results where `outs` is None."""
        if outs is None:
            outs = [empty(self.shape, dtype) for dtype in self.dtypes]
        if self.pointers is not None:
            arrays = [arrays[k] for k in self.pointers]
        if self.words is not None:
            self.kernel.once(*arrays, *outs, *self.words)
        elif not self.tasks:  # no elements
            pass
        elif self.align:
            skip = -address(outs[0]) % self.align // outs[0].itemsize
            self.kernel.parallel(self.tasks, *arrays, *outs, *self.rest, skip)
        else:
            self.kernel.parallel(self.tasks, *arrays, *outs, *self.rest)
        return outs


class Fusion:
    """Expressions of named parameters, computed in one type by one loop."""

    def __init__(self, title: str, results: Sequence[Expr], names: Sequence[str],
                 compute: np.dtype[Any], dtypes: Sequence[np.dtype[Any]]) -> None:  # fmt: skip
        self.title = title
        self.results = tuple(results)
        self.names = tuple(names)
        self.compute = OF_NUMPY[compute.name]
        self.dtypes = tuple(dtypes)
        fixed = set().union(*[static_parameters(result) for result in results])
        self.fixed = [k for k, name in enumerate(names) if name in fixed]
        self.conditions = conditions(results)
        self.plans: dict[Any, Plan | None] = {}
        self.kernels: dict[Any, tuple[launch.Kernel, loops.Kernel]] = {}
        self.inline: Any = Warming(self.__dict__, "inline", lambda: self._learn)

    def plan(self, arrays: Sequence[np.ndarray], outs: Any = None) -> Plan | None:
        """What a call does; None where there is no kernel."""
        key: Any = (settings.get_num_threads(), outs is None or describe(arrays, outs),
                    *[(a.shape, a.strides, a.dtype.num) for a in arrays])  # fmt: skip
        if self.fixed:
            key += tuple([arrays[k].item() for k in self.fixed])
        plan = self.plans.get(key, self)
        if plan is self:
            if len(self.plans) >= MOST_PLANS:
                self.plans.clear()
            plan = self.plans[key] = self._plan(arrays, outs)
        return plan  # type: ignore[return-value]

    def describe(self, cache: InlineCache, arrays: Sequence[np.ndarray], inplace: bool,
                 tensors: int | None = None) -> bool:  # fmt: skip
        """Let an inline cache know a call, if it is one task; whether it is.

        Args:
            inplace: written to arrays[0].
            tensors: from this position on, arrays are numbers, which nobody writes to.
        """
        if any(tensors is None or k < tensors for k in self.fixed):  # it depends on a number
            return False
        plan = self.plan(arrays, (arrays[0],) if inplace else None)
        if plan is None or plan.words is None or len(plan.dtypes) > 1:
            return False
        read = range(len(arrays)) if plan.pointers is None else plan.pointers
        slots = [*map(Argument, read), Argument(0) if inplace else Result(0)]
        result = 0 if inplace else (plan.dtypes[0], plan.shape)
        given = tensors if self.fixed else None
        cache.keep(arrays, [result], [*slots, *plan.words], plan.kernel.address, given=given,
                   alive=plan)  # fmt: skip
        return True

    def _learn(self, cache: InlineCache, *arrays: Any) -> None:
        if all(a.__class__ is np.ndarray for a in arrays) and fit(arrays):
            self.describe(cache, arrays, False)

    def run(self, arrays: Sequence[np.ndarray], outs: Any = None) -> Any:
        """The results, in `outs` or in new row-major memory; None where there is no kernel."""
        if outs is None and not observers:
            found = self.inline(*arrays)
            if found is not None:
                return (found,)
        plan = self.plan(arrays, outs)
        if plan is None:
            return None
        if plan.is_plain and outs is None:  # what small operators cost is the way to here
            out = empty(plan.shape, plan.dtypes[0])
            plan.kernel.once(*arrays, out, *plan.words)  # type: ignore[misc]
            return (out,)
        return plan.run(arrays, outs)

    def _plan(self, arrays: Sequence[np.ndarray], outs: Any) -> Plan | None:
        try:
            return make_plan(self, arrays, outs)
        except (NoForm, choice.KernelMissing):
            return None

    def kernel(self, loop: Loop) -> tuple[launch.Kernel, loops.Kernel]:
        """The compiled kernel of a loop."""
        key = (loop.inputs, loop.outputs, loop.flat, loop.stream)
        found = self.kernels.get(key)
        if found is None:
            made = loops.build(loop, features.vector_bits())
            found = self.kernels[key] = (launch.kernel(made.native, W=made.width), made)
        return found


def fit(arrays: Sequence[np.ndarray]) -> bool:
    """Whether arrays broadcast to a shape with elements; where not, the call itself says so."""
    try:
        return 0 not in np.broadcast_shapes(*[a.shape for a in arrays])
    except ValueError:
        return False


def describe(arrays: Sequence[np.ndarray], outs: Any) -> Any:
    """The layout of given memory, and whether operands lie in it."""
    meeting = [_meeting(out, array) for out in outs for array in arrays]
    return (max(meeting, default=0), *[(out.shape, out.strides, out.dtype.num) for out in outs])


def _meeting(out: np.ndarray, array: np.ndarray) -> int:
    """0: apart; 1: element by element the same memory; 2: the one lies across the other."""
    if out is array:
        return 1
    if not np.may_share_memory(out, array):
        return 0
    same = address(out) == address(array) and out.itemsize == array.itemsize
    return 1 if same and out.shape == array.shape and out.strides == array.strides else 2


# ---- plans


def make_plan(fusion: Fusion, arrays: Sequence[np.ndarray], outs: Any) -> Plan | None:
    """Everything about a call but the addresses."""
    meeting = 0 if outs is None else describe(arrays, outs)[0]
    if meeting > 1:
        return None
    shape = np.broadcast_shapes(*[a.shape for a in arrays]) if outs is None else outs[0].shape
    fixed = {k: _fixed(fusion, arrays[k]) for k in fusion.fixed}
    used = [k for k in range(len(arrays)) if fixed.get(k) is None]
    dtypes = fusion.dtypes if outs is None else [out.dtype for out in outs]
    types = [type_of(arrays[k].dtype) for k in used] + [type_of(dtype) for dtype in dtypes]
    given = [arrays[k] for k in used]
    strides = [steps_of(array, shape) for array in given]
    if outs is None:
        strides += [_row_major(shape)] * len(dtypes)
    else:
        strides += [steps_of(out, shape) for out in outs]
    nest = Nest(shape, strides, len(given))
    inputs = _operands(fusion, arrays, fixed, used, types, nest)
    outputs = tuple(
        Operand(f"y{k}", types[len(used) + k], nest.layouts[len(used) + k])
        for k in range(len(dtypes))
    )
    moved = sum(a.nbytes for a in given) + prod(shape) * sum(d.itemsize for d in dtypes)
    stream = nest.is_flat and meeting == 0 and moved > last_cache() and len(dtypes) == 1
    loop = Loop(fusion.title, fusion.results, fusion.names, fusion.compute, inputs, outputs,
                nest.is_flat, stream)  # fmt: skip
    kernel, made = fusion.kernel(loop)
    estimate = 0.015 * moved + 0.04 * made.cost * prod(shape)
    tasks = _tasks(prod(shape), estimate)
    rest = nest.arguments(tasks, made.tiled, stream)
    align = made.width * dtypes[0].itemsize if stream else 0
    words = None
    if tasks == 1 and estimate < 2 * TASK and not align and not launch.WATCHED:
        words = tuple([address(word) if word is nest.table else word for word in rest])
    pointers = tuple(used) if len(used) < len(arrays) else None
    is_plain = words is not None and pointers is None and len(dtypes) == 1
    return Plan(kernel, shape, tuple(dtypes), pointers, rest, tasks, nest.table, align, words,
                is_plain)  # fmt: skip


def _fixed(fusion: Fusion, array: np.ndarray) -> Any:
    if array.ndim:
        return None
    number = array.item()
    return number if fixed_number(fusion.compute, number) else None


def type_of(dtype: np.dtype[Any]) -> Scalar:
    """The element type of an array. Raises NoForm for complex numbers and float8."""
    found = OF_NUMPY.get(dtype.name)
    if found is None:
        raise NoForm(dtype.name)
    return found


def _operands(fusion: Fusion, arrays: Sequence[np.ndarray], fixed: dict[int, Any], used: list[int],
              types: list[Scalar], nest: Nest) -> tuple[Operand, ...]:  # fmt: skip
    operands = []
    for k in range(len(fusion.names)):
        if fixed.get(k) is not None:
            operands.append(Operand(f"x{k}", fusion.compute, "S", fixed=fixed[k]))
            continue
        place = used.index(k)
        chooses = fusion.names[k] in fusion.conditions and types[place] is b8
        operands.append(Operand(f"x{k}", types[place], nest.layouts[place],
                                rounded=arrays[k].ndim > 0, condition=chooses))  # fmt: skip
    return tuple(operands)


def steps_of(array: np.ndarray, shape: tuple[int, ...]) -> list[int]:
    """Steps of an operand along the dims of the result, in elements; 0 where it is broadcast."""
    if array.ndim > len(shape):
        raise NoForm("more dims than the result")
    steps = [0] * (len(shape) - array.ndim)
    for size, wanted, step in zip(array.shape, shape[len(steps) :], array.strides, strict=True):
        if size not in (1, wanted):
            raise NoForm("another shape than the result")
        if step % array.itemsize:
            raise NoForm("elements that are not aligned")
        steps.append(0 if size == 1 and wanted != 1 else step // array.itemsize)
    return steps


def _row_major(shape: tuple[int, ...]) -> list[int]:
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return steps[::-1]


def _tasks(size: int, estimate: float) -> int:
    """How many tasks work of so many nanoseconds is worth."""
    if not size:
        return 0
    threads = settings.get_num_threads()
    return max(1, min(int(estimate / TASK), TASKS_PER_THREAD * threads)) if threads > 1 else 1


class Nest:
    """Collapsed dims: sizes and steps of every operand, innermost dim last."""

    def __init__(self, shape: tuple[int, ...], strides: list[list[int]], inputs: int) -> None:
        kept = [d for d, size in enumerate(shape) if size != 1]
        result = strides[inputs]
        kept.sort(key=lambda d: -abs(result[d]))
        self.dims = [(shape[d], tuple(s[d] for s in strides)) for d in kept]
        self._collapse()
        if not self.dims:
            self.dims = [(1, tuple(1 if k >= inputs else 0 for k in range(len(strides))))]
        self._choose_inner()
        self.inputs = inputs
        self.layouts = self._layouts()
        outer = self.dims[:-1][::-1]
        if "T" in self.layouts:
            outer = outer[1:]
        if len(outer) > loops.MOST_DIMS:
            raise NoForm("too many dims")
        self.outer = outer
        words = [word for size, steps in outer for word in (size, *steps)]
        self.table = np.array(words or [0], np.int64)

    def _collapse(self) -> None:
        """Join dims that every operand steps through as through one."""
        joined: list[tuple[int, tuple[int, ...]]] = []
        for size, steps in self.dims:
            if joined:
                above, far = joined[-1]
                if all(a == b * size for a, b in zip(far, steps, strict=True)):
                    joined[-1] = (above * size, steps)
                    continue
            joined.append((size, steps))
        self.dims = joined

    def _choose_inner(self) -> None:
        """A longer dim takes the place of a short innermost one: the nearest that is long enough,
        so that what a row passes over is still in the cache when the next one fills its gaps."""
        if self.dims[-1][0] >= NARROW:
            return
        enough = min(LONG, max(size for size, _ in self.dims))
        nearest = max(d for d, (size, _) in enumerate(self.dims) if size >= enough)
        if self.dims[nearest][0] >= NARROW:
            self.dims.append(self.dims.pop(nearest))

    def _layouts(self) -> list[str]:
        size, inner = self.dims[-1]
        layouts = ["S" if step == 0 else "C" if step == 1 or size == 1 else "G" for step in inner]
        for k in range(self.inputs, len(inner)):
            layouts[k] = "G" if inner[k] != 1 and size > 1 else "C"
        middle = self._turning(layouts)
        if middle is not None:
            self.dims.insert(-1, self.dims.pop(middle))
            steps = self.dims[-2][1]
            for k in range(self.inputs):
                if layouts[k] == "G" and steps[k] == 1:
                    layouts[k] = "T"
        return layouts

    def _turning(self, layouts: list[str]) -> int | None:
        """The dim along which elements of a strided operand follow each other."""
        if self.dims[-1][0] < NARROW:
            return None
        for k in range(self.inputs):
            for d, (size, steps) in enumerate(self.dims[:-1]):
                if layouts[k] == "G" and steps[k] == 1 and size >= NARROW:
                    return d
        return None

    @property
    def is_flat(self) -> bool:
        """Whether all is one row of elements that follow each other."""
        return len(self.dims) == 1 and not set(self.layouts) & {"G", "T"}

    def arguments(self, tasks: int, tiled: bool, stream: bool) -> tuple[Any, ...]:
        """The kernel's arguments behind the pointers."""
        size, inner = self.dims[-1]
        if self.is_flat:
            return (size,) if stream else (size, 0)
        steps = [s for s, layout in zip(inner, self.layouts, strict=True) if layout in "GT"]
        rows = prod(n for n, _ in self.outer)
        head = (*steps, self.table, len(self.outer), size, rows)
        if tiled:
            middle, far = self.dims[-2]
            mids = [s for s, layout in zip(far, self.layouts, strict=True) if layout != "T"]
            return (*head, middle, *mids)
        parts = 1 if rows >= tasks else -(-tasks // max(rows, 1))
        return (*head, min(parts, max(1, size // 256)))
