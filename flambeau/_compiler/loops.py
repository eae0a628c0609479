"""Loop nests of elementwise kernels, as text in the kernel language.

A kernel is two functions: `span` computes a stretch of elements that follow each other, W at a
time; `nest` walks over the rows of the operands, hands them to `span`, and copies what does not
lie so (other strides, ends shorter than W) through small buffers.

The dims of the operands are collapsed by the caller; `n` is the size of the innermost one. How an
operand lies along it is its layout:

    C   elements follow each other
    S   one number for all
    G   elements are `step` apart
    T   as G, but they follow each other along the next dim: read in tiles that are turned

A table holds, for each dim outside of the innermost: its size, and the step of each operand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from flambeau._compiler import spec
from flambeau._compiler.expr import Expr
from flambeau._compiler.kernel_source import HALVES, Lines, NoForm, Term
from flambeau._compiler.native import Native, from_source
from flambeau._compiler.types import Scalar, b8, boolean, f32, i32

BLOCK = 256
"""Elements of a row that go through a buffer at a time."""
TILE = 64
"""Rows of a tile of turned operands."""
MOST_DIMS = 32
INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class Operand:
    """A parameter or a result: its name, its type in memory, and its layout."""

    name: str
    type: Scalar
    layout: str
    rounded: bool = False
    """Whether numbers of another type are rounded to the half type that the row computes in."""
    condition: bool = False
    """Whether bools stay bools: they only choose."""
    fixed: Any = None
    """A number known when the kernel is compiled takes this operand's place."""


