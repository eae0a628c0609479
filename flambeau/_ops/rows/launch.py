"""Launching row formulas: kernels by formula and types, strides, tasks.

A formula runs in one of two forms: `along` rows, whose places lie side by side in memory (possibly
in segments), or `across` them, with `inner` rows side by side. What a row gives never depends on
the number of tasks; sums over rows (`down`) have one part per task, and their number depends on
the sizes alone.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler import across_text, fuse, row_text
from flambeau._compiler.native import from_source
from flambeau._compiler.types import OF_NUMPY, Scalar, f32, f64, i64
from flambeau._core import settings
from flambeau._ops.rows import kernels as shared
from flambeau._runtime import features
from flambeau._runtime.cpu import address
from flambeau._runtime.launch import Kernel, kernel
from flambeau._runtime.observed import scratch

GRAIN = 1 << 14
"""Elements of a task at least."""

STREAMED = 1 << 23
"""Bytes of a result from which on it is written past the caches."""
LIMIT = 512
"""Rows of a block across rows at most."""
CACHED = 1 << 17
"""Elements of a block across rows that several passes find in the cache."""

SHARED = ("NOWHERE", "joined", "multiply", "seen_nan", "or_nan", "load_part", "store_part")
SCOPE = {name: getattr(shared, name) for name in SHARED}
SCOPE |= {"INF": math.inf, "NAN": math.nan}
INTEGERS = {name: np.iinfo(name) for name in
            ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")}  # fmt: skip


@cache
def compute_type(dtype: np.dtype[Any]) -> Scalar:
    """The type that elements are computed in: f32 for half types, u8 for bools."""
    found = OF_NUMPY[dtype.name]
    if found.is_float and found.bits < 32:
        return f32
    return OF_NUMPY["uint8"] if dtype.kind == "b" else found


@cache
def statics(compute: Scalar) -> dict[str, Any]:
    """The constants of kernels that compute in a type."""
    name = {"f": "float", "i": "int", "u": "uint"}[compute.name[0]]
    low, high = -float("inf"), float("inf")
    if not compute.is_float:
        limits = INTEGERS[f"{name}{compute.bits}"]
        low, high = int(limits.min), int(limits.max)
    return {"A": compute, "WIDE": f64 if compute.is_float else i64,
            "W": features.vector_bits() // compute.bits, "LOW": low, "HIGH": high}  # fmt: skip


@cache
def native(formula: fuse.Formula, kinds: Any, form: str) -> Any:
    """The kernel's text, compiled for no types yet."""
    plan = fuse.plan(formula, kinds)
    text = row_text.along_text(plan) if form == "along" else across_text.across_text(plan)
    functions = {f"math_{name}": _function(name) for name in row_text.functions_of(plan)}
    source = text.replace(f"def {form}(", f"def {formula.name}_{form}(")
    return from_source(f"{formula.name}_{form}", source, {**SCOPE, **functions})


def _function(name: str) -> Any:
    from flambeau._compiler.vector_math import VECTOR_MATH

    return VECTOR_MATH[name]


