"""Launching row formulas on GPUs: which form, how many threads a row, how many parts.

The formulas are those of the CPU (`_ops/rows/formulas.py`). What a row gives depends on its length
and on how it lies, not on the other rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from flambeau._compiler import fuse
from flambeau._compiler.gpu.pointwise_text import divided, divisor
from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.gpu.row_text import LoopWriter, RegisterWriter
from flambeau._compiler.gpu.words import WORDS
from flambeau._compiler.native import from_source
from flambeau._compiler.row_text import functions_of
from flambeau._compiler.types import OF_NUMPY, Scalar, f32, f64, i64
from flambeau._ops.cuda.kernels import fast, joining
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.launch import Kernel, kernel

THREADS = 256
HALVES = ("float16", "bfloat16")
WIDEST = 16
LONGEST = 64 * 512
"""Elements of a row that registers hold."""
UNROLL = 4
PART = 1 << 14
"""Elements of a part of a long row at least."""
PART_ACROSS = 1 << 8
"""The same of rows that lie side by side."""
MOST_PARTS = 1056
BLOCKS = 1056
"""Blocks that keep a GPU busy (8 for each of 132 processors): with fewer, long rows are split."""
BUSY = 1 << 18
"""Threads that do so."""
SCOPE = {**WORDS, **{name: value for name, value in vars(joining).items() if name[:1] != "_"},
         "INF": math.inf, "NAN": math.nan, "divided": divided}  # fmt: skip
LOW = {"f": -math.inf, "i": -(1 << 63)}
HIGH = {"f": math.inf, "i": (1 << 63) - 1}


@dataclass(frozen=True, slots=True)
class Rows:
    """How rows lie in memory, in elements: `outer * inner` of them, each of `segments` segments of
    n elements. All arrays with an element for every place lie alike."""

    outer: int
    inner: int
    outer_step: int
    inner_step: int
    segments: int
    n: int
    segment_step: int
    step: int

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.outer * self.inner

    @property
    def length(self) -> int:
        """Elements of a row."""
        return self.segments * self.n

    @property
    def is_plain(self) -> bool:
        """Whether all is one row-major matrix."""
        return (self.inner, self.segments, self.step) == (1, 1, 1) and self.outer_step == self.n


def matrix(count: int, n: int) -> Rows:
    """Rows of a row-major matrix."""
    return Rows(count, 1, n, 0, 1, n, 0, 1)


def columns(outer: int, n: int, inner: int) -> Rows:
    """Rows along the middle one of three row-major dims."""
    if inner == 1:
        return matrix(outer, n)
    return Rows(outer, inner, n * inner, 1, 1, n, 0, inner)


def compute_type(dtype: np.dtype[Any]) -> Scalar:
    """The type that rows are computed in: f32 for half types, i64 for all integers and bools."""
    if dtype.kind in "biu":
        return i64
    return f64 if dtype.itemsize == f64.size else f32


def run(formula: fuse.Formula, compute: Scalar, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
        rows: Rows, period: int = 0, parts: int = 1) -> None:  # fmt: skip
    """Launch a formula.

    Args:
        inputs: a device array, a number or None for each parameter.
        outputs: a device array for each result; those of rows have `parts` numbers for each row.
        period: after how many rows parameters of segments repeat.
        parts: of a row; each gives results as if it were a row of its own.
    """
    if not rows.count:
        return
    arrays = [v for v in (*inputs, *outputs) if isinstance(v, np.ndarray)]
    aligned = all(address(a) % WIDEST == 0 for a in arrays)
    kinds = tuple(None if v is None else v.dtype.name if isinstance(v, np.ndarray) else "number"
                  for v in inputs)  # fmt: skip
    dtypes = tuple(out.dtype.name for out in outputs)
    ready = _ready(formula, compute.name, kinds, dtypes, rows, parts, aligned)
    listed = [v for v in (*inputs, *outputs) if v is not None]
    ready.kernel(ready.blocks, *listed, *([period] if ready.segmented else []), *ready.sizes)


@dataclass(frozen=True, slots=True)
class Ready:
    """A kernel, its blocks, and its arguments besides arrays."""

    kernel: Kernel
    blocks: int
    sizes: tuple[int, ...]
    segmented: bool


@lru_cache(4096)
def _ready(formula: fuse.Formula, compute: str, inputs: tuple[Any, ...], outputs: tuple[str, ...],
           rows: Rows, parts: int, aligned: bool) -> Ready:  # fmt: skip
    kinds = tuple((name, None if given is None else kind)
                  for (name, kind), given in zip(formula.kinds.items(), inputs, strict=True))  # fmt: skip
    plan = fuse.Plan(formula, kinds)
    plan.kept = {}  # to compute again is cheaper here than to store
    statics: dict[str, Any] = {f"T_{name}": OF_NUMPY[given]
                               for (name, kind), given in zip(kinds, inputs, strict=True)
                               if kind not in (None, "number")}  # fmt: skip
    statics |= {f"OUT{k}": OF_NUMPY[dtype] for k, dtype in enumerate(outputs)}
    letter = compute[0]
    statics |= {"A": {"f32": f32, "f64": f64, "i64": i64}[compute], "LOW": LOW[letter],
                "HIGH": HIGH[letter]}  # fmt: skip
    halves = all(given in HALVES for (_, kind), given in zip(kinds, inputs, strict=True)
                 if kind == "full")  # fmt: skip
    full = [OF_NUMPY[given] for (_, kind), given in zip(kinds, inputs, strict=True)
            if kind == "full"]  # fmt: skip
    read = tuple(name for name, kind in kinds if kind not in (None, "number"))
    segmented = bool([kind for _, kind in kinds if kind == "segment"])
    varied = [
        OF_NUMPY[d].size for d, node in zip(outputs, plan.results, strict=True) if node.varies
    ]
    vector = WIDEST // max([t.size for t in full] + varied)
    fits = rows.is_plain and parts == 1 and not segmented and rows.n <= LONGEST
    if fits and len(full) <= 2:  # noqa: PLR2004
        width = vector if aligned and rows.n % vector == 0 else 1
        if width > 1 or rows.n <= LONGEST // 4:
            return _in_registers(formula, plan, statics, rows, width, halves, read, aligned)
    return _in_loops(formula, plan, statics, rows, parts, halves, read, aligned, segmented)


def _in_registers(formula: Any, plan: Any, statics: dict[str, Any], rows: Rows, width: int,
                  halves: bool, read: tuple[str, ...], aligned: bool) -> Ready:  # fmt: skip
    each = 32 if halves else 16
    group = min(max(1 << (-(-rows.n // each) - 1).bit_length(), 1), 512)
    while group * width > max(rows.n, 1) * 2 and group > 1:
        group //= 2
    vectors = -(-rows.n // (group * width))
    count = max(1, THREADS // group)
    native = _native(formula, plan, "registers", vectors, halves)
    form = Shape(threads=group * count, aligned=aligned, reads=read)
    made = kernel(native, form, **statics, V=width, G=group, ROWS=count,
                  CELLS=max(group * count // 32, 1))  # fmt: skip
    return Ready(made, -(-rows.count // count), (rows.count, rows.n), False)


def _in_loops(formula: Any, plan: Any, statics: dict[str, Any], rows: Rows, parts: int,
              halves: bool, read: tuple[str, ...], aligned: bool, segmented: bool) -> Ready:  # fmt: skip
    share = -(-rows.length // parts)
    across = is_across(rows)
    if across:
        count = min(1 << (rows.inner - 1).bit_length(), 32 if share > 8 else THREADS)
        count = max(count, 8)
        group = min(THREADS // count, 32)
    else:
        group = min(max(1 << (-(-share // 8) - 1).bit_length(), 1), THREADS)
        count = THREADS // group
    native = _native(formula, plan, "loops", 0, halves)
    form = Shape(threads=group * count, aligned=aligned, reads=read)
    made = kernel(
        native, form, **statics, G=group, ROWS=count, U=2 * UNROLL if halves else UNROLL, ACROSS=across,
        CELLS=group * count if across else max(group * count // 32, 1),
        SEGMENTS=rows.segments > 1 or segmented, INNER=rows.inner > 1, PARTS=parts > 1, BIG=rows.length >= 1 << 31,
    )  # fmt: skip
    sizes = (rows.count, rows.inner, rows.outer_step, rows.inner_step, rows.segments,
             *divisor(max(rows.n, 1)), rows.segment_step, rows.step, parts, share)  # fmt: skip
    return Ready(made, -(-rows.count * parts // count), sizes, segmented)


NATIVES: dict[Any, Any] = {}


def _native(formula: Any, plan: Any, form: str, vectors: int, halves: bool) -> Any:
    """The kernel's text, compiled for no types yet."""
    key = (formula, tuple(plan.kinds.items()), form, vectors, halves)
    found = NATIVES.get(key)
    if found is None:
        name = f"{formula.name}_{form}"
        writer = LoopWriter(plan) if form == "loops" else RegisterWriter(plan, vectors)
        functions = {f"math_{f}": _function(f, halves) for f in functions_of(plan)}
        found = NATIVES[key] = from_source(name, writer.write(name), {**SCOPE, **functions})
    return found


@cache
def _function(name: str, halves: bool) -> Any:
    """A function of numbers; half types round away what the quick exponential loses."""
    from flambeau._compiler.vector_math import VECTOR_MATH

    return fast.exp if halves and name == "exp" else VECTOR_MATH[name]


def is_across(rows: Rows) -> bool:
    """Whether neighbouring threads have neighbouring rows."""
    return rows.inner > 1 and rows.inner_step < max(rows.step, 1)


def parts_for(rows: Rows) -> int:
    """Into how many parts rows are split that are few and long."""
    wanted, least = (BUSY // (8 * rows.count), PART_ACROSS) if is_across(rows) else (
        BLOCKS // rows.count, PART)  # fmt: skip
    return max(1, min(rows.length // least, wanted, MOST_PARTS))