@dataclass(frozen=True, slots=True)
class Loop:
    """All that the text of a kernel depends on."""

    title: str
    results: tuple[Expr, ...]
    names: tuple[str, ...]
    """The parameters of the expressions, in the order of the inputs."""
    compute: Scalar
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    flat: bool = False
    """Whether there is one row, without layouts G and T."""
    stream: bool = False
    """Whether results leave the caches alone: for flat loops, from the element `skip` on, where
    the first result is aligned."""

    @property
    def arrays(self) -> tuple[Operand, ...]:
        """The operands that are pointers."""
        return (*[operand for operand in self.inputs if operand.fixed is None], *self.outputs)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A loop as a kernel: its text, the lanes of a step, and what an element costs."""

    native: Native
    width: int
    cost: int
    tiled: bool


def build(loop: Loop, vector_bits: int) -> Kernel:
    """The kernel of a loop for a processor with registers of `vector_bits`."""
    inner, lines = span(loop)
    source = inner.source
    tiled = any(operand.layout == "T" for operand in loop.arrays)
    text = (tile_source if tiled else flat_source if loop.flat else nest_source)(loop)
    nest = from_source("nest", text, {"span": inner, "turn": turn})
    nest.name = re.sub(r"\W+", "_", loop.title)
    nest.parts = source  # shown by FLAMBEAU_DEBUG=loops
    spec.check_source(loop, source, text)
    return Kernel(nest, width(loop, vector_bits), lines.cost, tiled)


def span(loop: Loop) -> tuple[Native, Lines]:
    """The function that computes a stretch of elements, and its lines."""
    lines = Lines(loop.compute, _parameters(loop))
    results = [lines.term(result) for result in loop.results]
    spec.check_lines(loop, lines, results)
    scope = {**lines.used, "INF": INFINITY, "NAN": float("nan")}
    return from_source("span", span_source(loop, lines, results), scope, outline=True), lines


def width(loop: Loop, vector_bits: int) -> int:
    """Two registers of the largest type that takes part; half types count as f32."""
    sizes = [4 if o.type in HALVES else o.type.size for o in loop.arrays if o.layout != "S"]
    return 2 * vector_bits // 8 // max(sizes)


# ---- one stretch


def _parameters(loop: Loop) -> dict[str, Term]:
    known = {}
    compute = f32 if loop.compute in HALVES else boolean if loop.compute is b8 else loop.compute
    for name, operand in zip(loop.names, loop.inputs, strict=True):
        fixed = operand.fixed
        if fixed is not None:
            known[name] = Term(repr(fixed), None)
        else:
            held = boolean if operand.condition else compute
            known[name] = Term(f"v_{operand.name}", held, operand.layout != "S")
    return known


def loaded(operand: Operand, compute: Scalar, value: str) -> str:
    """A value from memory in the type that is computed in."""
    source = operand.type
    if compute is b8 or operand.condition:
        return f"{value} != 0"
    if compute in HALVES:
        if source not in HALVES and operand.rounded:
            inner = value if source is f32 else f"f32({value})"
            return f"f32({compute.name}({inner}))"
        return value if source is f32 else f"f32({value})"
    if source is compute:
        return value
    if source in HALVES and compute is not f32:
        value = f"f32({value})"
    return f"{compute.name}({value})"


def stored(operand: Operand, term: Term) -> str:
    """A value in the type of its memory."""
    target = operand.type
    if term.type is target:
        return term.text
    source, text = term.type, term.text
    if source is None:
        return f"{target.name}({text})"
    if source is boolean:
        if target in HALVES:
            text = f"f32({text})"
    elif target is b8:
        return f"b8({text} != 0)"
    elif source.is_float and not target.is_float:
        if target.kind == "uint" and target.size > 1:
            raise NoForm("floats to large unsigned integers")
        if target.size < i32.size:
            text = f"i32({text})"  # small integers take the low bits, as on x86
    elif target in HALVES and source is not f32:
        text = f"f32({text})"
    return f"{target.name}({text})"


def span_source(loop: Loop, lines: Lines, results: list[Term]) -> str:
    """The text of `span`."""
    pointers = [f"{o.name}: pointer({o.type.name})" for o in loop.arrays]
    text = [f"def span({', '.join(pointers)}, n: i64, W: static):"]
    inside = []
    for operand in loop.inputs:
        if operand.fixed is not None:
            continue
        if operand.layout == "S":
            value = loaded(operand, loop.compute, f"{operand.name}[0]")
            text.append(f"    v_{operand.name} = {value}")
        else:
            value = loaded(operand, loop.compute, f"load({operand.name} + i, W)")
            inside.append(f"v_{operand.name} = {value}")
    inside += [f"{name} = {value}" for name, value, _ in lines.lines]
    stream = ", stream=True" if loop.stream else ""
    for operand, term in zip(loop.outputs, results, strict=True):
        value = stored(operand, term)
        value = value if term.wide else f"splat({value}, W)"
        inside.append(f"store({operand.name} + i, {value}{stream})")
    text.append("    for i in range(0, n, W):")
    text += [f"        {line}" for line in inside]
    return "\n".join(text) + "\n"


# ---- rows


def _head(loop: Loop, extra: str) -> str:
    pointers = [f"{o.name}: pointer({o.type.name})" for o in loop.arrays]
    steps = [f"step_{o.name}: i64" for o in loop.arrays if o.layout in "GT"]
    listed = ", ".join([*pointers, *steps, "table: pointer(i64)", "rank: i64", "n: i64", extra])
    return f"def nest({listed}, task: i64, tasks: i64, W: static):"


def _moving(loop: Loop) -> list[str]:
    return [operand.name for operand in loop.arrays]


def flat_source(loop: Loop) -> str:
    """The text of `nest` for one row: a task is a part of it."""
    pointers = [f"{o.name}: pointer({o.type.name})" for o in loop.arrays]
    head = [
        f"def nest({', '.join(pointers)}, n: i64, skip: i64, task: i64, tasks: i64, W: static):",
        *_buffers(loop),
    ]
    begin = "n * task // tasks // W * W"
    end = "n * (task + 1) // tasks // W * W"
    lines = []
    if loop.stream:
        lines = [
            "if (task == 0) & (skip > 0):",
            *[f"    p_{o.name} = {o.name}" for o in loop.arrays],
            *[f"    {line}" for line in _short(loop, "0", "skip")],
        ]
        begin, end = (f"skip + {text.replace('n *', '(n - skip) *')}" for text in (begin, end))
    lines += [
        f"start = {begin}",
        f"count = ({end} if task + 1 < tasks else n) - start",
        *[f"p_{o.name} = {o.name}{'' if o.layout == 'S' else ' + start'}" for o in loop.arrays],
        *_spans(loop),
    ]
    return "\n".join([*head, *[f"    {line}" for line in lines]]) + "\n"


def nest_source(loop: Loop) -> str:
    """The text of `nest`: units of work are rows, each in `parts` parts."""
    names = _moving(loop)
    columns = len(names) + 1
    text = [
        _head(loop, "rows: i64, parts: i64"),
        "    units = rows * parts",
        "    first = units * task // tasks",
        "    last = units * (task + 1) // tasks",
        "    rest = first // parts",
        "    part = first - rest * parts",
        f"    at = stack(i64, {MOST_DIMS})",
        *[f"    o_{name} = 0" for name in names],
        "    for d in range(rank):",
        f"        row = table + d * {columns}",
        "        here = rest % row[0]",
        "        rest = rest // row[0]",
        "        at[d] = here",
        *[f"        o_{name} += here * row[{k + 1}]" for k, name in enumerate(names)],
        *_buffers(loop),
        "    for unit in range(first, last):",
        "        begin = n * part // parts // W * W",
        "        end = n * (part + 1) // parts // W * W if part + 1 < parts else n",
        *_piece(loop, "        ", "begin", "end"),
        "        part += 1",
        "        if part == parts:",
        "            part = 0",
        *_next_row(names, columns),
    ]
    return "\n".join(text) + "\n"


def _next_row(names: list[str], columns: int) -> list[str]:
    return [
        "            for d in range(rank):",
        f"                row = table + d * {columns}",
        "                index = at[d] + 1",
        *[f"                o_{name} += row[{k + 1}]" for k, name in enumerate(names)],
        "                if index < row[0]:",
        "                    at[d] = index",
        "                    break",
        "                at[d] = 0",
        *[f"                o_{name} -= row[0] * row[{k + 1}]" for k, name in enumerate(names)],
    ]


def _buffers(loop: Loop) -> list[str]:
    lines = []
    for operand in loop.arrays:
        if operand.layout == "S":
            continue
        lines.append(f"    end_{operand.name} = stack({operand.type.name}, W, 128)")
        if operand.layout == "G":
            lines.append(f"    all_{operand.name} = stack({operand.type.name}, {BLOCK})")
        if operand.layout == "T":
            lines.append(f"    all_{operand.name} = stack({operand.type.name}, {TILE * TILE})")
    return lines


def _piece(loop: Loop, indent: str, begin: str, end: str) -> list[str]:
    """Elements from `begin` to `end` of the row at the offsets o_..."""
    if any(operand.layout == "G" for operand in loop.arrays):
        head = [f"for start in range({begin}, {end}, {BLOCK}):",
                f"    count = smaller({end} - start, {BLOCK})"]  # fmt: skip
        inner = "    "
    else:
        head, inner = [f"start = {begin}", f"count = {end} - {begin}"], ""
    body = []
    for operand in loop.arrays:
        body += _place(operand)
    body += _spans(loop)
    for operand in loop.outputs:
        if operand.layout == "G":
            body += [
                "for k in range(count):",
                f"    from_{operand.name}[k * step_{operand.name}] = p_{operand.name}[k]",
            ]
    return [*[indent + line for line in head], *[indent + inner + line for line in body]]


def _place(operand: Operand) -> list[str]:
    """Where `span` finds the elements of an operand: p_..."""
    name, start = operand.name, f"{operand.name} + o_{operand.name}"
    if operand.layout == "S":
        return [f"p_{name} = {start}"]
    if operand.layout == "C":
        return [f"p_{name} = {start} + start"]
    if operand.layout == "T":
        return [f"p_{name} = all_{name} + line * {TILE}"]
    return [
        f"from_{name} = {start} + start * step_{name}",
        f"p_{name} = all_{name}",
        "for k in range(count):",
        f"    p_{name}[k] = from_{name}[k * step_{name}]",
    ]


def _spans(loop: Loop) -> list[str]:
    """Whole steps in place, the rest through the buffers end_..."""
    pointers = ", ".join(f"p_{operand.name}" for operand in loop.arrays)
    return [
        "whole = count // W * W",
        f"span({pointers}, whole, W)",
        "if whole < count:",
        *[f"    {line}" for line in _short(loop, "whole", "count - whole")],
    ]


def _short(loop: Loop, start: str, count: str) -> list[str]:
    """Fewer than W elements behind p_...: through buffers."""
    ends = ", ".join(f"{'p' if o.layout == 'S' else 'end'}_{o.name}" for o in loop.arrays)
    moved = [o.name for o in loop.inputs if o.fixed is None and o.layout != "S"]
    return [
        *([f"for k in range({count}):"] if moved else []),
        *[f"    end_{name}[k] = p_{name}[{start} + k]" for name in moved],
        f"span({ends}, W, W)",
        f"for k in range({count}):",
        *[f"    p_{o.name}[{start} + k] = end_{o.name}[k]" for o in loop.outputs],
    ]


# ---- tiles


def tile_source(loop: Loop) -> str:
    """The text of `nest` where operands are turned: units of work are tiles of TILE rows of TILE
    elements; `m` rows, `mid_...` apart."""
    names = _moving(loop)
    columns = len(names) + 1
    mids = ", ".join([f"mid_{o.name}: i64" for o in loop.arrays if o.layout != "T"])
    text = [
        _head(loop, f"rows: i64, m: i64, {mids}"),
        f"    across = (n + {TILE - 1}) // {TILE}",
        f"    down = (m + {TILE - 1}) // {TILE}",
        "    units = rows * down * across",
        *_buffers(loop),
        "    for unit in range(units * task // tasks, units * (task + 1) // tasks):",
        "        rest = unit // across",
        f"        begin = (unit - rest * across) * {TILE}",
        f"        end = smaller(begin + {TILE}, n)",
        f"        top = rest % down * {TILE}",
        f"        high = smaller(m - top, {TILE})",
        "        rest = rest // down",
        *[f"        o_{name} = 0" for name in names],
        "        for d in range(rank):",
        f"            row = table + d * {columns}",
        "            here = rest % row[0]",
        "            rest = rest // row[0]",
        *[f"            o_{name} += here * row[{k + 1}]" for k, name in enumerate(names)],
        *_turned(loop),
        "        for line in range(high):",
        *_piece(loop, "            ", "begin", "end"),
        *[f"            o_{o.name} += mid_{o.name}" for o in loop.arrays if o.layout != "T"],
    ]
    return "\n".join(text) + "\n"


def _turned(loop: Loop) -> list[str]:
    lines = []
    for operand in loop.arrays:
        name = operand.name
        if operand.layout == "T":
            start = f"{name} + o_{name} + begin * step_{name} + top"
            lines.append(f"        turn({start}, step_{name}, all_{name}, end - begin, high, "
                         f"{turn_width(operand.type)}, {TILE})")  # fmt: skip
        else:
            lines.append(f"        o_{name} += top * mid_{name}")
    return lines


def turn_width(type: Scalar) -> int:
    """Rows and columns of the squares that are turned in registers."""
    return 8 if type.size <= f32.size else 4


TURN = """
def turn(source, step, target, count, high, W: static, PITCH: static):
    for i in range(0, count, W):
        for j in range(0, high, W):
            if (i + W <= count) & (j + W <= high):
                square(source + (i * step + j), step, target + (j * PITCH + i), W, PITCH)
            else:
                for a in range(i, smaller(i + W, count)):
                    for b in range(j, smaller(j + W, high)):
                        target[b * PITCH + a] = source[a * step + b]