class Ready:
    """A kernel for one formula, form and set of types, and what its launch has to know."""

    __slots__ = ("form", "item", "kept", "kernel")

    def __init__(self, form: str, formula: fuse.Formula, compute: Scalar, inputs: Any,
                 outputs: Any, stream: bool) -> None:  # fmt: skip
        kinds = tuple(
            (name, None if value is None else kind)
            for (name, kind), value in zip(formula.kinds.items(), inputs, strict=True)
        )
        types = {f"T_{name}": OF_NUMPY[value.dtype.name]
                 for (name, kind), value in zip(kinds, inputs, strict=True)
                 if kind not in (None, "number")}  # fmt: skip
        types |= {f"OUT{k}": OF_NUMPY[value.dtype.name] for k, value in enumerate(outputs)}
        more = {**statics(compute), "STREAM": stream}
        if form == "across":
            more["LIMIT"] = LIMIT
        self.form = form
        self.kernel: Kernel = kernel(native(formula, kinds, form), **types, **more)
        self.kept = len(fuse.plan(formula, kinds).kept)
        self.item = np.dtype(f"f{compute.size}" if compute.is_float else f"i{compute.size}")

    def launch(self, tasks: int, inputs: Any, outputs: Any, sizes: tuple[int, ...],
               steps: tuple[int, int]) -> None:  # fmt: skip
        """One launch; absent parameters are None."""
        self.launch_in(self.room(tasks, sizes), tasks, inputs, outputs, (*sizes, *steps))

    def room(self, tasks: int, sizes: tuple[int, ...]) -> int:
        """Elements that the tasks keep between two passes over rows."""
        elements = sizes[-2] * sizes[-1] if self.form == "along" else sizes[1] * sizes[3]
        return self.kept * tasks * elements

    def launch_in(self, room: int, tasks: int, inputs: Any, outputs: Any,
                  numbers: tuple[int, ...]) -> None:  # fmt: skip
        """The same where the room is known; `numbers` are the sizes and steps."""
        packed = [value for value in (*inputs, *outputs) if value is not None]
        if room:
            packed.append(scratch(room, self.item))
        self.kernel.parallel(tasks, *packed, *numbers)


def types_of(values: tuple[Any, ...]) -> list[int]:
    """What a kernel is made for: the type of each array, one word for numbers, one for nothing."""
    return [v.dtype.num if v.__class__ is ndarray else -1 if v is None else -2 for v in values]


ndarray = np.ndarray
READY: dict[Any, Ready] = {}


def ready(form: str, formula: fuse.Formula, compute: Scalar, inputs: tuple[Any, ...],
          outputs: tuple[Any, ...], stream: bool) -> Ready:  # fmt: skip
    """The kernel for a formula and the types of its parameters and results."""
    key = (form, formula, compute.name, *types_of((*inputs, *outputs)), stream)
    found = READY.get(key)
    if found is None:
        found = READY[key] = Ready(form, formula, compute, inputs, outputs, stream)
    return found


def run(form: str, formula: fuse.Formula, compute: Scalar, inputs: tuple[Any, ...],
        outputs: tuple[Any, ...], steps: tuple[int, int], sizes: tuple[int, ...],
        tasks: int) -> None:  # fmt: skip
    """Launch a formula. `inputs`: an ndarray, a number or None for each parameter; all full arrays
    have the strides `steps`; `sizes` are those of the form: (rows, segments, n), with the period
    of segments before them if there are such parameters, or (outer, n, inner, block).
    """
    stream = outputs[0].nbytes >= STREAMED and _is_aligned(outputs[0], steps)
    found = ready(form, formula, compute, inputs, outputs, stream)
    found.launch(tasks, inputs, outputs, sizes, steps)


def _is_aligned(value: np.ndarray, steps: tuple[int, int]) -> bool:
    """Whether every vector of the array lies on a border of cache lines' parts."""
    size = value.itemsize
    return not (address(value) % 64 or steps[0] * size % 64 or steps[1] * size % 64)


def task_count(work: int, most: int) -> int:
    """How many tasks share some work: none is small, and threads get several each, all of them
    equally many.
    """
    if work < 2 * GRAIN:
        return 1
    threads = settings.get_num_threads()
    return min(most, -(-min(work // GRAIN, 4 * threads) // threads) * threads)


def block_width(outer: int, n: int, inner: int, width: int) -> int:
    """How many rows a block across rows has: its data fits into the cache, and there are blocks
    for all threads.
    """
    wanted = max(CACHED // max(n, 1), 256)
    if outer * inner * n >= 4 * GRAIN:
        wanted = min(wanted, -(-outer * inner // (4 * settings.get_num_threads())))
    return max(min(wanted, inner, LIMIT) // width * width, min(LIMIT, 2 * width))
