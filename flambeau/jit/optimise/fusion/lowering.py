"""From expressions to kernels: what can be computed at once becomes one loop or row formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._compiler.expr import Expr, exp
from flambeau._compiler.fuse import EXPENSIVE, REDUCTIONS, Formula, plan
from flambeau._compiler.kernel_source import ASKS, SAME, has_form
from flambeau._compiler.types import OF_NUMPY
from flambeau._compiler.vector_math import VECTOR_MATH
from flambeau._ops.launching.loop_plans import Fusion
from flambeau.jit.optimise.fusion import forms
from flambeau.jit.optimise.fusion.symbols import (
    NotFusible,
    Parts,
    Source,
    Whole,
    leaves,
    nodes_of,
    rebuilt,
    size_written_out,
)
from flambeau.jit.optimise.fusion.tracing import Called, Computed, Tracer

LARGEST = 3000
"""Nodes of an expression, shared ones counted each time, that are still compiled."""
ROW_OPS = (*REDUCTIONS, "down")


def scheduled(tracer: Tracer, steps: Sequence[Computed | Called]) -> list[Any]:
    """The steps of a phase in an order in which they can run."""
    made: list[Any] = []
    for level in range(max((step.level for step in steps), default=-1) + 1):
        made += [forms.Call(step.function, step.values, step.places) for step in steps
                 if isinstance(step, Called) and step.level == level]  # fmt: skip
        wanted = [step for step in steps if isinstance(step, Computed) and step.level == level]
        made += kernels(tracer, wanted)
    return made


class Wanted:
    """One expression that a kernel computes, and where it goes."""

    __slots__ = ("expr", "output", "shape")

    def __init__(self, expr: Expr, shape: tuple[int, ...], output: forms.Output) -> None:
        self.expr = expr
        self.shape = shape
        self.output = output


def kernels(tracer: Tracer, steps: Sequence[Computed]) -> list[Any]:
    """The kernels for what can be computed at one level."""
    loops: dict[tuple[int, ...], list[Wanted]] = {}
    rows: list[Wanted] = []
    for step in steps:
        for wanted in wanted_of(step):
            if not isinstance(wanted.expr, Expr) or not leaves(wanted.expr):
                raise NotFusible("a constant result")
            if size_written_out(wanted.expr) > LARGEST:
                raise NotFusible("an expression that is too large")
            reduces = any(node.op in ROW_OPS for node in nodes_of(wanted.expr))
            (rows if reduces else loops.setdefault(wanted.shape, [])).append(wanted)
    made: list[Any] = []
    if rows:
        full = _full_shape(tracer, rows)
        same = loops.pop(full, [])
        parts = [wanted for wanted in same if wanted.output.source is not None]
        rows += [wanted for wanted in same if wanted.output.source is None]
        made.append(row_kernel(tracer, rows, full))
        if parts:
            loops[full] = parts
    made += [loop_kernel(tracer, wanted) for wanted in loops.values()]
    return made


def wanted_of(step: Computed) -> list[Wanted]:
    """The expressions of a step: one, or one for each part."""
    symbol = step.symbol
    if isinstance(symbol, Whole):
        output = forms.Output(step.place, symbol.shape, symbol.dtype)
        return [Wanted(symbol.expr, symbol.shape, output)]
    found, start = [], 0
    whole = Source(step.place, symbol.shape)
    for part in symbol.parts:
        size = part.shape[symbol.dim]
        source = whole.part(symbol.dim, start, size)
        output = forms.Output(step.place, symbol.shape, symbol.dtype, source)
        found.append(Wanted(part.expr, part.shape, output))
        start += size
    return found


# ---- loops


def loop_kernel(tracer: Tracer, wanted: Sequence[Wanted]) -> forms.Loops:
    """One loop for results of one shape."""
    names = _names(wanted)
    compute = tracer.compute
    for one in wanted:
        if tracer.shape_of(one.expr) != one.shape:
            raise NotFusible("a result that is larger than its operands")
        if not has_form(one.expr, names, OF_NUMPY[compute.name]):
            raise NotFusible("no form in the kernel language")
    fusion = Fusion("fused", [one.expr for one in wanted], names, compute,
                    [one.output.dtype for one in wanted])  # fmt: skip
    if fusion.fixed:
        raise NotFusible("a number that decides what is computed")
    sources = [tracer.sources[name] for name in names]
    return forms.Loops(fusion, sources, [one.output for one in wanted])


def _names(wanted: Sequence[Wanted]) -> list[str]:
    found: dict[str, None] = {}
    for one in wanted:
        found.update(dict.fromkeys(leaves(one.expr)))
    return list(found)


# ---- rows


class TracedFormula(Formula):
    """A row formula whose results are expressions already."""

    def __init__(self, name: str, kinds: dict[str, str], results: Sequence[Expr]) -> None:
        self.name = name
        self.kinds = kinds
        self.results = tuple(results)

    def traced(self, kinds: dict[str, str | None]) -> tuple[Any, ...]:
        """The results."""
        return self.results


def _full_shape(tracer: Tracer, wanted: Sequence[Wanted]) -> tuple[int, ...]:
    """The shape of what is reduced: the same for all reductions of a kernel."""
    found = set()
    for one in wanted:
        for node in nodes_of(one.expr):
            if node.op in ROW_OPS:
                found.add(tracer.shape_of(node.args[0]))
    if len(found) != 1:
        raise NotFusible("reductions over several shapes")
    return found.pop()


def row_kernel(tracer: Tracer, wanted: Sequence[Wanted], full: tuple[int, ...]) -> forms.Rows:
    """One row formula for everything that has to do with rows of one shape."""
    if len(full) < 2 or full[-1] < 8:
        raise NotFusible("rows that are too short")
    names = _names(wanted)
    sources = [tracer.sources[name] for name in names]
    kinds = {name: _kind(tracer, source, full)
             for name, source in zip(names, sources, strict=True)}  # fmt: skip
    known: dict[int, Any] = {}
    typed: dict[int, Any] = {}
    results, summed = [], []
    for one in wanted:
        expr = as_numbers(rebuilt(one.expr, written_out(known), known), typed)
        _check(expr)
        down = expr.op == "down"
        rows = (*full[:-1], 1)
        fits = one.shape in (full, rows) or down
        if not fits or one.output.source is not None or one.output.dtype != tracer.compute:
            raise NotFusible("a result of another shape than the rows")
        if one.shape == full and not _varies(expr, kinds):
            raise NotFusible("a result that is the same along the row")
        results.append(expr)
        summed.append(down)
    formula = TracedFormula("fused_rows", kinds, kept_where_needed(results))
    plan(formula, tuple(kinds.items()))
    outputs = [one.output for one in wanted]
    return forms.Rows(formula, tracer.compute, sources, outputs, full, summed)


def _kind(tracer: Tracer, source: Source, full: tuple[int, ...]) -> str:
    """How an operand lies to the rows."""
    shape = source.shape
    if shape == full:
        return "full"
    if shape == ():
        return "number"
    ones = (1,) * (len(full) - 1)
    if shape[-1] == full[-1] and shape[:-1] == ones[: len(shape) - 1]:
        return "along"
    if shape == (*full[:-1], 1):
        return "row"
    raise NotFusible("an operand that lies across the rows")


def _varies(expr: Expr, kinds: dict[str, str]) -> bool:
    """Whether an expression differs along the row."""
    if expr.op == "parameter":
        return kinds[expr.args[0]] in ("full", "along")
    if expr.op in REDUCTIONS or expr.op == "constant":
        return False
    return any(_varies(part, kinds) for part in expr.args if isinstance(part, Expr))


def _check(expr: Expr) -> None:
    """All primitives have a form in row kernels; sums over rows stand at the root."""
    for node in nodes_of(expr):
        known = node.op in SAME or node.op in ASKS or _is_math_of_one(node)
        if not known and node.op not in (*ROW_OPS, "parameter", "where", "length"):
            raise NotFusible(f"{node.op} in a row")
        if node.op == "down" and node is not expr:
            raise NotFusible("a sum over rows within a formula")


def _is_math_of_one(node: Expr) -> bool:
    """Whether row kernels call a function for a primitive: those of two operands they do not."""
    return node.op in VECTOR_MATH and len(node.args) == 1


def written_out(known: dict[int, Any]) -> Any:
    """What row kernels do not have, in terms of what they have."""

    def change(node: Expr) -> Any:
        if node.op == "constant":
            return node.args[0]
        make = MADE.get(node.op)
        if make is None:
            return None
        return make(*[rebuilt(part, change, known) for part in node.args])

    return change


def as_numbers(expression: Any, known: dict[int, Any]) -> Any:
    """The expression with masks where it chooses, and numbers everywhere else: row kernels compute
    with one type, and know masks as what comparisons give and `where` takes.
    """
    if not isinstance(expression, Expr):
        return int(expression) if isinstance(expression, bool) else expression
    if expression.op == "parameter":
        return expression
    if id(expression) not in known:
        args = [as_numbers(part, known) for part in expression.args]
        chosen = [_as_mask(args.pop(0))] if expression.op == "where" else []
        made = Expr(expression.op, *chosen, *map(_as_number, args))
        same = all(a is b for a, b in zip(made.args, expression.args, strict=True))
        known[id(expression)] = expression if same else made
    return known[id(expression)]


def _as_number(part: Any) -> Any:
    is_mask = isinstance(part, Expr) and part.op in ASKS
    return Expr("where", part, 1.0, 0.0) if is_mask else part


def _as_mask(part: Any) -> Expr:
    if not isinstance(part, Expr):
        raise NotFusible("a choice that is made once for all")
    return part if part.op in ASKS else Expr("not_equal", part, 0)


def _power(base: Any, exponent: Any) -> Any:
    products: dict[Any, Any] = {1: lambda x: x, 2: lambda x: x * x, 3: lambda x: x * x * x}
    if isinstance(exponent, Expr):
        raise NotFusible("a power by an expression")
    if exponent in products:
        return products[exponent](base)
    if exponent == 0.5:
        return Expr("sqrt", base)
    if exponent == -1:
        return 1.0 / base
    raise NotFusible("a power")


MADE: dict[str, Any] = {
    "sigmoid": lambda x: 1 / (exp(-x) + 1),
    "number_power": _power,
}


def kept_where_needed(results: Sequence[Expr]) -> list[Expr]:
    """What several passes over the row need, and is expensive as a whole, is stored by the first:
    the operands of reductions that hold expensive primitives.
    """
    marked: dict[int, Any] = {}

    def expensive(node: Any) -> bool:
        return any(inner.op in EXPENSIVE for inner in nodes_of(node))

    def change(node: Expr) -> Any:
        if node.op not in REDUCTIONS or not isinstance(node.args[0], Expr):
            return None
        inner = node.args[0]
        if inner.op in ("parameter", "kept") or inner.op in REDUCTIONS or not expensive(inner):
            return None
        if any(n.op in REDUCTIONS for n in nodes_of(inner)):
            return None
        marked[id(inner)] = Expr("kept", inner)
        return None

    for result in results:
        rebuilt(result, change, {})
    if not marked:
        return list(results)
    known: dict[int, Any] = {}
    return [rebuilt(result, lambda node: marked.get(id(node)), known) for result in results]


SAVED = (EXPENSIVE | set(VECTOR_MATH) | {"sigmoid"}) - {"number_power"}
"""What the backward pass does not compute again."""


def worth_saving(tracer: Tracer) -> dict[int, Computed]:
    """By the ids of expressions: statistics of rows, and results of expensive primitives as large
    as the group's results.
    """
    found: dict[int, Computed] = {}
    symbols = [step.symbol for step in tracer.steps if isinstance(step, Computed)]
    whole = [part for s in symbols for part in (s.parts if isinstance(s, Parts) else [s])]
    for symbol in whole:
        for node in nodes_of(symbol.expr):
            if id(node) not in tracer.rows and node.op not in SAVED:
                continue
            shape = tracer.shape_of(node)
            if id(node) in tracer.rows or shape == symbol.shape:
                made = Whole(node, shape, tracer.compute)
                found[id(node)] = Computed(-1, made, tracer.level(made))
    return found


def sources_of(steps: Sequence[Any]) -> list[Source]:
    """What steps read."""
    found: list[Source] = []
    for step in steps:
        values = step.values if isinstance(step, forms.Call) else step.sources
        for value in values:
            found += [v for v in (value if isinstance(value, list) else [value])
                      if isinstance(v, Source)]  # fmt: skip
    return found
