"""From a traced round to a form: which arrays are kept of all rounds, and the two kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.jit.optimise.fusion.symbols import NotFusible, Parts, Source, leaves
from flambeau.jit.optimise.fusion.tracing import Computed
from flambeau.jit.optimise.scans.form import Launch, ScanForm
from flambeau.jit.optimise.scans.layout import Layout, given_layout
from flambeau.jit.optimise.scans.text import Phase, Writer, panel_width
from flambeau.jit.optimise.scans.traced_round import TracedRound
from flambeau.jit.optimise.scans.tracing import Multiplied, RoundTracer

REGULAR = frozenset(
    "parameter constant square positive absolute sign maximum minimum add subtract multiply "
    "negative tanh sigmoid where down greater less greater_equal less_equal equal "
    "not_equal".split()
)
"""Primitives of gradients that are finite where all that they read is."""


class Assembly:
    """Puts the form of a traced round together."""

    def __init__(self, traced: TracedRound) -> None:
        self.traced = traced
        self.tracer = traced.tracer
        self.layouts = traced.layouts
        self.form = self._form()

    def _form(self) -> ScanForm:
        traced, made, tracer = self.traced, self.traced.round, self.tracer
        kept = self._kept(tracer.steps) if traced.wanted else set()
        for position, role, _, place in traced.aliases:
            self.layouts[place] = given_layout(traced.values[position]._data, role == "row")
        stacked = kept | {traced.filled[traced.result_of(kind, k)] for kind, k in made.results
                          if kind == "stack"}  # fmt: skip
        self._lay_out(traced.forward_steps, stacked, set(traced.filled))
        outputs = []
        for kind, k in made.results:
            outputs.append((kind, traced.filled[traced.result_of(kind, k)], tracer.place()))
        form = ScanForm(
            Launch(Writer(self._phase(traced.forward_steps, traced.carried))), tracer.places + 1,
            [(position, place) for position, role, _, place in traced.aliases
             if position not in traced.positions.values() or place in self._read()],
            {product.number: (traced.positions[product.number], product.turned)
             for product in made.products}, outputs, traced.recorded, self.tracer.place(),
        )  # fmt: skip
        form.course = traced.course
        if traced.wanted:
            self._finish(form, kept)
        return form

    def _read(self) -> set[int]:
        """Places that expressions read."""
        steps = [*self.traced.forward_steps, *self.tracer.steps]
        return {source.place for step in steps for source in sources_of(step, self.tracer)}

    def _kept(self, steps: Sequence[Any]) -> set[int]:
        """Places of the forward pass that are needed of every round."""
        traced, tracer = self.traced, self.tracer
        made = {step.place for step in traced.forward_steps}
        read = {source.place for step in steps for source in sources_of(step, tracer)}
        read |= {source.place for number, source in tracer.operands.items()
                 if number in tracer.slopes}  # fmt: skip
        read |= {traced.carried[place] for place in read if place in traced.carried}
        return read & made

    def _lay_out(self, steps: Sequence[Any], stacked: set[int], carried: set[int]) -> None:
        """Settle how the places lie that steps fill."""
        lanes = Writer.lanes_of(self.tracer.compute)
        for step in steps:
            if step.place in self.layouts:
                continue
            if isinstance(step, Multiplied):
                row = panel_width(self._columns(step), lanes)[0]
            else:
                row = step.symbol.shape[-1]
            if not row:
                raise NotFusible("parts without columns")
            slots = "pair" if step.place in carried else "one"
            slots = "all" if step.place in stacked else slots
            self.layouts[step.place] = Layout(slots, row, row, self.tracer.compute)

    def _columns(self, step: Multiplied) -> int:
        return int(self.tracer.matrices[step.number].shape[0 if step.back else 1])

    def _phase(self, steps: Sequence[Any], carried: dict[int, int], *, reverse: bool = False,
               earlier: dict[int, int] | None = None) -> Phase:  # fmt: skip
        matrices = {}
        for step in steps:
            if isinstance(step, Multiplied):
                shape = self.tracer.matrices[step.number].shape
                matrices[step.number, step.back] = shape[::-1] if step.back else shape
        return Phase(steps, self.layouts, self.tracer.sources, matrices, self.traced.rank,
                     self.traced.batch, self.tracer.compute, reverse, carried,
                     earlier or {})  # fmt: skip

    def _finish(self, form: ScanForm, kept: set[int]) -> None:
        """The backward part of the form."""
        traced, tracer = self.traced, self.tracer
        compute = tracer.compute
        for place in traced.grad_places.values():
            width = tracer.sources[f"x{place}"].shape[-1]
            self.layouts[place] = Layout("all", width, width, compute)
        for place in traced.state_grads.values():
            width = tracer.sources[f"x{place}"].shape[-1]
            self.layouts[place] = Layout("one", width, width, compute)
        if traced.zero is not None:
            self.layouts[traced.zero] = Layout("one", 0, 1, compute)
        parts = [part for found in traced.parts.values() for part in found]
        stacked = {part.place for part in parts if part.kind in ("rows", "summed")}
        stacked |= {source.place for source in tracer.slopes.values()}
        self._lay_out(tracer.steps, stacked, set(traced.back.values()) | {
            part.place for part in parts if part.kind == "first"})  # fmt: skip
        earlier = {place: after for place, after in traced.carried.items() if after in kept}
        phase = self._phase(tracer.steps, traced.back, reverse=True, earlier=earlier)
        form.backward = Launch(Writer(phase))
        form.wanted, form.zero = traced.wanted, traced.zero
        form.kept = [*sorted(kept), form.counted]
        products = [part.place for part in parts if part.kind == "matrix"]
        needed = {*form.backward.writer.places, *[tracer.operands[k].place for k in products]}
        form.kept_inputs = [pair for pair in form.given if pair[1] in needed]
        again = {traced.positions[number] for number, back in form.backward.writer.products if back}
        form.read_again = sorted(again | {position for position, _ in form.kept_inputs})
        form.singular = not traced.ops_back <= REGULAR
        form.columns_first = frozenset([k for k in products if traced.lies_by_columns(k)])
        form.slopes = [traced.parts[position] for position in traced.wanted]
        form.operands, form.product_slopes = tracer.operands, tracer.slopes
        for (kind, k), recorded in zip(traced.round.results, traced.recorded, strict=True):
            if recorded:
                places = traced.grad_places if kind == "stack" else traced.state_grads
                form.grads.append(places[k])


def sources_of(step: Computed | Multiplied, tracer: RoundTracer) -> list[Source]:
    """What a step reads."""
    if isinstance(step, Multiplied):
        return [step.source]
    parts = step.symbol.parts if isinstance(step.symbol, Parts) else [step.symbol]
    return [tracer.sources[name] for part in parts for name in leaves(part.expr)]
