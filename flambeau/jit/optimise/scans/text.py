"""The kernel of a scan: its text, and what its arguments are.

def rounds(a0: pointer(f32), ..., m0: pointer(f32), steps, rows, task, tasks):
    first, count = the task's rows
    for step in range(steps):
        p0 = a0 + step * rows * 512 + first * 512
        multiply(p3, 128, m0, p5, 512, count, 128, 512, ...)
        for r in range(count):
            span_0(p0 + r * 512, p5 + r * 512 + 128, ..., 128, 8)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flambeau._compiler import loops
from flambeau._compiler.kernel_source import conditions, static_parameters
from flambeau._compiler.loops import Loop, Operand
from flambeau._compiler.native import Native, from_source
from flambeau._compiler.types import OF_NUMPY, Scalar, b8
from flambeau._ops.recurrent.kernels.rows import rows_product
from flambeau._runtime.features import vector_bits
from flambeau.jit.optimise.fusion.lowering import LARGEST, Wanted, wanted_of
from flambeau.jit.optimise.fusion.symbols import (
    NotFusible,
    Source,
    leaves,
    size_written_out,
)
from flambeau.jit.optimise.fusion.tracing import Computed
from flambeau.jit.optimise.scans.layout import Layout
from flambeau.jit.optimise.scans.tracing import Multiplied

ROWS = 4
"""Rows of the batch that are multiplied together."""


@dataclass(slots=True)
class Phase:
    """What one kernel computes: the rounds forward, or backward.

    carried: from places that rounds read to those that the round before has filled; in the first
    round they are read as they are. earlier: the same for what the forward rounds have left.
    """

    steps: Sequence[Computed | Multiplied]
    layouts: dict[int, Layout]
    sources: dict[str, Source]
    matrices: dict[tuple[int, bool], tuple[int, int]]
    """(depth, columns) of a matrix, by the number of its product and whether it is turned."""
    rank: int
    rows: int
    """Dims of a state, and its rows: vectors have one."""
    compute: Any
    reverse: bool = False
    carried: dict[int, int] = field(default_factory=dict)
    earlier: dict[int, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The kernel's name."""
        return "rounds_back" if self.reverse else "rounds"


