"""A group is run once, forward and backward, and what its operators compute is noted.

Tensors are known by identity: `Tracer.known` leads from a tensor to the symbol that it stands for.
Operators that a kernel can compute extend expressions (`rules.RULES`); others become steps of their
own between kernels: their operands are computed before them, their results are new sources.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr
from flambeau._compiler.fuse import REDUCTIONS
from flambeau._core import modes
from flambeau._ops.table import dispatch
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.ranks import Rank
from flambeau._tensor.tensor import Tensor
from flambeau.jit.optimise.fusion.symbols import (
    NotFusible,
    Parts,
    Source,
    Whole,
    broadcast,
    leaves,
    nodes_of,
    parameter,
    rebuilt,
    rebuilt_symbol,
)

COMPUTED = (np.dtype(np.float32), np.dtype(np.float64))
"""The types that groups are computed in."""


class Computed:
    """A place that a kernel fills with a symbol's values."""

    __slots__ = ("level", "place", "symbol")

    def __init__(self, place: int, symbol: Whole | Parts, level: int) -> None:
        self.place = place
        self.symbol = symbol
        self.level = level


class Called:
    """An operator that runs between kernels: `values` are places, where they are `Source`s."""

    __slots__ = ("function", "level", "places", "values")

    def __init__(self, function: Callable[..., Any], values: Sequence[Any],
                 places: list[int | None], level: int) -> None:  # fmt: skip
        self.function = function
        self.values = values
        self.places = places
        self.level = level


