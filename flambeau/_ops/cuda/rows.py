"""Launching row formulas on GPUs: which form, how many threads a row, how many parts.

The formulas are those of the CPU (`_ops/rows/formulas.py`). What a row gives depends on its length
and on how it lies, not on the other rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from flambeau._compiler import fuse
from flambeau._compiler.gpu import fast
from flambeau._compiler.gpu.pointwise_text import divided, divisor, scattered
from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.gpu.row_text import LoopWriter, RegisterWriter
from flambeau._compiler.gpu.words import WORDS
from flambeau._compiler.native import from_source
from flambeau._compiler.row_text import functions_of
from flambeau._compiler.types import NAMES, OF_NUMPY, Scalar, bf16, f16, f32, f64, i64
from flambeau._ops.cuda.kernels import joining
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.launch import Kernel, kernel

THREADS = 256
WIDEST = 16
LONGEST = 64 * 512
"""Elements of a row that registers hold."""
MOST_ARRAYS = 2
"""Arrays of which a row is kept there at most."""
LONG = 1 << 11
UNROLL = 4
FEW_PLACES = 8
"""Elements of a row for each of its threads at least."""
PART = 1 << 14
"""Elements of a part of a long row at least."""
PART_ACROSS = 1 << 8
"""The same of rows that lie side by side."""
SHARED = 16
"""What lengths of parts are multiples of, in elements."""
MOST_PARTS = 1056
SHORTER = (8192, 4096, 16384, 2048)
"""Lengths of parts of a long row that registers hold, the best first."""
BLOCKS = 1056
"""Blocks that keep a GPU busy (8 for each of 132 processors): with fewer, long rows are split."""
BUSY = 1 << 18
"""Threads that do so."""
SCOPE = {**WORDS, **{name: value for name, value in vars(joining).items() if name[:1] != "_"},
         "INF": math.inf, "NAN": math.nan, "divided": divided,
         "scattered": scattered}  # fmt: skip
COMPUTED = {"f32": f32, "f64": f64, "i64": i64}
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
        follow = self.outer_step == self.n or self.outer == 1
        return (self.inner, self.segments, self.step) == (1, 1, 1) and follow


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
    kinds = tuple(None if v is None else NAMES[v.dtype] if isinstance(v, np.ndarray) else "number"
                  for v in inputs)  # fmt: skip
    dtypes = tuple(NAMES[out.dtype] for out in outputs)
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


class Making(NamedTuple):
    """What a kernel is made of: the formula's plan, the types, and how the rows lie."""

    formula: fuse.Formula
    plan: fuse.Plan
    statics: dict[str, Any]
    rows: Rows
    parts: int
    aligned: bool
    full: tuple[Scalar, ...]
    """The types of the arrays with an element for every place that are read."""
    widest: int
    """Bytes of the largest element of these, and of such results."""
    halves: bool
    """Whether they are of half types, and computed in f32."""

    @property
    def read(self) -> tuple[str, ...]:
        """The parameters that are arrays."""
        return tuple(name for name, kind in self.plan.kinds.items() if kind != "number")

    @property
    def segmented(self) -> bool:
        """Whether a parameter has an element for every segment."""
        return "segment" in self.plan.kinds.values()

    def kernel(self, native: Any, threads: int, **more: Any) -> Kernel:
        """The kernel for these types."""
        form = Shape(threads=threads, aligned=self.aligned, reads=self.read)
        return kernel(native, form, **self.statics, **more)


@lru_cache(4096)
def _ready(formula: fuse.Formula, compute: str, inputs: tuple[Any, ...], outputs: tuple[str, ...],
           rows: Rows, parts: int, aligned: bool) -> Ready:  # fmt: skip
    kinds = tuple((name, None if given is None else kind) for (name, kind), given
                  in zip(formula.kinds.items(), inputs, strict=True))  # fmt: skip
    plan = fuse.Plan(formula, kinds)
    plan.kept = {}  # to compute again is cheaper here than to store
    types = {name: OF_NUMPY[given] for (name, kind), given in zip(kinds, inputs, strict=True)
             if kind not in (None, "number")}  # fmt: skip
    statics: dict[str, Any] = {f"T_{name}": type for name, type in types.items()}
    statics |= {f"OUT{k}": OF_NUMPY[dtype] for k, dtype in enumerate(outputs)}
    statics |= {"A": COMPUTED[compute], "LOW": LOW[compute[0]], "HIGH": HIGH[compute[0]]}
    full = tuple(types[name] for name, kind in kinds if kind == "full")
    varied = [OF_NUMPY[dtype].size for dtype, node in zip(outputs, plan.results, strict=True)
              if node.varies]  # fmt: skip
    widest = max([type.size for type in full] + varied)
    halves = compute == f32.name and all(type in (f16, bf16) for type in full)
    making = Making(formula, plan, statics, rows, parts, aligned, full, widest, halves)
    width = _width(making)
    return _in_registers(making, width) if width else _in_loops(making)


