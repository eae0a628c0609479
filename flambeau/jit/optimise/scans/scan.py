"""A loop over time as one callable: a kernel for all rounds where there is one, else the loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._compiler.kernel_source import NoForm
from flambeau._core import modes, settings
from flambeau._runtime import choice
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.ir.graph import Graph
from flambeau.jit.optimise.exact import exact
from flambeau.jit.optimise.fusion.group import MOST_FORMS, NUMBERS
from flambeau.jit.optimise.fusion.symbols import NotFusible
from flambeau.jit.optimise.scans.form import ScanForm
from flambeau.jit.optimise.scans.node import record
from flambeau.jit.optimise.scans.rounds import Round
from flambeau.jit.optimise.subgraphs import runner

MAKING = threading.Lock()
"""One thread traces a round at a time: its products know who traces them."""


class NotScanned(Exception):
    """There are no kernels for a call: the loop has to run. `fault` is an error that was not
    expected.
    """

    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__(fault)
        self.fault = fault


class Scan:
    """The rounds of a loop. Arguments: how many rounds there are, then what the loop uses.

    The first call with a key makes its form: a loop makes up for it sooner than a group of
    operators. The number of rounds is free. `plain` is the loop, for gradients of gradients.
    """

    def __init__(self, graph: Graph, round_: Round) -> None:
        self.graph = graph
        self.round = round_
        self.operators: Callable[..., Any] | None = None
        self.forms: dict[Any, Any] = {}  # False: there is no form
        self.reason = ""

    def plain(self, *values: Any) -> Any:
        """The loop, operator by operator."""
        if self.operators is None:
            self.operators = runner(self.graph)
        return self.operators(*values)

    def __call__(self, *values: Any) -> Any:
        """The results: one, or a tuple."""
        if values[0] < 2 or modes.watch.interferes():
            raise NotScanned
        key = None
        try:
            key = self.key_of(values)
            form = None if key is None else self.form_of(key, values)
            results = None if form is None else self.scanned(form, values)
        except (NotFusible, NoForm) as error:  # found only now, by how memory lies
            self.forms[key], self.reason, results = False, str(error), None
        except Exception as error:
            self.forms[key], self.reason = False, str(error)
            raise NotScanned(error) from error
        if results is None:
            raise NotScanned
        return results[0] if len(results) == 1 else tuple(results)

    def form_of(self, key: Any, values: Sequence[Any]) -> ScanForm | None:
        """Kernels for arguments like these; None if there are none."""
        form = self.forms.get(key)
        if form is None:
            enough = len(self.forms) >= MOST_FORMS or not choice.available()
            form = None if enough else self.form_for(values)
            if not enough:
                self.forms[key] = form or False
        return form or None

    def form_for(self, values: Sequence[Any]) -> ScanForm | None:
        """New kernels; None if there can be none."""
        from flambeau.jit.optimise.scans.assembly import Assembly
        from flambeau.jit.optimise.scans.traced_round import TracedRound

        try:
            with MAKING:
                return Assembly(TracedRound(self.round, values)).form
        except (NotFusible, NoForm) as error:
            self.reason = str(error)
            return None

    def scanned(self, form: ScanForm, values: tuple[Any, ...]) -> list[Any] | None:
        """The results by kernels; None where they are not to be told from each other's memory, or
        rows do not go with the rounds.
        """
        rows = [values[position] for position in self.round.rows]
        if not form.course.at(values[0]).own or any(len(r._data) != values[0] for r in rows):
            return None
        store = form.run(values)
        results = [wrap(store[own]) for _, _, own in form.outputs]
        if form.wanted:
            record(self, form, values, store, results)
        return results

    def key_of(self, values: Sequence[Any]) -> Any:
        """What the form for these arguments depends on; None where there is none."""
        rows = self.round.rows
        key: list[Any] = [settings.get_num_threads()]
        for position, value in enumerate(values):
            if not position and position not in self.round.constants:
                continue
            part = key_part(value, position in rows)
            if part is None:
                return None
            key.append(part)
        return tuple(key)

    def __repr__(self) -> str:
        return "<scan>"


def key_part(value: Any, row: bool) -> Any:
    """What a form depends on of one argument, which may be the rows of all rounds; None where it
    fits no form.
    """
    if not isinstance(value, Tensor):
        numbers = value if isinstance(value, list) else [value]
        return exact(value) if all(v.__class__ in NUMBERS for v in numbers) else None
    if not (value.__class__ is Tensor or getattr(value, "_is_param", False)):
        return None
    grad = modes.grad.enabled
    if grad and value._inference:  # it must not be saved, and its operators say so
        return None
    try:
        data = value._data
    except NotStrided:
        return None
    lies = (data.shape[1:], order_of(data.strides[1:])) if row else (data.shape, data.strides)
    return *lies, data.dtype.num, bool(grad and value.requires_grad)


def order_of(strides: tuple[int, ...]) -> tuple[Any, ...]:
    """How rows lie, whatever the number of rounds: which dims are broadcast, and the dims by their
    strides.
    """
    by_stride = sorted(range(len(strides)), key=lambda k: -strides[k])
    return (*[not stride for stride in strides], *by_stride)
