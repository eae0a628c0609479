"""A loop over time as one callable: a kernel for all rounds where there is one, else the loop."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from flambeau._compiler.kernel_source import NoForm
from flambeau._runtime import choice
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.graph import Graph
from flambeau.jit.optimise.fusion.group import Group, key_of
from flambeau.jit.optimise.fusion.symbols import NotFusible
from flambeau.jit.optimise.scans.rounds import Round
from flambeau.jit.optimise.subgraphs import runner

MAKING = threading.Lock()
"""One thread traces a round at a time: its products know who traces them."""


class Scan(Group):
    """The rounds of a loop. Arguments: how many rounds there are, then what the loop uses.

    A form is made by the first call: a loop makes up for it sooner than a group of operators.
    """

    calls_before = 0

    def __init__(self, graph: Graph, round_: Round) -> None:
        super().__init__(graph)
        self.round = round_
        self.few = False

    def _first_call(self, *values: Any) -> Any:
        from flambeau.jit.optimise import fuse_body

        fuse_body(self.graph)
        self.operators = runner(self.graph)
        return self.operators(*values)

    def key_of(self, values: Sequence[Any]) -> Any:
        """As for groups, but the number of rounds is free."""
        rows = set(self.round.rows)
        free = [value for k, value in enumerate(values) if k and k not in rows]
        found = key_of(free)
        if found is None:
            return None
        taken = key_of([values[k] for k in self.round.rows])
        if taken is None:
            return None
        shapes = [values[k]._data.shape[1:] for k in self.round.rows
                  if isinstance(values[k], Tensor)]  # fmt: skip
        return found, tuple(shapes), taken[3::4], taken[4::4]

    def form_for(self, values: Sequence[Any]) -> Any:
        """Kernels for arguments like these; None if there are none."""
        from flambeau.jit.optimise.scans.assembly import Assembly
        from flambeau.jit.optimise.scans.traced_round import TracedRound

        if not choice.available() or values[0] < 2:
            return None
        try:
            with MAKING:
                return Assembly(TracedRound(self.round, values)).form
        except (NotFusible, NoForm) as error:
            self.reason = str(error)
            return None

    def __repr__(self) -> str:
        return "<scan>"
