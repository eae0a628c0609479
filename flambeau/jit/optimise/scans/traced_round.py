"""A round is traced forward and backward for given arguments: what it computes, what is carried
from round to round, and where the gradients of the arguments come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr
from flambeau._core import modes
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.optimise.fusion.lowering import worth_saving
from flambeau.jit.optimise.fusion.symbols import (
    NotFusible,
    Parts,
    Source,
    Whole,
    parameter,
)
from flambeau.jit.optimise.fusion.tracing import COMPUTED, Computed, tracing
from flambeau.jit.optimise.scans.course import Course
from flambeau.jit.optimise.scans.form import Slope
from flambeau.jit.optimise.scans.layout import Layout
from flambeau.jit.optimise.scans.rounds import Round, matrix_of
from flambeau.jit.optimise.scans.tracing import RoundTracer


class TracedRound:
    """A round as it is computed for arguments. NotFusible is raised where it is no scan.

    wanted: the positions of the arguments that gradients are wanted for. layouts: those of the
    places that gradients are added up in; `assembly` settles the rest.
    """

    def __init__(self, round_: Round, values: Sequence[Any]) -> None:
        self.round = round_
        self.values = values
        self.rank, self.batch = self._check()
        self.layouts: dict[int, Layout] = {}
        self.positions: dict[int, int] = {p.number: matrix_of(round_, p) for p in round_.products}  # type: ignore[misc]
        self.wanted = [k for k, value in enumerate(values)
                       if isinstance(value, Tensor) and value.requires_grad
                       and modes.grad.enabled]  # fmt: skip
        self.course = Course(round_, values)
        self.learning = self.course.learning
        self._forward()
        if any(self.recorded):
            self._backward()
        else:
            self.wanted = []

    def _check(self) -> tuple[int, int]:
        """Dims of the states, and the rows of the batch: all states are matrices with as many, or
        vectors.
        """
        values, made = self.values, self.round
        states = [values[position] for position in made.states]
        rows = [values[position] for position in made.rows]
        if not all(isinstance(value, Tensor) for value in states):
            raise NotFusible("states that are no tensors")
        first = states[0]._data
        same = all(s._data.dtype == first.dtype and s._data.ndim == first.ndim
                   and s._data.shape[:-1] == first.shape[:-1] for s in states)  # fmt: skip
        if not same or first.dtype not in COMPUTED or first.ndim not in (1, 2):
            raise NotFusible("states of several types or sizes")
        if not all(len(row._data) == values[0] for row in rows):
            raise NotFusible("more rows than rounds")
        if not all(t._data.size for t in values if isinstance(t, Tensor)):
            raise NotFusible("operands without elements")
        return first.ndim, len(first) if first.ndim == 2 else 1

    # ---- forward

    def _forward(self) -> None:
        """Trace the round, with all states learning that learn in any."""
        made = self.round
        tracer = self.tracer = RoundTracer(self.values[made.states[0]]._data.dtype, self.rank)
        self.aliases: list[tuple[int, str, Any, int]] = []  # position, role, tensor, place
        given = [self._alias(position, "state") for position in made.states]
        given += [self._alias(position, "row") for position in made.rows]
        given += [self._alias(position, "constant") for position in made.constants]
        for product in made.products:
            product.traced = tracer.product
        with tracing(tracer):
            self.results = made.run(given)
        self._check_results()
        self.filled = [self._fill(result) for result in self.results]
        self.state_places = [place for _, role, _, place in self.aliases if role == "state"]
        self.carried = dict(zip(self.state_places, self.filled, strict=False))
        kinds = [self.results[self.result_of(kind, k)] for kind, k in made.results]
        self.recorded = [bool(result.requires_grad) for result in kinds]
        self.candidates = worth_saving(tracer)
        self.forward_steps: list[Any] = list(tracer.steps)

    def _check_results(self) -> None:
        """The round is traced as it is computed, and rounds are all alike in what kernels know."""
        count = len(self.round.states)
        first = [kind[:2] for kind in self.course.moments[0].kinds]
        traced = [(result._data.shape, result._data.dtype) for result in self.results]
        for passed in self.course.steps.values():
            kinds = [kind[:2] for kind in passed.kinds]
            if kinds[:count] != first:
                raise NotFusible("a state that changes its shape or type")
            if kinds != traced:
                raise NotFusible("a round that is traced as something else")
            for kind, k in self.round.results:
                if kind == "state" and not _row_by_row(*passed.kinds[k]):
                    raise NotFusible("a last state that does not lie row by row")

    def lies_by_columns(self, product: int) -> bool:
        """Whether a product's matrix lies column by column."""
        step, across = self.values[self.positions[product]]._data.strides
        return bool(step < across)

    def result_of(self, kind: str, number: int) -> int:
        """Which of the round's results a state or an element is."""
        return number if kind == "state" else self.round.elements[number]

    def _alias(self, position: int, role: str) -> Any:
        """A leaf for an argument of the round."""
        value = self.values[position]
        if not isinstance(value, Tensor):
            return value
        data = value._data
        alias = wrap(data[0] if role == "row" else data)
        learns = len(self.aliases) in self.learning if role == "state" else position in self.wanted
        if learns:
            alias.requires_grad_()  # type: ignore[attr-defined]
        place = self.tracer.place()
        self.tracer.source(alias, place)
        self.aliases.append((position, role, alias, place))
        return alias

    def _fill(self, result: Any) -> int:
        if not isinstance(result, Tensor) or result._data.ndim != self.rank:
            raise NotFusible("a result of other dims than the states")
        source = self.tracer.fresh(self.tracer.symbol(result))
        return source.place

    # ---- backward

    def _backward(self) -> None:
        from flambeau.autograd import grad

        tracer = self.tracer
        tracer.levels.update(dict.fromkeys(range(tracer.places), 0))
        tracer.steps, tracer.computed = [], {}
        self.grad_places: dict[int, int] = {}  # element -> place of its gradient
        self.state_grads: dict[int, int] = {}  # state -> place of the gradient that is carried
        outputs, slopes = self._roots()
        wanted = [alias for _, role, alias, _ in self.aliases if isinstance(alias, Tensor)
                  and alias.requires_grad]  # fmt: skip
        with tracing(tracer):
            found = grad(outputs, wanted, slopes, allow_unused=True)
        self.slope_of = {id(alias): slope for alias, slope in zip(wanted, found, strict=True)}
        self.back: dict[int, int] = {}
        self.parts: dict[int, list[Slope]] = {position: [] for position in self.wanted}
        self.zero: int | None = None
        self._carry_back()
        self._note_slopes()
        self._note_matrices()
        steps = [step for step in tracer.steps if isinstance(step, Computed)]
        self.ops_back = {name for step in steps for part in parts_of(step.symbol)
                         for name in _ops_of(part.expr)}  # fmt: skip
        self._save()

    def _roots(self) -> tuple[list[Any], list[Any]]:
        """The round's results that have gradients, and tensors for these: sums of what comes from
        the round behind and from outside.
        """
        made, count = self.round, len(self.round.states)
        roots: dict[int, Any] = {}
        sums: dict[int, Any] = {}
        for k, result in enumerate(self.results):
            if not result.requires_grad:
                continue
            place = self.tracer.place()
            source = Source(place, result._data.shape)
            self.tracer.sources[source.name] = source
            if k < count:
                self.state_grads[k] = place
            elif ("stack", k - count) in made.results:
                self.grad_places[k - count] = place
            else:
                continue
            roots[id(result)] = result
            term = parameter(source.name)
            sums[id(result)] = sums[id(result)] + term if id(result) in sums else term
        slopes = []
        for key, result in roots.items():
            slope = wrap(result._data.copy())
            self.tracer.note(slope, Whole(sums[key], result._data.shape, result._data.dtype))
            slopes.append(slope)
        return list(roots.values()), slopes

    def _carry_back(self) -> None:
        """The gradients of the states before the round."""
        tracer = self.tracer
        aliases = [entry for entry in self.aliases if entry[1] == "state"]
        for k, (position, _, alias, _) in enumerate(aliases):
            slope = self.slope_of.get(id(alias))
            if slope is None and k not in self.state_grads:
                continue
            symbol = self._nothing(alias) if slope is None else tracer.symbol(slope)
            place = tracer.fresh(symbol).place
            if k in self.state_grads:
                self.back[self.state_grads[k]] = place
            if slope is not None and position in self.parts:
                self.parts[position].append(Slope("first", place, alias._data.shape))

    def _nothing(self, alias: Tensor) -> Whole:
        """Zeros in the shape of a tensor."""
        if self.zero is None:
            self.zero = self.tracer.place()
            source = Source(self.zero, ())
            self.tracer.sources[source.name] = source
        name = Source(self.zero, ()).name
        return Whole(parameter(name), alias._data.shape, alias._data.dtype)

    def _note_slopes(self) -> None:
        """The gradients of rows and constants."""
        for position, role, alias, _ in self.aliases:
            slope = self.slope_of.get(id(alias))
            if role == "state" or slope is None:
                continue
            symbol = self.tracer.symbol(slope)
            if role == "row":
                place = self._row_slope(symbol, alias)
                self.parts[position].append(Slope("rows", place, alias._data.shape))
            else:
                self.parts[position].append(self._added(symbol, alias))

    def _row_slope(self, symbol: Any, alias: Tensor) -> int:
        shape = alias._data.shape
        if len(shape) != self.rank or shape[:-1] != (self.batch,) * (self.rank - 1):
            raise NotFusible("the gradient of a row that is broadcast")
        return self.tracer.fresh(symbol).place

    def _added(self, symbol: Any, alias: Tensor) -> Slope:
        """The gradient of a constant: rounds add to it."""
        tracer, shape = self.tracer, alias._data.shape
        if isinstance(symbol, Parts):
            source = tracer.placed(symbol)
            symbol = Whole(parameter(source.name), symbol.shape, symbol.dtype)
        expr = symbol.expr if isinstance(symbol, Whole) else None
        if not isinstance(expr, Expr):
            raise NotFusible("a gradient that is a number")
        down = expr.op == "down"
        inner = expr.args[0] if down else expr
        if any(name == "down" for name in _ops_of(inner)) or (not down and len(shape) != self.rank):
            raise NotFusible("a sum over rows within an expression")
        if (
            down
            and inner.op == "parameter"
            and tracer.sources[inner.args[0]].place in tracer.filled
        ):
            source = tracer.sources[inner.args[0]]
            return Slope("summed", source.place, shape, source)
        place = tracer.place()
        source = Source(place, tracer.shape_of(inner))
        tracer.sources[source.name] = source
        total = Whole(parameter(source.name) + inner, source.shape, tracer.compute)
        tracer.steps.append(Computed(place, total, tracer.level(total)))
        width = source.shape[-1]
        self.layouts[place] = Layout("one", 0 if down else width, width, tracer.compute,
                                     tasks=down, adds=True)  # fmt: skip
        return Slope("added" if down else "whole", place, shape)

    def _note_matrices(self) -> None:
        for product in self.round.products:
            position = self.positions[product.number]
            if position in self.parts and product.number in self.tracer.slopes:
                self.parts[position].append(Slope("matrix", product.number))

    def _save(self) -> None:
        """Let the forward pass store what is worth it, where the backward pass reads it."""
        tracer = self.tracer
        stored = {id(step.symbol.expr): step for step in self.forward_steps
                  if isinstance(step, Computed) and isinstance(step.symbol, Whole)
                  and step.place in self.filled}  # fmt: skip

        def change(node: Expr) -> Any:
            if id(node) in stored and node.op != "parameter":
                step = stored[id(node)]
                return parameter(Source(step.place, step.symbol.shape).name)
            found = self.candidates.get(id(node))
            if found is None:
                return None
            place = tracer.place()
            source = Source(place, found.symbol.shape)
            tracer.sources[source.name] = source
            self.forward_steps.append(Computed(place, found.symbol, found.level))
            return parameter(source.name)

        tracer.rebuild(change)


def _row_by_row(shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...]) -> bool:
    """Whether these are the strides of a new array; those of dims of size 1 tell, too."""
    return strides == np.empty(shape, dtype).strides


def parts_of(symbol: Whole | Parts) -> list[Whole]:
    """The expressions of a symbol."""
    return symbol.parts if isinstance(symbol, Parts) else [symbol]


def _ops_of(expression: Any) -> set[str]:
    from flambeau.jit.optimise.fusion.symbols import nodes_of

    return {node.op for node in nodes_of(expression)}