def _width(making: Making) -> int:
    """Elements of an access where a row fits into the registers of its threads, else 0."""
    rows = making.rows
    if not rows.is_plain or making.parts > 1 or making.segmented or len(making.full) > MOST_ARRAYS:
        return 0
    width = WIDEST // making.widest
    if not making.aligned or rows.n % width:
        width = 1
    return width if rows.n <= (LONGEST if width > 1 else LONGEST // 4) else 0


def _in_registers(making: Making, width: int) -> Ready:
    rows = making.rows
    each = elements_each(making)
    group = min(max(1 << (-(-rows.n // each) - 1).bit_length(), 1), 512)
    while group * width > max(rows.n, 1) * 2 and group > 1:
        group //= 2
    native = _native(making, "registers", -(-rows.n // (group * width)))
    count = max(1, THREADS // group)
    threads = group * count
    made = making.kernel(native, threads, V=width, G=group, ROWS=count, CELLS=max(threads // 32, 1))
    return Ready(made, -(-rows.count // count), (rows.count, rows.n), False)


def elements_each(making: Making) -> int:
    """Elements of a row that a thread holds: 64 bytes of one array, 32 of each of two; twice as
    many of long rows of f32 with weights, which more loads at a time hide."""
    if making.halves:
        return 32 // max(len(making.full), 1)
    weighted = "along" in making.plan.kinds.values() and len(making.full) == 1
    return 32 if weighted and making.rows.n >= LONG else 16


def _in_loops(making: Making) -> Ready:
    rows, parts = making.rows, making.parts
    beside = is_across(rows)
    width = _wide(making, beside)
    share, units = share_of(rows.length, parts), rows.count
    if beside:
        units = rows.count // width
        few = 32 if share > FEW_PLACES else THREADS
        count = max(min(1 << (rows.inner // width - 1).bit_length(), few), 8)
        group = min(THREADS // count, 32, 64 // width)  # what they join takes registers
    else:
        each = max(FEW_PLACES, 2 * width)
        group = min(max(1 << (-(-share // each) - 1).bit_length(), 1), THREADS)
        count = THREADS // group
    threads = group * count
    made = making.kernel(
        _native(making, "beside" if beside else "loops", 0), threads, G=group, ROWS=count,
        V=width, U=_unrolled(making, width),
        CELLS=threads * width if beside else max(threads // 32, 1), INNER=rows.inner > 1,
        PARTS=parts > 1, SEGMENTS=rows.segments > 1 or making.segmented,
        BIG=rows.length >= 1 << 31,
    )  # fmt: skip
    sizes = (units, rows.inner, rows.outer_step, rows.inner_step, rows.segments,
             *divisor(max(rows.n, 1)), rows.segment_step, rows.step, parts, share)  # fmt: skip
    return Ready(made, -(-units * parts // count), sizes, making.segmented)


def _wide(making: Making, beside: bool) -> int:
    """Elements of an access in loops: neighbours of a row, or of rows that lie beside each other;
    1 where they do not begin at multiples of an access."""
    rows = making.rows
    width = WIDEST // making.widest if making.aligned else 1
    steps = [rows.outer_step] if rows.outer > 1 else []
    steps += [rows.segment_step] if rows.segments > 1 else []
    if beside:
        steps += [rows.inner, rows.step]
        along = rows.inner_step == 1 and not making.segmented
    else:
        steps += [rows.n] + ([rows.inner_step] if rows.inner > 1 else [])
        along = rows.step == 1
    while width > 1 and not (along and all(step % width == 0 for step in steps)):
        width //= 2
    return width


def _unrolled(making: Making, width: int) -> int:
    """Vectors of a thread at a time: as many as keep memory busy, fewer of formulas that read
    several arrays, or that keep much for each lane."""
    if width == 1:
        return 2 * UNROLL if making.halves else UNROLL
    halved = len(making.full) > 1, width > WIDEST // f32.size and (
        is_across(making.rows) or making.rows.segments > 1)  # fmt: skip
    return UNROLL >> sum(halved)


NATIVES: dict[Any, Any] = {}


def _native(making: Making, form: str, vectors: int) -> Any:
    """The kernel's text, compiled for no types yet."""
    formula, plan, halves = making.formula, making.plan, making.halves
    key = (formula, tuple(plan.kinds.items()), form, vectors, halves)
    found = NATIVES.get(key)
    if found is None:
        name = f"{formula.name}_{form}"
        writer = RegisterWriter(plan, vectors) if form == "registers" else LoopWriter(
            plan, form == "beside")  # fmt: skip
        functions = {f"math_{f}": _function(f, halves) for f in functions_of(plan)}
        found = NATIVES[key] = from_source(name, writer.write(name), {**SCOPE, **functions})
    return found


@cache
def _function(name: str, halves: bool) -> Any:
    """A function of numbers; half types round away what the quick exponential loses."""
    from flambeau._compiler.vector_math import VECTOR_MATH

    return fast.row_exp if halves and name == "exp" else VECTOR_MATH[name]


def is_across(rows: Rows) -> bool:
    """Whether neighbouring threads have neighbouring rows."""
    return rows.inner > 1 and rows.inner_step < max(rows.step, 1)


def share_of(length: int, parts: int) -> int:
    """Elements of a part of a row: all parts begin at 16 bytes if the row does, and the last may be
    shorter, or empty."""
    share = -(-length // parts)
    return share if parts == 1 else -(-share // SHARED) * SHARED


def parts_for(rows: Rows, itemsize: int = WIDEST) -> int:
    """Into how many parts rows are split that are few and long."""
    wanted, least = BLOCKS // rows.count, PART
    if is_across(rows):
        wide = WIDEST // itemsize if rows.inner_step == 1 else 1
        wanted, least = BUSY * wide // (8 * rows.count), PART_ACROSS
    return max(1, min(rows.length // least, wanted, MOST_PARTS))


def shorter(rows: Rows, data: Any) -> int:
    """The length of parts of long rows that are rows themselves, which registers hold; 0: none."""
    if not rows.is_plain or address(data) % WIDEST:
        return 0
    return next((n for n in SHORTER if rows.n % n == 0), 0)


def in_registers(rows: Rows, data: Any) -> bool:
    """Whether rows of a plain matrix are short enough for the registers of their threads."""
    vector = WIDEST // data.itemsize
    whole = rows.n % vector == 0 and address(data) % WIDEST == 0
    return rows.n <= (LONGEST if whole else LONGEST // 4)
