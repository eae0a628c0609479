"""Elementwise kernels for GPUs, as text: a thread computes vectors of V elements.

The expressions are those of the CPU's loops (`kernel_source`), and so are the types. A kernel is
two functions: `part` computes the V elements of a vector; around it, `flat` walks over memory that
follows itself, `nest` finds a vector's place among collapsed dims.

How an operand lies along the innermost dim is its layout:

    C   elements follow each other
    S   one number for all
    G   elements are a step apart
    N   a number that the launch brings along
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from flambeau._compiler.expr import Expr
from flambeau._compiler.gpu import fast, whole
from flambeau._compiler.gpu.words import WORDS
from flambeau._compiler.kernel_source import HALVES, MATH_COST, Lines, Term
from flambeau._compiler.loops import INFINITY, Loop, Operand, _parameters, loaded, stored
from flambeau._compiler.native import Native, from_source
from flambeau._compiler.types import Scalar, boolean, f32


@dataclass(frozen=True, slots=True)
class Pointwise:
    """All that the text of a kernel depends on."""

    title: str
    results: tuple[Expr, ...]
    names: tuple[str, ...]
    compute: Scalar
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    rank: int
    """Collapsed dims; 0: memory that follows itself."""
    apart: bool = True
    """Whether no result lies in an operand's memory."""

    @property
    def arrays(self) -> tuple[Operand, ...]:
        """The operands that are pointers."""
        inputs = [o for o in self.inputs if o.fixed is None and o.layout != "N"]
        return (*inputs, *self.outputs)

    @property
    def numbers(self) -> tuple[Operand, ...]:
        """The operands that the launch brings along."""
        return tuple(o for o in self.inputs if o.fixed is None and o.layout == "N")

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the arrays that are only read."""
        return tuple(o.name for o in self.arrays if o not in self.outputs)


def build(work: Pointwise) -> tuple[Native, int]:
    """The kernel, and what an element costs."""
    part, cost = _part(work)
    text = nest_source(work) if work.rank else flat_source(work)
    scope = {**WORDS, "part": part, "divided": divided}
    kernel = from_source("pointwise", text, scope)
    kernel.name = re.sub(r"\W+", "_", work.title)
    kernel.parts = part.source
    return kernel, cost


# ---- one vector


class DeviceLines(Lines):
    """Lines for GPUs, where integers are divided too."""

    def function(self, op: str, type: Scalar) -> Any:
        """The function that computes a primitive in a type; None if there is none."""
        if not type.is_float and type is not boolean:
            return whole.WHOLE.get(op)
        return super().function(op, type)


class ShortLines(DeviceLines):
    """Lines for half types, with the short forms of `fast`."""

    def __init__(self, compute: Scalar, parameters: dict[str, Term]) -> None:
        super().__init__(compute, parameters)
        self.short = fast.SHORT[compute]

    def term(self, node: Any) -> Term:
        """Some expressions are one function."""
        op, operands = _as_one(node)
        if not op:
            return super().term(node)
        found = self.of_expressions.get(id(node))
        if found is None:
            terms = [self.term(operand) for operand in operands]
            found = self.of_expressions[id(node)] = node, self.call(op, terms, f32)
        return found[1]

    def apply(self, op: str, operands: list[Term]) -> Term:
        """A primitive of these operands."""
        if op == "sigmoid":
            return self.call(op, operands, f32)
        return super().apply(op, operands)

    def call(self, op: str, operands: list[Term], common: Scalar) -> Term:
        """A function; those of the special function unit are cheap."""
        found = super().call(op, operands, common)
        self.cost -= MATH_COST - fast.COST if self.short.get(op) in fast.QUICK else 0
        return found

    def function(self, op: str, type: Scalar) -> Any:
        """The short form of a function, or the only one."""
        return self.short.get(op) or super().function(op, type)


def _as_one(node: Any) -> tuple[str, list[Any]]:
    """x / (1 + exp(y)) as over_power(x, y), 1 + erf(y) as one_and_erf(y), functions of
    log(1 + exp(y)) as such."""
    if not isinstance(node, Expr):
        return "", []
    if node.op == "divide":
        power = _beside_one(node.args[1], "exp")
        if power is not None:
            return "over_power", [node.args[0], power]
    for name, ops in CHAINS.items():
        inner = _inside(node, ops)
        if inner is not None:
            return name, [inner]
    error = _beside_one(node, "erf")
    return ("", []) if error is None else ("one_and_erf", [error])


CHAINS = {"log1p_of_exp": ("log1p", "exp"), "tanh_of_log1p_of_exp": ("tanh", "log1p", "exp")}
"""Functions of functions that are one."""


def _inside(node: Any, ops: tuple[str, ...]) -> Any:
    """y of f(g(y)), where f, g ... are the given ones; None of others."""
    for op in ops:
        if not isinstance(node, Expr) or node.op != op:
            return None
        node = node.args[0]
    return node


def _beside_one(node: Any, op: str) -> Any:
    """y of 1 + op(y); None of others."""
    if not isinstance(node, Expr) or node.op != "add":
        return None
    if not any(a == 1 for a in node.args if not isinstance(a, Expr)):
        return None
    found = next((a for a in node.args if isinstance(a, Expr) and a.op == op), None)
    return None if found is None else found.args[0]


def _part(work: Pointwise) -> tuple[Native, int]:
    inputs = tuple(
        o if o.layout != "N" else Operand(o.name, o.type, "S", condition=o.condition)
        for o in work.inputs
    )
    known = _parameters(
        Loop(work.title, work.results, work.names, work.compute, inputs, work.outputs)
    )
    lines = (ShortLines if work.compute in HALVES else DeviceLines)(work.compute, known)
    results = [lines.term(result) for result in work.results]
    text = [f"def part({_signature(work)}, W: static):"]
    for operand in work.inputs:
        if operand.fixed is None:
            text.append(f"    v_{operand.name} = {_read(work, operand)}")
    text += [f"    {name} = {value}" for name, value, _ in lines.lines]
    for operand, term in zip(work.outputs, results, strict=True):
        value = stored(operand, term)
        text += _write(operand, value if term.wide else f"splat({value}, W)")
    scope = {**WORDS, **lines.used, "INF": INFINITY, "NAN": float("nan"), "strided": strided,
             "scattered": scattered}  # fmt: skip
    return from_source("part", "\n".join(text) + "\n", scope), lines.cost


def _signature(work: Pointwise) -> str:
    """Parameters of `part`: pointers, where each has its vector, steps, numbers."""
    parts = []
    for operand in work.arrays:
        parts.append(f"{operand.name}: pointer({operand.type.name})")
        parts.append(f"at_{operand.name}: i64")
        if operand.layout == "G":
            parts.append(f"step_{operand.name}: i64")
    return ", ".join(parts + _numbers(work))


def _numbers(work: Pointwise) -> list[str]:
    return [f"{operand.name}: {operand.type.name}" for operand in work.numbers]


def _read(work: Pointwise, operand: Operand) -> str:
    name = operand.name
    if operand.layout == "N":
        return name
    place = f"{name} + at_{name}"
    if operand.layout == "S":
        return loaded(operand, work.compute, f"load({place})")
    if operand.layout == "G":
        return loaded(operand, work.compute, f"strided({place}, step_{name}, W)")
    return loaded(operand, work.compute, f"load({place}, W, align=W * {operand.type.size})")


def _write(operand: Operand, value: str) -> list[str]:
    name = operand.name
    place = f"{name} + at_{name}"
    if operand.layout == "G":
        return [f"    scattered({place}, step_{name}, {value}, W)"]
    return [f"    store({place}, {value}, align=W * {operand.type.size})"]


# ---- all of them


def flat_source(work: Pointwise) -> str:
    """The text of a kernel over `n` elements that follow each other: U vectors a thread."""
    pointers = [f"{o.name}: pointer({o.type.name})" for o in work.arrays]
    head = ", ".join([*pointers, *_numbers(work), "n: i64"])

    def call(place: str, width: str) -> str:
        listed = []
        for operand in work.arrays:
            listed += [operand.name, "0" if operand.layout == "S" else place]
        return f"part({', '.join([*listed, *[o.name for o in work.numbers]])}, {width})"

    return f"""\