"""
"""Columns become rows: `target[b][a] = source[a][b]`."""

SQUARE = """
def square(source, step, target, W: static, PITCH: static):
    V = vector(source.type.element, W)
    rows = registers(V, W)
    other = registers(V, W)
    for k in unroll(W):
        rows[k] = load(source + k * step, W)
    for stage in unroll(STAGES[W]):
        for k in unroll(W // 2):
            other[2 * k] = shuffle(rows[k], rows[k + W // 2], LOW[W])
            other[2 * k + 1] = shuffle(rows[k], rows[k + W // 2], HIGH[W])
        for k in unroll(W):
            rows[k] = other[k]
    for k in unroll(W):
        store(target + k * PITCH, rows[k])
"""
"""W rows of W elements turned in registers, by perfect shuffles."""


def _interleaved(width: int, start: int) -> tuple[int, ...]:
    return tuple(x for k in range(start, start + width // 2) for x in (k, k + width))


STAGES = {4: 2, 8: 3}
LOW = {width: _interleaved(width, 0) for width in STAGES}
HIGH = {width: _interleaved(width, width // 2) for width in STAGES}
square = from_source("square", SQUARE.strip() + "\n",
                     {"STAGES": STAGES, "LOW": LOW, "HIGH": HIGH})  # fmt: skip
turn = from_source("turn", TURN.strip() + "\n", {"square": square})