class Writer:
    """Writes the text of a phase. places, products: what the kernel's pointers are, in order."""

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.element = OF_NUMPY[phase.compute.name]
        self.lanes = self.lanes_of(phase.compute)
        self.places: list[int] = []
        self.products: list[tuple[int, bool]] = []
        self.used: dict[int, None] = {}
        self.body: list[str] = []
        self.scope: dict[str, Any] = {"multiply": rows_product}
        for level in range(max(step.level for step in phase.steps) + 1):
            self._level([step for step in phase.steps if step.level == level])
        self.native = self._whole()

    def _level(self, steps: Sequence[Any]) -> None:
        for step in steps:
            if isinstance(step, Multiplied):
                self._product(step)
        spans: dict[tuple[int, ...], list[Wanted]] = {}
        for step in steps:
            if isinstance(step, Computed):
                for wanted in wanted_of(step):
                    spans.setdefault(wanted.shape, []).append(wanted)
        for shape, found in spans.items():
            self._span(shape, found)

    @staticmethod
    def lanes_of(compute: Any) -> int:
        """Elements of a vector."""
        return vector_bits() // OF_NUMPY[compute.name].bits

    # ---- products

    def _product(self, step: Multiplied) -> None:
        key = (step.number, step.back)
        if key not in self.products:
            self.products.append(key)
        depth, columns = self.phase.matrices[key]
        padded, vectors = panel_width(columns, self.lanes)
        left = self._pointer(step.source)
        row = self.phase.layouts[step.source.place].row
        out = self._pointer(Source(step.place, (self.phase.rows, columns)))
        self.body.append(
            f"multiply({left}, {row}, m{self.products.index(key)}, {out}, {padded}, count, {depth},"
            f" {padded}, {ROWS}, {vectors}, {self.element.name}, {self.lanes})"
        )

    def _pointer(self, source: Source) -> str:
        self.used[source.place] = None
        if source.dim is None:
            return f"p{source.place}"
        if source.dim != len(source.shape) - 1:
            raise NotFusible("a part of the rows")
        return f"p{source.place} + {source.start}"

    # ---- spans

    def _span(self, shape: tuple[int, ...], found: Sequence[Wanted]) -> None:
        phase = self.phase
        if len(shape) != phase.rank or (len(shape) == 2 and shape[0] != phase.rows):
            raise NotFusible("a result that is no matrix of the batch's rows")
        names = list(dict.fromkeys(name for one in found for name in leaves(one.expr)))
        choosing = conditions([one.expr for one in found])
        inputs = [self._operand(k, name, choosing) for k, name in enumerate(names)]
        outputs = [Operand(f"y{k}", self.element, "C") for k in range(len(found))]
        for one in found:
            if size_written_out(one.expr) > LARGEST or static_parameters(one.expr):
                raise NotFusible("an expression that is too large, or a power by a tensor")
            if one.output.dtype != phase.compute:
                raise NotFusible("a result of another type")
        loop = Loop(phase.title, tuple(one.expr for one in found), tuple(names), self.element,
                    tuple(inputs), tuple(outputs), flat=True)  # fmt: skip
        name = f"span_{len(self.scope)}"
        self.scope[name] = loops.span(loop)[0]
        sources = [phase.sources[name] for name in names]
        sources += [one.output.source or Source(one.output.place, shape) for one in found]
        self._calls(name, sources, [*inputs, *outputs], shape[-1])

    def _operand(self, k: int, name: str, choosing: set[str]) -> Operand:
        source = self.phase.sources[name]
        element = self._element(source.place)
        narrow = not source.shape or source.shape[-1] == 1
        return Operand(f"x{k}", element, "S" if narrow else "C",
                       condition=name in choosing and element is b8)  # fmt: skip

    def _element(self, place: int) -> Scalar:
        found = OF_NUMPY.get(self.phase.layouts[place].dtype.name)
        if found is None:
            raise NotFusible("a tensor of complex numbers")
        return found

    def _calls(self, name: str, sources: Sequence[Source], operands: Sequence[Operand],
               columns: int) -> None:  # fmt: skip
        """Whole vectors, then one column after the other."""
        wide = 2 * self.lanes if columns % (2 * self.lanes) == 0 else self.lanes
        whole = columns // wide * wide
        self.body.append("for r in range(count):")
        for start, count, width in ((0, whole, wide), (whole, columns - whole, 1)):
            if not count:
                continue
            given = []
            for source, operand in zip(sources, operands, strict=True):
                text = self._pointer(source)
                row = self.phase.layouts[source.place].row
                text += f" + r * {row}" if row else ""
                given.append(text + (f" + {start}" if start and operand.layout == "C" else ""))
            self.body.append(f"    {name}({', '.join(given)}, {count}, {width})")

    # ---- the whole

    def _whole(self) -> Native:
        phase = self.phase
        heads = [line for place in self.used for line in self._head(place)]
        for place in self.used:
            others = (phase.carried.get(place), phase.earlier.get(place))
            for one in (place, *others):
                if one is not None and one not in self.places:
                    self.places.append(one)
        pointers = [f"a{place}: pointer({self._element(place).name})" for place in self.places]
        pointers += [f"m{k}: pointer({self.element.name})" for k in range(len(self.products))]
        text = [
            f"def {phase.title}({', '.join(pointers)}, steps: i64, rows: i64, task: i64, "
            "tasks: i64):",
            "    first = rows * task // tasks",
            "    count = rows * (task + 1) // tasks - first",
            "    for turn in range(steps):",
            f"        step = {'steps - 1 - turn' if phase.reverse else 'turn'}",
            *[f"        {line}" for line in heads],
            *[f"        {line}" for line in self.body],
        ]
        return from_source(phase.title, "\n".join(text) + "\n", self.scope)

    def _head(self, place: int) -> list[str]:
        """Where a place's rows lie in this round."""
        phase = self.phase
        own = f"p{place} = a{place} + {phase.layouts[place].offset('step')}"
        before, first = phase.earlier.get(place), "step > 0"
        other = "step - 1"
        if place in phase.carried:
            before, first = phase.carried[place], "turn > 0"
            other = "step + 1" if phase.reverse else "step - 1"
        if before is None:
            return [own]
        return [own, f"if {first}:",
                f"    p{place} = a{before} + {phase.layouts[before].offset(other)}"]  # fmt: skip


def panel_width(columns: int, lanes: int) -> tuple[int, int]:
    """Columns of a matrix in panels, zeros behind them included, and vectors of a panel."""
    padded = -(-columns // lanes) * lanes
    return padded, 2 if padded % (2 * lanes) == 0 else 1