def pointwise({head}, V: static, U: static, THREADS: static):
    first = block() * (THREADS * V * U) + thread() * V
    if (block() + 1) * (THREADS * V * U) <= n:
        for u in unroll(U):
            here = first + u * (THREADS * V)
            {call("here", "V")}
    else:
        for u in unroll(U):
            for k in range(first + u * (THREADS * V), smaller(first + u * (THREADS * V) + V, n)):
                {call("k", "1")}
"""


def nest_source(work: Pointwise) -> str:
    """The text of a kernel over collapsed dims, innermost first; `units` vectors in all. A dim has
    a size, in vectors for the innermost, what divides by it, and a step for each array."""
    sizes = [f"{word}_{d}: i64" for d in range(work.rank) for word in ("size", "magic", "shift")]
    steps = [f"s_{o.name}_{d}: i64" for o in work.arrays for d in range(work.rank)]
    pointers = [f"{o.name}: pointer({o.type.name})" for o in work.arrays]
    head = ", ".join([*pointers, *_numbers(work), "units: i64", *sizes, *steps])
    lines = [
        f"def pointwise({head}, V: static, U: static, THREADS: static, BIG: static):",
        "    for u in unroll(U):",
        "        unit = block() * (THREADS * U) + u * THREADS + thread()",
        "        if unit < units:",
    ]
    body = ["rest0 = unit"]
    for d in range(work.rank):
        if d + 1 < work.rank:
            body += [f"rest{d + 1} = divided(rest{d}, size_{d}, magic_{d}, shift_{d}, BIG)",
                     f"i{d} = rest{d} - rest{d + 1} * size_{d}"]  # fmt: skip
        else:
            body.append(f"i{d} = rest{d}")
    listed = []
    for operand in work.arrays:
        name = operand.name
        terms = [f"i{d} * s_{name}_{d}" for d in range(work.rank)]
        body.append(f"at_{name} = {' + '.join(terms)}")
        listed += [name, f"at_{name}"]
        if operand.layout == "G":
            listed.append(f"s_{name}_0 // V")
    listed += [o.name for o in work.numbers]
    body.append(f"part({', '.join(listed)}, V)")
    return "\n".join(lines + [f"            {line}" for line in body]) + "\n"


DIVIDED = """
def divided(n: i64, size: i64, magic: i64, shift: i64, BIG: static):
    if BIG:
        return n // size
    short = u32(n)
    return i64((high_product(short, u32(magic)) + short) >> u32(shift))
"""
"""Division by a size that the launcher knows (`divisor`)."""

STRIDED = """
def strided(address, step: i64, W: static):
    if W == 1:
        return load(address)
    found = splat(load(address), W)
    for k in unroll(1, W):
        found = insert(found, k, load(address + k * step))
    return found
"""
SCATTERED = """
def scattered(address, step: i64, values, W: static):
    if W == 1:
        store(address, values)
    else:
        for k in unroll(W):
            store(address + k * step, values[k])
"""
"""Vectors whose elements lie a step apart."""
divided = from_source("divided", DIVIDED.lstrip(), dict(WORDS))
strided = from_source("strided", STRIDED.lstrip(), dict(WORDS))
scattered = from_source("scattered", SCATTERED.lstrip(), dict(WORDS))


def divisor(size: int) -> tuple[int, int, int]:
    """(size, magic, shift): n // size is (high(n * magic) + n) >> shift for all n below 2**31.

    Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994.
    """
    shift = (size - 1).bit_length()
    return size, ((1 << 32) * ((1 << shift) - size) // size + 1) & 0xFFFFFFFF, shift