class Tracer:
    """What has been noted so far. `steps` are those of the phase at hand: forward or backward."""

    def __init__(self, compute: np.dtype[Any]) -> None:
        self.compute = compute
        self.known: dict[int, tuple[Tensor, Whole | Parts]] = {}
        self.of_arrays: dict[int, Whole | Parts] = {}  # `known`, by the ids of the arrays
        self.asked: set[int] = set()  # ids of the arrays that operators have read in this phase
        self.sources: dict[str, Source] = {}
        self.levels: dict[int, int] = {}  # place -> the level from which on it is there
        self.places = 0
        self.steps: list[Computed | Called] = []
        self.rows: set[int] = set()  # ids of expressions: statistics of rows
        self.booleans: set[int] = set()  # places of masks
        self.computed: dict[Any, int] = {}  # id of an expression or of parts, shape -> its place
        self.held: list[Any] = []
        self.special: dict[str, Any] = {}  # rules that come before those of `rules.RULES`

    # ---- places

    def place(self, level: int = 0) -> int:
        """A new place."""
        self.levels[self.places] = level
        self.places += 1
        return self.places - 1

    def source(self, tensor: Tensor, place: int) -> Whole:
        """Let a tensor stand for what lies at a place."""
        data = tensor._data
        if data.dtype == bool:
            self.booleans.add(place)
        symbol = Whole(self.enter(Source(place, data.shape)), data.shape, data.dtype)
        self.note(tensor, symbol)
        return symbol

    def enter(self, source: Source) -> Expr:
        """The parameter that stands for a source. A name stands for one source only."""
        known = self.sources.setdefault(source.name, source)
        if known != source:
            raise AssertionError(f"{source} and {known} have one name")
        return parameter(source.name)

    def shape_of(self, expression: Any) -> tuple[int, ...]:
        """The shape of an expression's values: that of its operands, broadcast."""
        shapes: dict[int, tuple[int, ...]] = {}
        for node in nodes_of(expression):
            if node.op == "parameter":
                shapes[id(node)] = self.sources[node.args[0]].shape
                continue
            parts = () if node.op == "constant" else node.args
            shape = broadcast([shapes[id(part)] for part in parts if isinstance(part, Expr)])
            if node.op in REDUCTIONS:
                shape = (*shape[:-1], 1)
            elif node.op == "down":
                shape = shape[-1:]
            shapes[id(node)] = shape
        return shapes.get(id(expression), ())

    def covers(self, symbol: Whole) -> bool:
        """Whether an expression has a value of its own for each element of its tensor. Where it
        broadcasts to the tensor, a sum over it would be one over too few."""
        return self.shape_of(symbol.expr) == symbol.shape

    def note(self, tensor: Tensor, symbol: Whole | Parts) -> None:
        """Remember what a tensor stands for."""
        if tensor._data.shape != symbol.shape:
            raise NotFusible("a rule that gives another shape")
        self.known[id(tensor)] = (tensor, symbol)
        self.of_arrays[id(tensor._data)] = symbol

    def symbol(self, tensor: Tensor) -> Any:
        """What a tensor stands for; the number, where it is a constant of the group's own."""
        self.asked.add(id(tensor._data))
        found = self.known.get(id(tensor))
        if found is not None:
            return found[1]
        if id(tensor._data) in self.of_arrays:  # what backward reads of a saved result
            return self.of_arrays[id(tensor._data)]
        if tensor._data.ndim:
            raise NotFusible("a tensor of unknown origin")
        return tensor._data.item()

    def level(self, symbol: Any) -> int:
        """From which level on a symbol can be computed."""
        parts = symbol.parts if isinstance(symbol, Parts) else [symbol]
        found = [self.levels[self.sources[name].place] for p in parts for name in leaves(p.expr)]
        return max(found, default=0)

    def rebuild(self, change: Callable[[Expr], Any]) -> None:
        """Let what is computed read other expressions in the place of those that `change` knows."""
        known: dict[int, Any] = {}
        for step in self.steps:
            if isinstance(step, Computed):
                self.held.append(step.symbol)
                step.symbol = rebuilt_symbol(step.symbol, change, known)

    def placed(self, symbol: Any) -> Source:
        """Where a symbol's values lie; a kernel computes them, if they lie nowhere."""
        expr = symbol.expr if isinstance(symbol, Whole) else None
        if isinstance(expr, Expr) and expr.op == "parameter":
            source = self.sources[expr.args[0]]
            return source if source.shape == symbol.shape else self._expanded(symbol, source)
        key = id(symbol) if expr is None else id(expr), symbol.shape
        if key in self.computed:
            return Source(self.computed[key], symbol.shape)
        level = self.level(symbol)
        place = self.place(level + 1)
        self.steps.append(Computed(place, symbol, level))
        self.held.append(symbol)  # so that its id stays its own
        return self._filled(key, Source(place, symbol.shape), symbol)

    def _expanded(self, symbol: Whole, source: Source) -> Source:
        """What lies at a source, in the larger shape that it broadcasts to: a view."""
        key = id(symbol.expr), symbol.shape
        if key in self.computed:
            return Source(self.computed[key], symbol.shape)
        level = self.levels[source.place]
        place = self.place(level)
        self.steps.append(Called(ops.expand, (source, symbol.shape), [place], level))
        self.held.append(symbol)
        return self._filled(key, Source(place, symbol.shape), symbol)

    def _filled(self, key: Any, source: Source, symbol: Whole | Parts) -> Source:
        """Remember that a step fills a source with a symbol's values."""
        self.enter(source)
        if symbol.dtype == bool:
            self.booleans.add(source.place)
        self.computed[key] = source.place
        return source

    # ---- operators

    def call(self, plain: Callable[..., Any], values: Sequence[Any], result: Any) -> None:
        """An operator that runs as it is, between kernels."""
        given = [self._given(value) for value in values]
        found = [item for value in given for item in (value if isinstance(value, list) else [value])
                 if isinstance(item, Source)]  # fmt: skip
        level = max([self.levels[s.place] for s in found], default=0)
        places: list[int | None] = []
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            places.append(None if tensor is None else self.place(level))
            if tensor is not None:
                self.source(tensor, places[-1])  # type: ignore[arg-type]
        self.steps.append(Called(plain, given, places, level))

    def _given(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
            return [self._given(item) for item in value]
        if not isinstance(value, Tensor):
            return value
        symbol = self.symbol(value)
        return self.placed(symbol) if isinstance(symbol, (Whole, Parts)) else value

    def part(self, expression: Any, shape: tuple[int, ...], dim: int, start: int,
             size: int) -> Any:  # fmt: skip
        """A part of an expression along a dim of its shape: that of all that it is made of."""

        def change(node: Expr) -> Any:
            if node.op != "parameter":
                if node.op in ("total", "amax", "down"):
                    raise NotFusible("a part of a reduction")
                return None
            source = self.sources[node.args[0]]
            own = dim - (len(shape) - len(source.shape))
            if own < 0 or source.shape[own] == 1:
                return node
            return self.enter(source.part(own, start, size))

        return rebuilt(expression, change, {})


class Current(threading.local):
    """The tracer of this thread."""

    tracer: Tracer | None = None


current = Current()


def watch(
    op: Any, plain: Callable[..., Any], values: tuple[Any, ...], functional: bool | None
) -> Any:
    """Note a call while a group is traced."""
    tracer = current.tracer
    if tracer is None:
        return NotImplemented
    from flambeau.jit.optimise.fusion.rules import apply

    if not functional:
        raise NotFusible("an operator that writes")
    result = _computed(plain, values)
    tracer.held.append((values, result))
    try:
        apply(tracer, op, plain, values, result)
    except NotFusible:
        raise
    except Exception as error:
        raise Fault from error
    return result


class Fault(Exception):
    """An error of a rule, and not of the operators that it looks on."""


def _computed(plain: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """What an operator gives. If it raises, in backward perhaps, that is the program's to say."""
    try:
        return plain(*values)
    except (NotFusible, Fault):
        raise
    except Exception as error:
        raise NotFusible(f"an operator that raises: {error}") from error


class tracing:
    """Let a tracer note what this thread computes."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def __enter__(self) -> Tracer:
        dispatch.add_watcher(watch, Rank.RECORDING)
        current.tracer = self.tracer
        modes.watch.active += 1
        return self.tracer

    def __exit__(self, *exc: object) -> None:
        modes.watch.active -= 1
        current.tracer = None
