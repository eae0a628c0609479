"""How well numbers are determined: the plain program with a little noise after each operator.

Two forms of a program round in different places. Where the plain program's own results change as
much when all its operators round a little differently, a difference says nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node
from flambeau.jit.run.program import graph_callable

from .cases import Case
from .comparing import EPSILON, STRICT, Difference, Rules, difference
from .observing import Outcome
from .running import outcomes, quiet

RUNS = 4
REACH = 200.0
"""A difference of so many times what the noise does is still rounding."""


def determined(case: Case, function: Any, wanted: list[Outcome], index: int,
               found: Difference) -> bool:  # fmt: skip
    """Whether a difference in a call is more than rounding could make."""
    rules = Rules(ulps=0.0)
    for run in range(RUNS):
        noisy = _noisy(case, function, run)
        if len(noisy) <= index:
            return True
        changed = difference(noisy[index], wanted[index], rules)
        if changed is None:
            continue
        if not changed.of_values:
            return False  # other errors or shapes
        if not found.of_values:
            continue
        if not np.isfinite(changed.size) or changed.size * REACH >= found.size:
            return False
    return True


def _noisy(case: Case, function: Any, run: int) -> list[Outcome]:
    noise = Noise(run)
    graph = function._function.graph.copy()
    _rewrite(graph.block, graph, noise)
    with quiet():
        return outcomes(graph_callable(graph), case, flambeau)


def _rewrite(block: Block, graph: Graph, noise: Noise) -> None:
    for node in list(block):
        for inner in node.blocks:
            _rewrite(inner, graph, noise)
        if _makes_numbers(node):
            with graph.inserting(node.after):  # type: ignore[arg-type]
                for output in node.outputs:
                    if output.type == T.TENSOR:
                        graph.insert("flambeau::Call", (output,), (T.NONE,), function=noise)


def _makes_numbers(node: Node) -> bool:
    """Whether a node's results are new, hence may be changed in place without anybody's seeing
    more than other numbers."""
    schema = node.schema
    return schema is not None and not any(p.alias for p in schema.returns)


class Noise:
    """Changes numbers by about one rounding."""

    __name__ = "noise"

    def __init__(self, seed: int) -> None:
        self.drawn = np.random.default_rng(seed)

    def __call__(self, tensor: Any) -> None:
        data = tensor._data
        name = str(tensor.dtype).rpartition(".")[2]
        if name not in EPSILON or not data.flags.writeable:
            return
        factors = 1 + EPSILON[name] * self.drawn.uniform(-1, 1, data.shape)
        with np.errstate(all="ignore"):
            np.copyto(data, (data * factors).astype(data.dtype))
